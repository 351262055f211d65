"""Reading records with code of one's own, the older way: Flink 1.x's input formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class InputFormat(ABC):
    """Opened, asked for records until it has no more, closed. ``env.from_source`` takes sources; this is for ``SourceFunction``s built on one.

    PyFlink only wraps Java's; here a program writes its own.
    """

    @abstractmethod
    def open(self) -> None:
        """Takes what reading needs."""

    @abstractmethod
    def reached_end(self) -> bool:
        """Whether there is no further record."""

    @abstractmethod
    def next_record(self) -> Any:
        """The next record; None: leave it out."""

    def close(self) -> None:
        """Gives back what was taken."""
