"""From records to the state of one operator: where they come from, which key they have, and which
function takes them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import canonical_key, channel_of_key_group, key_group, key_group_range
from flinkpy.datastream.verbs.field_keys import FieldKey
from flinkpy.operators.process.process_operators import EVENT_TIMERS, PROCESSING_TIMERS
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend
from flinkpy.state.operator_backend import OperatorStateBackend
from flinkpy.state.snapshots.saved_state import FrozenState
from flinkpy.state_processor.bootstrap_functions import (
    BootstrapContext,
    KeyedStateBootstrapFunction,
    StateBootstrapFunction,
)
from flinkpy.state_processor.savepoint_reader import BackendStates


class OperatorTransformation:
    """Begins the transformation of data into state.

    >>> OperatorTransformation.bootstrap_with([("a", 1)]).key_by(0)
    <KeyedOperatorTransformation by FieldKey(0)>
    """

    @staticmethod
    def bootstrap_with(data: object) -> OneInputOperatorTransformation:
        """With these records: an iterable of values; a pyarrow Table or RecordBatch, a DataFrame of
        pandas, Polars or Spark, whose records are Rows."""
        return OneInputOperatorTransformation(data)


class OneInputOperatorTransformation:
    """Records without a key yet."""

    def __init__(self, data: object) -> None:
        self._data = data

    def key_by(self, *key: Callable[[Any], Any] | str | int) -> KeyedOperatorTransformation:
        """By a function, or by fields: the same key that the job uses, as one function and one
        field give the key itself, and several fields a tuple."""
        if not key:
            raise ProgramError("key_by() takes a function, or the names or positions of fields")
        if len(key) == 1 and callable(key[0]):
            return KeyedOperatorTransformation(self._data, key[0])
        fields = tuple(each for each in key if isinstance(each, (str, int)))
        if len(fields) < len(key):
            raise ProgramError(
                "key_by() takes one function, or the names or positions of fields; this is "
                f"{key!r:.80}"
            )
        return KeyedOperatorTransformation(self._data, FieldKey(fields))

    def transform(self, function: StateBootstrapFunction) -> StateBootstrapTransformation:
        """Operator state: all of it in the first subtask, which the job shares out."""
        if not isinstance(function, StateBootstrapFunction):
            raise ProgramError(
                "transform() takes a StateBootstrapFunction, or after key_by() a "
                "KeyedStateBootstrapFunction; this is "
                f"{function!r:.80}"
            )
        return StateBootstrapTransformation(
            lambda max_parallelism, parallelism: _operator_state(self._data, function, parallelism)
        )


class KeyedOperatorTransformation:
    """Records with a key."""

    def __init__(self, data: object, key: Callable[[Any], Any]) -> None:
        self._data, self._key = data, key

    def transform(self, function: KeyedStateBootstrapFunction) -> StateBootstrapTransformation:
        """Keyed state."""
        if not isinstance(function, KeyedStateBootstrapFunction):
            raise ProgramError(
                "after key_by() transform() takes a KeyedStateBootstrapFunction, this is "
                f"{function!r:.80}"
            )
        return StateBootstrapTransformation(
            lambda max_parallelism, parallelism: _keyed_state(
                self._data, self._key, function, max_parallelism, parallelism
            )
        )

    def __repr__(self) -> str:
        return f"<KeyedOperatorTransformation by {self._key!r}>"


class StateBootstrapTransformation:
    """State of one operator in the making: ``SavepointWriter.with_operator`` takes it."""

    def __init__(self, make: Callable[[int, int], list[FrozenState]]) -> None:
        self._make = make

    def make(self, max_parallelism: int, parallelism: int) -> list[FrozenState]:
        """Runs the function over the records; what each subtask of so many saves."""
        return self._make(max_parallelism, parallelism)


def records_of(data: object) -> Iterator[Any]:
    """The records of data in any of the forms that ``bootstrap_with`` takes."""
    if hasattr(data, "sparkSession"):
        from flinkpy.spark.collected_frames import arrow_table_of

        data = arrow_table_of(data)
    elif type(data).__name__ in ("Series", "LazyFrame"):
        raise ProgramError(
            f"state is made of records, this is a {type(data).__name__}: give a DataFrame, "
            "whose rows are the records, or a list"
        )
    elif type(data).__module__.partition(".")[0] == "pandas":
        import pyarrow as pa

        data = pa.Table.from_pandas(data, preserve_index=False)
    elif hasattr(data, "__arrow_c_stream__"):  # of Polars, for one
        import pyarrow as pa

        data = pa.table(data)
    if hasattr(data, "to_batches") or hasattr(data, "to_struct_array"):
        from flinkpy.columns.values.conversion import rows_of_batch, without_views

        for batch in data.to_batches() if hasattr(data, "to_batches") else [data]:
            yield from rows_of_batch(without_views(batch))
    elif isinstance(data, Iterable):
        yield from data
    else:
        raise ProgramError(
            "state is made of records: an iterable, Arrow data or a DataFrame; this is "
            f"{data!r:.80}"
        )


def _keyed_state(
    data: object,
    key_of: Callable[[Any], Any],
    function: KeyedStateBootstrapFunction,
    max_parallelism: int,
    parallelism: int,
) -> list[FrozenState]:
    """One backend for all key groups; each subtask's share of it is what it saves."""
    backends = [
        HeapKeyedStateBackend(
            max_parallelism, key_group_range(subtask, max_parallelism, parallelism), SYSTEM_CLOCK
        )
        for subtask in range(parallelism)
    ]
    opened = [_Opened(backend, function) for backend in backends]
    for record in records_of(data):
        key = canonical_key(key_of(record))
        subtask = (
            channel_of_key_group(key_group(key, max_parallelism), max_parallelism, parallelism)
            if parallelism > 1
            else 0
        )
        opened[subtask].process(key, record)
    for each in opened:
        each.function.close()
    return [FrozenState(each.backend.freeze()) for each in opened]


class _Opened:
    """A function with its states in one backend. A function keeps its states in itself, so each
    backend has a copy."""

    def __init__(
        self, backend: HeapKeyedStateBackend, function: KeyedStateBootstrapFunction
    ) -> None:
        self.backend = backend
        self.function = copy.copy(function)
        self._context = BootstrapContext(backend.current)
        for name, timers in (
            (EVENT_TIMERS, self._context.event_timers),
            (PROCESSING_TIMERS, self._context.processing_timers),
        ):
            backend.register_region(
                name,
                lambda timers=timers: {key: sorted(each) for key, each in timers.items()},  # type: ignore[misc]
            )
        self.function.open(BackendStates(backend))

    def process(self, key: Any, record: Any) -> None:
        self.backend.current.key = key
        self.function.process_element(record, self._context)


def _operator_state(
    data: object, function: StateBootstrapFunction, parallelism: int
) -> list[FrozenState]:
    held = OperatorStateBackend()
    function.initialize_state(held)
    function.open(None)
    for record in records_of(data):
        function.process_element(record)
    function.close()
    return [
        FrozenState(operator=held.snapshot(1, SYSTEM_CLOCK.time_ms())),
        *(FrozenState() for _ in range(parallelism - 1)),
    ]
