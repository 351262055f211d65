"""The calls with which a function asks for state per key; the runtime context and the contexts of
windows implement them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar

from flinkpy.state.api import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    State,
    ValueState,
)
from flinkpy.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)

S = TypeVar("S", bound=State)


class KeyedStateStore(ABC):
    """Gives access to state per key. Each name stands for one state: asking again returns the same
    state."""

    @abstractmethod
    def _state(
        self, descriptor: StateDescriptor, wanted: type[StateDescriptor], kind: type[S], call: str
    ) -> S:
        """The state of that descriptor."""

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """State with one value per key.

        >>> count = runtime_context.get_state(
        ...     ValueStateDescriptor("count", Types.LONG())
        ... )  # doctest: +SKIP
        """
        return self._state(state_descriptor, ValueStateDescriptor, ValueState, "get_state()")

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """State with a list per key."""
        return self._state(state_descriptor, ListStateDescriptor, ListState, "get_list_state()")

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """State with a mapping per key."""
        return self._state(state_descriptor, MapStateDescriptor, MapState, "get_map_state()")

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """State that reduces all values of a key to one."""
        return self._state(
            state_descriptor, ReducingStateDescriptor, ReducingState, "get_reducing_state()"
        )

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor
    ) -> AggregatingState[Any, Any]:
        """State that gathers all values of a key in an accumulator."""
        return self._state(
            state_descriptor,
            AggregatingStateDescriptor,
            AggregatingState,
            "get_aggregating_state()",
        )
