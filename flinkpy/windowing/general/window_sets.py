"""The open windows of a key, and the window under which the contents of each are kept.

The contents of windows that do not merge are kept under the windows themselves, and nothing else is
recorded. Windows that merge are in ``flinkpy.windowing.general.merging_windows``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from flinkpy.windowing.general.window_lifetimes import WindowLifetimes

if TYPE_CHECKING:
    from flinkpy.windowing.windows import Window

# the window that a record is in, and the window under which its contents are kept
Place: TypeAlias = "tuple[Any, Any]"


class WindowSet(ABC):
    """The open windows of all keys of an operator."""

    # If False, hot loops call neither ``namespace_of`` (the window itself) nor ``retire`` (does
    # nothing)
    merges: ClassVar[bool]

    @abstractmethod
    def place(self, key: Any, window: Window) -> Place | None:
        """Opens a window that the assigner returned for a record, merging it with others; None if
        it has ended, so that the record is too late for it."""

    @abstractmethod
    def namespace_of(self, key: Any, window: Window) -> Any:
        """The window under which the contents are kept; None if the window is not open."""

    @abstractmethod
    def retire(self, key: Any, window: Window) -> None:
        """Removes a window that has ended."""


class PlainWindows(WindowSet):
    """Windows that do not merge."""

    merges = False

    def __init__(self, lifetimes: WindowLifetimes) -> None:
        self._has_ended = lifetimes.has_ended

    def place(self, key: object, window: Window) -> Place | None:
        return None if self._has_ended(window) else (window, window)

    def namespace_of(self, key: object, window: Window) -> Any:
        return window

    def retire(self, key: Any, window: Window) -> None:
        pass
