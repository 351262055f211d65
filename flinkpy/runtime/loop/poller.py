"""Waits for sockets: epoll itself where there is one, whatever ``selectors`` chooses elsewhere.

``selectors`` puts a good deal of Python around each wait, which stands between a frame's arrival
and the task that processes it."""

from __future__ import annotations

import select
import selectors
from typing import Protocol

READABLE, WRITABLE = 1, 4  # EPOLLIN and EPOLLOUT


class Poller(Protocol):
    """Which of the registered file descriptors can be read or written. An error or a hang-up shows
    as other bits, and is for both."""

    def register(self, fd: int, eventmask: int) -> None: ...

    def modify(self, fd: int, eventmask: int) -> None: ...

    def unregister(self, fd: int) -> None: ...

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        """(descriptor, events) of those that can; waits so many seconds for the first, 0 does not
        wait."""
        ...

    def close(self) -> None: ...


class SelectorPoller:
    """On top of ``selectors``."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, eventmask: int) -> None:
        self._selector.register(fd, self._events(eventmask))

    def modify(self, fd: int, eventmask: int) -> None:
        self._selector.modify(fd, self._events(eventmask))

    def unregister(self, fd: int) -> None:
        self._selector.unregister(fd)

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        return [
            (
                key.fd,
                (READABLE if events & selectors.EVENT_READ else 0)
                | (WRITABLE if events & selectors.EVENT_WRITE else 0),
            )
            for key, events in self._selector.select(timeout)
        ]

    def close(self) -> None:
        self._selector.close()

    @staticmethod
    def _events(eventmask: int) -> int:
        return (selectors.EVENT_READ if eventmask & READABLE else 0) | (
            selectors.EVENT_WRITE if eventmask & WRITABLE else 0
        )


def make_poller() -> Poller:
    """The system's best."""
    return select.epoll() if hasattr(select, "epoll") else SelectorPoller()
