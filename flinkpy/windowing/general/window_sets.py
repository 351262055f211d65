"""Which windows of a key are open, and under which window the contents of each are kept.

Windows that do not merge are kept under themselves, and nothing else needs to be known about them. Those that merge are in
``flinkpy.windowing.general.merging_windows``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

from flinkpy.windowing.general.window_lifetimes import WindowLifetimes

Place: TypeAlias = "tuple[Any, Any]"  # the window a record is in, and the window its contents are kept under


class WindowSet(ABC):
    """The open windows of all keys of an operator."""

    merges: ClassVar[bool]  # where False, windows are kept under themselves and ``retire`` does nothing: hot loops call neither

    @abstractmethod
    def place(self, key: Any, window: Any) -> Place | None:
        """Opens a window the assigner gave for a record, merging it with others; None where it has ended, so the record is too late for it."""

    @abstractmethod
    def namespace_of(self, key: Any, window: Any) -> Any:
        """The window its contents are kept under; None where it is not open."""

    @abstractmethod
    def retire(self, key: Any, window: Any) -> None:
        """The window has ended."""

    def write_back(self) -> None:
        """Stores what was changed, where windows have state of their own and the backend gives copies."""


class PlainWindows(WindowSet):
    """Windows that do not merge."""

    merges = False

    def __init__(self, lifetimes: WindowLifetimes) -> None:
        self._has_ended = lifetimes.has_ended

    def place(self, key: Any, window: Any) -> Place | None:
        return None if self._has_ended(window) else (window, window)

    def namespace_of(self, key: Any, window: Any) -> Any:
        return window

    def retire(self, key: Any, window: Any) -> None:
        pass
