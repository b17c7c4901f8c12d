"""Access control, and the security headers of every response.

The page is only for who knows its address. Other web pages in the same browser can send requests to this machine, so
each request must contain the secret of the address, a host that is ours and, if a page sent it, our own origin.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class RefusedError(Exception):
    """A request that is refused, with the HTTP status and a message for the user."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = (  # no script runs and nothing is asked for, also where it is opened by itself
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)
_HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_READING = ("GET", "HEAD")


class AccessMiddleware:
    """Passes on requests with the right address, without its secret part, and adds headers to every response."""

    def __init__(self, app: ASGIApp, token: str, hosts: Iterable[str], port: int | None = None) -> None:
        self.app = app
        self.token = token  # the first part of every path
        self.hosts = frozenset(hosts)  # our names, with the port
        self.port = port  # under which any IP address is ours too: no other site can make its name one of them

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return  # no other kind of socket is served

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        first, _, rest = scope["path"].removeprefix("/").partition("/")
        if message := self._refusal(scope["method"], Headers(scope=scope), first):
            await PlainTextResponse(message, 403)(scope, receive, send_with_headers)
            return
        inner: dict[str, Any] = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        await self.app(inner, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers, token: str) -> str | None:
        """Return why a request is refused, or None."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._is_ours(hosts[0].lower()):
            return "This host name is not allowed: open the address that priorshift app has printed."
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return "This address is not complete: open the one that priorshift app has printed."
        site, mode = headers.get("sec-fetch-site", "same-origin"), headers.get("sec-fetch-mode", "navigate")
        navigates = method in _READING and mode == "navigate" and not origins
        if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins) or len(origins) > 1:
            return "Requests from other pages are not allowed."
        if not navigates and site != "same-origin":
            return "Requests from other pages are not allowed."
        if method not in _READING and not origins:
            return "Requests without an origin are not allowed."
        return None

    def _is_ours(self, host: str) -> bool:
        if host in self.hosts:
            return True
        try:
            parts = urlsplit(f"//{host}")
            return (
                self.port is not None and parts.port == self.port and bool(ipaddress.ip_address(parts.hostname or ""))
            )
        except ValueError:
            return False
