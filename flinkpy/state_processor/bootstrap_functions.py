"""The functions that make state of records, as the job's own functions would."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from flinkpy.operators.functions import Function
from flinkpy.state.api import OperatorStateStore
from flinkpy.state.backend import CurrentKey


class BootstrapContext:
    """What ``process_element`` of a KeyedStateBootstrapFunction gets: the current key, and timers
    for it."""

    def __init__(self, current: CurrentKey) -> None:
        self._current = current
        self.event_timers: dict[Any, set[int]] = {}
        self.processing_timers: dict[Any, set[int]] = {}

    def get_current_key(self) -> Any:
        """The key of the record at hand."""
        return self._current.key

    def timer_service(self) -> BootstrapContext:
        """Registers timers for the current key, which fire in the job; those of a process
        function."""
        return self

    def register_event_time_timer(self, timestamp: int) -> None:
        """A timer at this event time, in milliseconds since 1970."""
        self.event_timers.setdefault(self._current.key, set()).add(timestamp)

    def register_processing_time_timer(self, timestamp: int) -> None:
        """A timer at this time of day, in milliseconds since 1970."""
        self.processing_timers.setdefault(self._current.key, set()).add(timestamp)


class KeyedStateBootstrapFunction(Function):
    """Fills keyed state: ``open`` asks for the states under the names and types that the job's
    function uses.

    >>> from flinkpy.common import Types
    >>> from flinkpy.datastream.state import ValueStateDescriptor
    >>> class Totals(KeyedStateBootstrapFunction):
    ...     def open(self, runtime_context):
    ...         self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
    ...
    ...     def process_element(self, value, ctx):
    ...         self.total.update((self.total.value() or 0) + value["amount"])
    """

    def open(self, runtime_context: Any) -> None:
        """Asks for the states: ``get_state`` and the others."""

    @abstractmethod
    def process_element(self, value: Any, ctx: BootstrapContext) -> None:
        """Called for each record, with the states at its key."""


class StateBootstrapFunction(Function):
    """Fills operator state: lists, union lists, broadcast state.

    >>> from flinkpy.common import Types
    >>> from flinkpy.datastream.state import MapStateDescriptor
    >>> class Rules(StateBootstrapFunction):
    ...     def initialize_state(self, store):
    ...         self.rules = store.get_broadcast_state(
    ...             MapStateDescriptor("rules", Types.STRING(), Types.DOUBLE())
    ...         )
    ...
    ...     def process_element(self, value):
    ...         self.rules.put(value["name"], value["limit"])
    """

    def initialize_state(self, store: OperatorStateStore) -> None:
        """Asks for the states, under the names and types that the job's function uses."""

    def open(self, runtime_context: Any) -> None:
        """Called after that, with None: for what the function needs beside its states. ``close`` is
        called at the end."""

    @abstractmethod
    def process_element(self, value: Any) -> None:
        """Called for each record."""
