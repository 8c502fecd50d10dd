"""Connections to the review page that are given up: slow ones, and the oldest of too many."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 50
"""At once; a browser has six."""

SLOWEST = 10.0
"""Seconds for a request to arrive whole."""


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 in which nobody can keep others waiting.

    A connection on which no whole request arrives in time is closed. Where there are too many, the
    one that is waited for longest makes room for the new one.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, in the place of another connection if need be."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            waiting = {
                other._deadline.when(): other
                for other in self.connections
                if isinstance(other, BoundedProtocol) and other._deadline is not None
            }
            given_up = waiting[min(waiting)] if waiting else self
            self.connections.discard(given_up)  # not only when the loop comes to it
            given_up.transport.abort()
        self._watch()

    def handle_events(self) -> None:
        """Go on with what has arrived, and wait for the rest of a request or for the next."""
        super().handle_events()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def _watch(self) -> None:
        """Set a deadline as long as a request is waited for."""
        waiting = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if waiting and self._deadline is None:
            self._deadline = self.loop.call_later(SLOWEST, self.transport.abort)
        elif not waiting and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
