"""Flink 1.x's input formats: the older way to read records with code of one's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class InputFormat(ABC):
    """Is opened, asked for records until it has no more, and closed. ``env.from_source`` takes sources; this is for ``SourceFunction``s built on one.

    PyFlink only wraps Java's; here a program writes its own.
    """

    @abstractmethod
    def open(self) -> None:
        """Acquires what reading needs."""

    @abstractmethod
    def reached_end(self) -> bool:
        """Whether there is no further record."""

    @abstractmethod
    def next_record(self) -> Any:
        """The next record; None is left out."""

    def close(self) -> None:
        """Releases what ``open`` acquired."""
