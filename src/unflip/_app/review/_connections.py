"""Limits on the connections to the review page."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 50
"""Maximum number of open connections; a browser uses six."""

REQUEST_TIMEOUT = 10.0
"""Seconds for a request to arrive completely."""


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 with a timeout per request and a maximum number of connections.

    Beyond the maximum, the connection that has waited longest is closed.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Wait for a request, after closing another connection if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            waiting = {
                other._deadline.when(): other
                for other in self.connections
                if isinstance(other, BoundedProtocol) and other._deadline is not None
            }
            oldest = waiting[min(waiting)] if waiting else self
            self.connections.discard(oldest)  # now, not when the event loop closes it
            oldest.transport.abort()
        self._watch()

    def handle_events(self) -> None:
        """Handle what has arrived, then wait for the rest of the request or for the next one."""
        super().handle_events()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def _watch(self) -> None:
        """Set a deadline while waiting for a request."""
        waiting = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if waiting and self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_TIMEOUT, self.transport.abort)
        elif not waiting and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
