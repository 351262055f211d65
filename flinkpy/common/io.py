"""Flink 1.x's input formats: the older way to read records with your own code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class InputFormat(ABC):
    """Is opened, asked for records until there are no more, and closed. Use it inside a
    ``SourceFunction``; ``env.from_source`` takes sources.

    PyFlink only wraps Java's input formats; here a program writes its own.
    """

    @abstractmethod
    def open(self) -> None:
        """Acquires what reading needs."""

    @abstractmethod
    def reached_end(self) -> bool:
        """Whether there is no further record."""

    @abstractmethod
    def next_record(self) -> Any:
        """The next record; None is skipped."""

    def close(self) -> None:
        """Releases what ``open`` acquired."""
