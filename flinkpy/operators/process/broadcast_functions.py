"""User functions of the broadcast state pattern, and their contexts; names and signatures are
PyFlink's.

Each element of one stream goes to one subtask; each element of the broadcast stream goes to all.
Both sides may read broadcast state. Only the broadcast side may write it, because only there every
subtask sees the same elements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from flinkpy.core.errors import ProgramError
from flinkpy.core.program.coroutines import refuse_coroutines
from flinkpy.operators.functions import Function, TimeDomain, TimerService
from flinkpy.state.api import BroadcastState, ReadOnlyBroadcastState
from flinkpy.state.backend import CurrentKey
from flinkpy.state.descriptors import MapStateDescriptor, StateDescriptor

ApplyToKeys = Callable[[StateDescriptor, Callable[[Any, Any], None]], None]


class BaseContext:
    """What a function can ask on both sides. One object serves all elements: do not keep it."""

    __slots__ = ("_states", "_timer_service", "_timestamp")

    def __init__(self, timer_service: TimerService, states: Mapping[str, Any]) -> None:
        self._timer_service, self._states = timer_service, states
        self._timestamp: int | None = None

    def timestamp(self) -> int | None:
        """The element's event time in milliseconds, or None."""
        return self._timestamp

    def current_processing_time(self) -> int:
        """The machine's clock, in milliseconds since 1970-01-01 UTC."""
        return self._timer_service.current_processing_time()

    def current_watermark(self) -> int:
        """The watermark of both streams together, in milliseconds."""
        return self._timer_service.current_watermark()

    def _state(self, descriptor: MapStateDescriptor) -> Any:
        found = (
            self._states.get(descriptor.name)
            if isinstance(descriptor, MapStateDescriptor)
            else None
        )
        if found is None:
            raise unknown_state(descriptor, self._states)
        return found


class BroadcastContext(BaseContext):
    """The context on the broadcast side."""

    __slots__ = ()

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """The broadcast state, to read and write. Every subtask must change it in the same way: do
        not use anything that only one of them knows. Raises ProgramError for a descriptor that
        ``broadcast()`` was not given."""
        state: BroadcastState[Any, Any] = self._state(state_descriptor)
        return state


class KeyedBroadcastContext(BroadcastContext):
    """The context on the broadcast side if the other stream is keyed."""

    __slots__ = ("_apply",)

    def __init__(
        self, timer_service: TimerService, states: Mapping[str, Any], apply: ApplyToKeys
    ) -> None:
        super().__init__(timer_service, states)
        self._apply = apply

    def apply_to_keyed_state(
        self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], None]
    ) -> None:
        """Calls ``function(key, state)`` for every key of this subtask that has a value in that
        state (Flink's applyToKeyedState). Raises ProgramError if it is not given a state
        descriptor.

        >>> ctx.apply_to_keyed_state(
        ...     waiting, lambda key, state: found.extend(state.get())
        ... )  # doctest: +SKIP
        """
        refuse_coroutines(function, "apply_to_keyed_state()")
        self._apply(state_descriptor, function)


class ReadOnlyContext(BaseContext):
    """The context on the side of the elements."""

    __slots__ = ()

    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor
    ) -> ReadOnlyBroadcastState[Any, Any]:
        """The broadcast state, read-only, as the broadcast elements so far have left it. Raises
        ProgramError for a descriptor that ``broadcast()`` was not given."""
        state: ReadOnlyBroadcastState[Any, Any] = self._state(state_descriptor)
        return state


class KeyedReadOnlyContext(ReadOnlyContext):
    """The context on the side of the elements if their stream is keyed: it knows the key, and has
    timers."""

    __slots__ = ("_current",)

    def __init__(
        self, timer_service: TimerService, states: Mapping[str, Any], current: CurrentKey
    ) -> None:
        super().__init__(timer_service, states)
        self._current = current

    def timer_service(self) -> TimerService:
        return self._timer_service

    def get_current_key(self) -> Any:
        return self._current.key


class BroadcastTimerContext(KeyedReadOnlyContext):
    """What ``on_timer`` can ask about the timer: its time, its key and its time domain."""

    __slots__ = ("_domain",)

    def __init__(
        self, timer_service: TimerService, states: Mapping[str, Any], current: CurrentKey
    ) -> None:
        super().__init__(timer_service, states, current)
        self._domain = TimeDomain.EVENT_TIME

    def time_domain(self) -> TimeDomain:
        """``TimeDomain.EVENT_TIME`` or ``TimeDomain.PROCESSING_TIME``."""
        return self._domain


def unknown_state(descriptor: object, states: Mapping[str, Any]) -> ProgramError:
    """The error for a descriptor that ``broadcast()`` was not given."""
    if not isinstance(descriptor, MapStateDescriptor):
        return ProgramError(
            f"get_broadcast_state() takes a MapStateDescriptor, this is {descriptor!r:.80}"
        )
    known = ", ".join(repr(name) for name in states)
    return ProgramError(
        f"there is no broadcast state {descriptor.name!r} here: broadcast() was given "
        f"{known}; pass it this descriptor too"
    )


class BaseBroadcastProcessFunction(Function):
    """The base class of both kinds of broadcast functions."""

    BaseContext: TypeAlias = BaseContext
    Context: TypeAlias = BroadcastContext
    ReadOnlyContext: TypeAlias = ReadOnlyContext


class BroadcastProcessFunction(BaseBroadcastProcessFunction):
    """A function for ``stream.connect(broadcast_stream).process(...)``, if the stream is not keyed.
    Both methods yield results; ``yield output_tag, value`` sends to a side output.

    >>> from flinkpy.common.typeinfo import Types
    >>> limits = MapStateDescriptor("limits", Types.STRING(), Types.LONG())
    >>> class Check(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value[1] > (ctx.get_broadcast_state(limits).get(value[0]) or 0):
    ...             yield value
    ...
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(limits).put(*value)
    """

    @abstractmethod
    def process_element(self, value: Any, ctx: ReadOnlyContext) -> Iterable[Any] | None: ...

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: BroadcastContext) -> Iterable[Any] | None:
        """Called in every subtask, for each element of the broadcast stream."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction):
    """A function for ``keyed_stream.connect(broadcast_stream).process(...)``. In
    ``process_element`` and ``on_timer`` there is a key, with state and timers. The broadcast side
    has no key; there ``ctx.apply_to_keyed_state`` visits the state of all keys.

    >>> from flinkpy.common.typeinfo import Types
    >>> from flinkpy.state.descriptors import ListStateDescriptor
    >>> limits = MapStateDescriptor("limits", Types.STRING(), Types.LONG())
    >>> waiting = ListStateDescriptor("waiting", Types.LONG())
    >>> class Check(KeyedBroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if ctx.get_broadcast_state(limits).contains(ctx.get_current_key()):
    ...             yield value
    ...
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(limits).put(*value)
    ...         ctx.apply_to_keyed_state(waiting, lambda key, state: state.clear())
    """

    Context: TypeAlias = KeyedBroadcastContext  # narrower, as in PyFlink
    ReadOnlyContext: TypeAlias = KeyedReadOnlyContext
    OnTimerContext: TypeAlias = BroadcastTimerContext

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedReadOnlyContext) -> Iterable[Any] | None: ...

    @abstractmethod
    def process_broadcast_element(
        self, value: Any, ctx: KeyedBroadcastContext
    ) -> Iterable[Any] | None:
        """Called in every subtask, for each element of the broadcast stream."""

    def on_timer(self, timestamp: int, ctx: BroadcastTimerContext) -> Iterable[Any] | None:
        """Called when a timer registered with ``ctx.timer_service()`` fires; the key is the one it
        was registered for."""
