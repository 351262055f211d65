"""Window functions: the classes that a program derives from, with PyFlink's names and signatures.

A window function gets the window's records, or the single result if reduce or aggregate ran before
it. It gets copies of records that other windows or later evaluations use too, so it may change what
it gets in place. With object reuse there are no copies, and it must not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from flinkpy.operators.function_contexts.keyed_state_store import KeyedStateStore
from flinkpy.operators.functions import Function


class WindowFunction(Function):
    """Called with all records of a key and window.

    >>> class Count(WindowFunction):
    ...     def apply(self, key, window, inputs):
    ...         yield key, window.end, len(inputs)
    """

    @abstractmethod
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        """Yields or returns results, which get the window's last timestamp."""


class AllWindowFunction(Function):
    """Called with all records of a window on a stream without keys: ``window_all``.

    >>> class Sum(AllWindowFunction):
    ...     def apply(self, window, inputs):
    ...         yield window.end, sum(inputs)
    """

    @abstractmethod
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        """Yields or returns results, which get the window's last timestamp."""


class WindowContext(ABC):
    """The window, the time and state, for a process window function. One object serves all windows:
    do not keep it."""

    def __class_getitem__(cls, parameters: object) -> Any:
        """The class itself, so that annotations may name the window:
        ``ProcessWindowFunction.Context[TimeWindow]``."""
        return cls

    @abstractmethod
    def window(self) -> Any:
        """The window being evaluated."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """The machine's clock, in milliseconds since 1970-01-01 UTC."""

    @abstractmethod
    def current_watermark(self) -> int: ...

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of this key and window, which is removed when the window ends. For windows that
        merge, its calls raise ProgramError."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """State of this key, which all its windows share."""


class ProcessWindowFunction(Function):
    """Called with all records of a key and window, and a context; ``yield tag, value`` sends to a
    side output.

    >>> class Late(ProcessWindowFunction):
    ...     def process(self, key, context, elements):
    ...         yield key, context.window().start, context.current_watermark()
    """

    class Context(WindowContext):
        """Window, time and state."""

    @abstractmethod
    def process(self, key: Any, context: Context, elements: Iterable[Any]) -> Iterable[Any] | None:
        """Yields or returns results, which get the window's last timestamp."""

    def clear(self, context: Context) -> None:
        """Called when the window ends: remove what you keep for it elsewhere. The engine removes
        its ``window_state``."""


class ProcessAllWindowFunction(Function):
    """Called with all records of a window and a context, on a stream without keys: ``window_all``.

    >>> class Sum(ProcessAllWindowFunction):
    ...     def process(self, context, elements):
    ...         yield context.window().end, sum(elements)
    """

    class Context(WindowContext):
        """Window, time and state."""

    @abstractmethod
    def process(self, context: Context, elements: Iterable[Any]) -> Iterable[Any] | None:
        """Yields or returns results, which get the window's last timestamp."""

    def clear(self, context: Context) -> None:
        """Called when the window ends: remove what you keep for it elsewhere. The engine removes
        its ``window_state``."""
