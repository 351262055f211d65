"""One connection of a client: HTTP/1.1 as uvicorn speaks it, with an end for clients that keep it open without getting on."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE_S = 10.0  # for a request to come whole, and for some of the answer to be read; at most twice that, as it is looked at so often


class Connection(H11Protocol):
    """uvicorn waits for ever for the first request, for the rest of a request, and for who does not read: some hundred such clients would shut
    out all others, and use up the process's files."""

    def __init__(self, *args: Any, **others: Any) -> None:
        super().__init__(*args, **others)
        self._answered = 0
        self._seen: tuple[int, bool, int] | None = None  # at the last look, if the client had to do something
        self._look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:  # uvicorn would answer with text
            transport.abort()
            return
        self._look = self.loop.call_later(PATIENCE_S, self._check)

    def on_response_complete(self) -> None:
        self._answered += 1
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _check(self) -> None:
        """Ends the connection if the client had to do something and has not, since the last look."""
        is_sending = self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and self.timeout_keep_alive_task is None
        unread = self.transport.get_write_buffer_size()
        seen = (self._answered, is_sending, unread) if is_sending or unread else None
        if seen is not None and seen == self._seen:
            self.transport.abort()
            return
        self._seen = seen
        self._look = self.loop.call_later(PATIENCE_S, self._check)
