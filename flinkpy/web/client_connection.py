"""One connection of a client: HTTP/1.1 as uvicorn speaks it, with an end for clients that keep it
open without getting on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import count
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# how long a request may take to arrive whole, and how long a client may read nothing of its answer.
# Connections are looked at once in this time, so it may take twice as long until one is closed
PATIENCE_S = 10.0


_numbers = count()


class Connection(H11Protocol):
    """uvicorn waits for ever for the first request, for the rest of a request, and for a client
    that does not read: some hundred such clients would shut out all others, and use up the
    process's file descriptors.

    Where there are too many, of one client's address or of all, the oldest that waits for a request
    makes room for the new one: of the address that has the most. So half-open connections shut
    nobody out, and least of all other addresses."""

    def __init__(self, *args: Any, per_client: int | None = None, **others: Any) -> None:
        super().__init__(*args, **others)
        self._per_client = per_client
        self._number = next(_numbers)
        self._answered = 0
        # at the last look, if the client had to do something
        self._seen: tuple[int, bool, int] | None = None
        self._look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self._has_room():  # uvicorn would answer with text
            self.connections.discard(self)
            transport.abort()
            return
        self._look = self.loop.call_later(PATIENCE_S, self._check)

    def _has_room(self) -> bool:
        """Ends another connection, where that is needed for this one; false if all others are being
        answered."""
        open_ones = [each for each in self.connections if isinstance(each, Connection)]
        of_client = [each for each in open_ones if each.address == self.address]
        if self._per_client is not None and len(of_client) > self._per_client:
            return _end_oldest(of_client, self)
        if self.limit_concurrency is None or len(open_ones) < self.limit_concurrency:
            return True
        by_address = Counter(each.address for each in open_ones)
        return any(
            _end_oldest([each for each in open_ones if each.address == address], self)
            for address, _ in by_address.most_common()
        )

    @property
    def address(self) -> str:
        """The client's, without its port."""
        return self.client[0] if self.client else ""

    @property
    def is_waiting(self) -> bool:
        """Whether it is the client's turn: nothing of a request has come, or not all of it."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def on_response_complete(self) -> None:
        self._answered += 1
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _check(self) -> None:
        """Ends the connection if the client had to do something and has not, since the last
        look."""
        is_sending = self.is_waiting and self.timeout_keep_alive_task is None
        unread = self.transport.get_write_buffer_size()
        seen = (self._answered, is_sending, unread) if is_sending or unread else None
        if seen is not None and seen == self._seen:
            self.transport.abort()
            return
        self._seen = seen
        self._look = self.loop.call_later(PATIENCE_S, self._check)


def _end_oldest(candidates: Iterable[Connection], newest: Connection) -> bool:
    """Ends the oldest that waits for a request; false if none does."""
    waiting = [each for each in candidates if each is not newest and each.is_waiting]
    if not waiting:
        return False
    oldest = min(waiting, key=lambda each: each._number)
    oldest.connections.discard(oldest)
    oldest.transport.abort()
    return True


def accepting(per_client: int) -> Any:
    """What makes a connection for uvicorn, with so many at a time of one client's address."""
    return partial(Connection, per_client=per_client)
