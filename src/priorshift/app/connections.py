"""Connections: those that ask nothing are closed, so that they cannot keep the user from the app.

Any program on this machine can connect. A connection must send the head of a request in time, and when there are too
many, the oldest one without a request is closed.
"""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_HEAD_SECONDS = 10.0  # in which a connection must have sent the head of a request
_MAX_CONNECTIONS, _MIN_CONNECTIONS = 128, 16  # a browser opens about six
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def max_connections() -> int:
    """Return how many connections may be open: a quarter of the files that the process may open, from 16 to 128."""
    try:
        import resource
    except ImportError:  # Windows
        return _MAX_CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_unlimited = soft == resource.RLIM_INFINITY
    return _MAX_CONNECTIONS if is_unlimited else max(_MIN_CONNECTIONS, min(_MAX_CONNECTIONS, soft // 4))


def ignore_exhaustion(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle an error of the event loop; it accepts connections again by itself when the system has resources."""
    error = context.get("exception")
    if not (isinstance(error, OSError) and error.errno in _EXHAUSTED):
        loop.default_exception_handler(context)


class BoundedConnection(H11Protocol):
    """A connection with a deadline for the head of each request; a new one takes the place of the oldest idle one."""

    _deadline: asyncio.TimerHandle | None = None
    opened_at = 0.0  # by the clock of the event loop

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline, and close the oldest idle connection if there are too many."""
        super().connection_made(transport)
        self.opened_at = self.loop.time()
        self._update_deadline()
        connections = [one for one in self.connections if isinstance(one, BoundedConnection)]
        is_open = [one for one in connections if not one.transport.is_closing()]
        if len(is_open) > max_connections():
            idle = [one for one in is_open if one.is_idle]  # this one is
            min(idle, key=lambda one: (one.cycle is not None, one.opened_at)).transport.abort()  # unused ones first

    def data_received(self, data: bytes) -> None:
        """Process data; only a complete head ends the deadline."""
        super().data_received(data)
        self._update_deadline()

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request and close the connection; nothing more is sent in answer to its beginning."""
        with suppress(h11.LocalProtocolError):  # the answer has begun
            super().send_400_response(msg)
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadline."""
        super().connection_lost(exc)
        self._stop_deadline()

    def _update_deadline(self) -> None:
        """Let the deadline run while the head of a request is expected, and stop it otherwise."""
        if not self.is_idle or self.conn.their_state is not h11.IDLE:
            self._stop_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_HEAD_SECONDS, self.transport.abort)

    def _stop_deadline(self) -> None:
        """Stop the deadline, if it runs."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
