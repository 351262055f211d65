"""The operators of the broadcast state pattern: input 1 gets the elements, input 2 the broadcast
elements, which every subtask gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.core.elements import Batch
from flinkpy.core.errors import ProgramError
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import BatchForm, StreamOperator, TwoInputOperator, Work
from flinkpy.operators.function_contexts.no_key import NoKey
from flinkpy.operators.functions import close_function, open_function
from flinkpy.operators.process.broadcast_functions import (
    BroadcastContext,
    BroadcastTimerContext,
    KeyedBroadcastContext,
    KeyedReadOnlyContext,
    ReadOnlyContext,
)
from flinkpy.operators.process.process_operators import (
    KeyedFunctionOperator,
    UnkeyedFunctionOperator,
)
from flinkpy.operators.rows.keyed import key_function
from flinkpy.state.broadcast_state import HeapBroadcastState, HeapReadOnlyBroadcastState
from flinkpy.state.descriptors import MapStateDescriptor, StateDescriptor

NO_KEY = NoKey(
    "a broadcast element has no key, so keyed state cannot be used in "
    "process_broadcast_element(); "
    "ctx.apply_to_keyed_state(descriptor, function) goes through the state of all keys"
)


class _BroadcastStates(StreamOperator):
    """What both operators share: the broadcast states of the descriptors given to ``broadcast()``,
    in writable and read-only form."""

    batch_form = BatchForm.BROADCAST_FIRST
    takes_no_policy = (
        "keeps the same state in every subtask: catch the exception in the function, which "
        "yields it to a side output of its own"
    )
    descriptors: tuple[MapStateDescriptor, ...]

    def _open_states(
        self,
    ) -> tuple[dict[str, HeapBroadcastState], dict[str, HeapReadOnlyBroadcastState]]:
        store = self.context.operator_state
        written = {
            descriptor.name: store.get_broadcast_state(descriptor)
            for descriptor in self.descriptors
        }
        return written, {name: state.read_only(name) for name, state in written.items()}


class BroadcastProcessOperator(_BroadcastStates, UnkeyedFunctionOperator, TwoInputOperator):
    """Runs a BroadcastProcessFunction."""

    def __init__(self, function: Any, descriptors: Sequence[MapStateDescriptor]) -> None:
        super().__init__(function)
        self.descriptors = tuple(descriptors)

    def open(self) -> None:
        super().open()
        written, read = self._open_states()
        self._element_context = ReadOnlyContext(self.timer_service, read)
        self._broadcast_context = BroadcastContext(self.timer_service, written)

    def process_batch1(self, batch: Batch) -> Work:
        return self.run_function(self.function.process_element, batch, self._element_context)

    def process_batch2(self, batch: Batch) -> Work:
        return self.run_function(
            self.function.process_broadcast_element, batch, self._broadcast_context
        )


class KeyedBroadcastProcessOperator(_BroadcastStates, KeyedFunctionOperator, TwoInputOperator):
    """Runs a KeyedBroadcastProcessFunction; input 1 is keyed."""

    def __init__(
        self, function: Any, descriptors: Sequence[MapStateDescriptor], key: KeySpec
    ) -> None:
        super().__init__(function)
        key_function(key)
        self.descriptors, self.key = tuple(descriptors), key

    def open(self) -> None:
        open_function(self.key.selector, self.context)
        super().open()
        self._keyed = self.keyed_by(self.key)

    def make_contexts(self) -> None:
        service, current = self.timer_service, self.backend.current
        written, read = self._open_states()
        self._process_context = KeyedReadOnlyContext(service, read, current)
        self._timer_context = BroadcastTimerContext(service, read, current)
        self._broadcast_context = KeyedBroadcastContext(
            service, written, self._apply_to_keyed_state
        )

    def close(self) -> None:
        try:
            super().close()
        finally:
            close_function(self.key.selector)

    def process_batch1(self, batch: Batch) -> Work:
        return self.run_keyed(self._keyed, self.function.process_element, batch)

    def process_batch2(self, batch: Batch) -> Work:
        self.backend.current.key = NO_KEY
        return self.run_function(
            self.function.process_broadcast_element, batch, self._broadcast_context
        )

    def _apply_to_keyed_state(
        self, descriptor: StateDescriptor, function: Callable[[Any, Any], None]
    ) -> None:
        if not isinstance(descriptor, StateDescriptor):
            raise ProgramError(
                f"apply_to_keyed_state() takes a state descriptor, this is {descriptor!r:.80}"
            )
        state, current = self.backend.state(descriptor), self.backend.current
        try:
            for current.key in self.backend.keys(descriptor.name):
                function(current.key, state)
        finally:
            current.key = NO_KEY
