"""What the app does not do, said in a sentence with a status of HTTP.

Who may ask, and what every answer says to the browser.

The page is for the one who was told its address. Other web pages in the same browser can send requests to this machine,
so that each request must show the secret of the address, a host that is ours and, where a page made it, that ours did.
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
    """A request that is not granted.

    Attributes
    ----------
    status : int
        Of the answer.
    sentence : str
        For the user.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


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


class Guard:
    """Lets requests with the right address through, without its secret part, and puts headers on every answer.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    token : str
        The first part of every path.
    hosts : iterable of str
        Names under which we are reached, with the port.
    port : int or None
        Where literal addresses are ours too, under this port: no other site can make its name one of them.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Iterable[str], port: int | None = None) -> None:
        self.app, self.token, self.hosts, self.port = app, token, frozenset(hosts), port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return  # no socket of another kind is ours

        async def _send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        first, _, rest = scope["path"].removeprefix("/").partition("/")
        if sentence := self._refusal(scope["method"], Headers(scope=scope), first):
            await PlainTextResponse(sentence, 403)(scope, receive, _send)
            return
        inner: dict[str, Any] = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        await self.app(inner, receive, _send)

    def _refusal(self, method: str, headers: Headers, token: str) -> str | None:
        """Why a request is not ours to answer, if it is not."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._is_ours(hosts[0].lower()):
            return "This page is not reached under that name; open the address that priorshift app has shown."
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return "This address is not complete; open the one that priorshift app has shown."
        site, mode = headers.get("sec-fetch-site", "same-origin"), headers.get("sec-fetch-mode", "navigate")
        navigates = method in _READING and mode == "navigate" and not origins
        if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins) or len(origins) > 1:
            return "Another page asked, and it may not."
        if not navigates and site != "same-origin":
            return "Another page asked, and it may not."
        if method not in _READING and not origins:
            return "It is not told which page asks, so that it may not."
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
