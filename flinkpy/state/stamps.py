"""What is stored of a value that expires."""

from __future__ import annotations

from typing import Any


class Stamped:
    """A stored value, and when it was last touched (milliseconds)."""

    __slots__ = ("touched_ms", "value")

    def __init__(self, value: Any, touched_ms: int) -> None:
        self.value, self.touched_ms = value, touched_ms

    def __repr__(self) -> str:
        return f"Stamped({self.value!r:.80}, {self.touched_ms})"
