"""map, filter and flat_map on a keyed stream, where the function may keep state per key.

They are stages like their unkeyed forms and fuse with the operators after them. Only for a function
with an ``open``, where it may ask for state, is the key set before each call. Any other function
runs as on an unkeyed stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.core.keys import canonical_key
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import BatchForm
from flinkpy.operators.chain.stages import Stage
from flinkpy.operators.functions import close_function, method_of, open_function
from flinkpy.operators.keyed_state import KeyedStateOperator, may_ask_for_state
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.rows.stateless import (
    FilterOperator,
    FlatMapOperator,
    FunctionStageOperator,
    MapOperator,
)
from flinkpy.state.backend import KeyedStateBackend


def with_key(
    function: Callable[[Any], Any], select: Callable[[Any], Any], backend: KeyedStateBackend
) -> Callable[[Any], Any]:
    """The function, wrapped so that the value's key is set before each call."""
    current, after_records = backend.current, backend.after_records

    def keyed(value: object) -> Any:
        current.key = canonical_key(select(value))
        return function(value)

    def keyed_and_cleaned(value: object) -> Any:
        current.key = canonical_key(select(value))
        after_records(1)
        return function(value)

    return keyed_and_cleaned if backend.counts_records else keyed


class KeyedStageOperator(KeyedStateOperator, FunctionStageOperator):
    """A stage with one user function that may keep state per key."""

    batch_form = BatchForm.BY_KEY
    keeps_nothing = False
    # whether a key's records come in order of time in BATCH, and not in that of their arrival
    by_time = True

    def __init__(self, function: object, key: KeySpec) -> None:
        super().__init__(function)
        key_function(key)
        self.key = key

    @property
    def reads_keys(self) -> bool:
        return may_ask_for_state(self.function)

    def open(self) -> None:
        open_function(self.key.selector, self.context)
        open_function(self.function, self.context, self.backend)

    def close(self) -> None:
        try:
            close_function(self.function)
        finally:
            super().close()
            close_function(self.key.selector)

    def before_batch(self) -> None:
        self.backend.between_batches()

    def stage(self) -> Stage:
        function = method_of(self.function, self.method)
        return Stage(
            self.kind,
            with_key(function, key_function(self.key), self.backend)
            if may_ask_for_state(self.function)
            else function,
        )


class KeyedMapOperator(KeyedStageOperator, MapOperator):
    """A MapFunction with state per key."""


class KeyedFilterOperator(KeyedStageOperator, FilterOperator):
    """A FilterFunction with state per key."""


class KeyedFlatMapOperator(KeyedStageOperator, FlatMapOperator):
    """A FlatMapFunction with state per key. A generator runs to its end before the next record, so
    it may use state anywhere."""
