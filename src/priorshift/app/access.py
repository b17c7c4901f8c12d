"""Access control: who may use the app, and the security headers of every response.

An address with a key opens the page once: the key is exchanged for a cookie, so that what a browser's history stores
opens nothing. Cookies are not separated by port, and servers of other users may listen on this machine, so the cookie
is limited to a folder with a random name, which no other server can know; browsers send it nowhere else.

Other web pages in the same browser can send requests to this machine, so each request must also name a host that is
ours and, if a page sent it, come from our own origin.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Callable, Collection, Iterable
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_READING = ("GET", "HEAD")


class Keys:
    """The secrets of one run of the app: keys that open the page once, a cookie, and the folder of its addresses."""

    def __init__(self, port: int) -> None:
        """Create a new cookie and folder; the name of the cookie contains the `port`."""
        self.folder = secrets.token_urlsafe(16)  # first part of every path; the cookie is sent to no other one
        self._name, self._value = f"priorshift-{port}", secrets.token_urlsafe(32)
        self._unused: dict[str, Callable[[], None]] = {}

    @property
    def cookie(self) -> str:
        """The cookie as a browser sends it: name=value."""
        return f"{self._name}={self._value}"

    def add(self, when_used: Callable[[], None]) -> str:
        """Return a new key, which opens the page once; `when_used` is called then."""
        key = secrets.token_urlsafe(32)
        self._unused[key] = when_used
        return key

    def use(self, received: str) -> bool:
        """Return whether a text is an unused key, which is then used."""
        for key in self._unused:
            if secrets.compare_digest(received.encode(), key.encode()):
                self._unused.pop(key)()
                return True
        return False

    def opened(self) -> Response:
        """Return the response to a request with a key: the cookie, and a redirect to an address without secrets."""
        cookie = f"{self.cookie}; Path=/{self.folder}/; HttpOnly; SameSite=Strict"
        return Response(status_code=303, headers={"Location": f"/{self.folder}/", "Set-Cookie": cookie})

    def has_cookie(self, headers: Headers) -> bool:
        """Return whether one of a request's cookies is ours; other servers of this host may have set more."""
        received = [cookie.strip() for line in headers.getlist("cookie") for cookie in line.split(";")]
        return any([secrets.compare_digest(cookie.encode(), self.cookie.encode()) for cookie in received])


class AccessMiddleware:
    """Passes on requests that are allowed, without the folder of their path, and adds headers to every response."""

    def __init__(
        self, app: ASGIApp, keys: Keys, hosts: Iterable[str], port: int | None = None, public: Collection[str] = ()
    ) -> None:
        """Wrap an application; `hosts` are the accepted values of the Host header.

        `public` are the paths of the page itself, which hold no data and need no cookie: a browser does not send it
        when another page, or a file, leads to the page.
        """
        self.app = app
        self.keys = keys
        self.hosts = frozenset(hosts)  # our names, with the port
        self.port = port  # if set, any IP address with this port is accepted: DNS cannot rebind an address
        self.public = frozenset(public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request that is not allowed; pass others on without the folder in their path (ASGI)."""
        if scope["type"] != "http":
            return  # no other kind of socket is served

        async def send_with_headers(message: Message) -> None:
            """Send a message; add the security headers to the start of a response."""
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        response = self._response(scope)
        if response is not None:
            response.headers["Connection"] = "close"  # only those who may use the app keep a connection
            await response(scope, receive, send_with_headers)
            return
        _, _, rest = scope["path"].removeprefix("/").partition("/")
        inner: dict[str, Any] = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        await self.app(inner, receive, send_with_headers)

    def _response(self, scope: Scope) -> Response | None:
        """Return the response to a request that is refused or has a key; None if it may be passed on."""
        method, headers = scope["method"], Headers(scope=scope)
        first, _, rest = scope["path"].removeprefix("/").partition("/")
        refusal = self._refusal(method, headers)
        if refusal is None and method == "GET" and not rest and self.keys.use(first):
            return self.keys.opened()
        if refusal is None and not secrets.compare_digest(first.encode(), self.keys.folder.encode()):
            refusal = "This address is not complete, or was used before: open the last one that priorshift app printed."
        is_public = method in _READING and rest in self.public
        if refusal is None and not is_public and not self.keys.has_cookie(headers):
            refusal = "This browser has no access yet: open the last address that priorshift app printed."
        return None if refusal is None else PlainTextResponse(refusal, 403)

    def _refusal(self, method: str, headers: Headers) -> str | None:
        """Return why a request is refused for its host or the page that sent it, for the user; None if it is not."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._is_ours(hosts[0].lower()):
            return "This host name is not allowed: open the address that priorshift app has printed."
        # what the browser says about the page that sent the request; older browsers say nothing
        sites, mode = headers.getlist("sec-fetch-site"), headers.get("sec-fetch-mode", "navigate")
        is_navigation = method in _READING and mode == "navigate" and not origins  # the user opened the address
        is_foreign = any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins) or len(origins) > 1
        if is_foreign or (not is_navigation and sites not in ([], ["same-origin"])):
            return "Requests from other pages are not allowed."
        if method not in _READING and not origins:
            return "Requests without an origin are not allowed."
        return None

    def _is_ours(self, host: str) -> bool:
        """Return whether a Host header names this server: one of its names, or if it is exposed any IP address."""
        if host in self.hosts:
            return True
        if self.port is None:
            return False
        try:
            parts = urlsplit(f"//{host}")
            ipaddress.ip_address(parts.hostname or "")  # raises ValueError for a name
            return parts.port == self.port
        except ValueError:
            return False
