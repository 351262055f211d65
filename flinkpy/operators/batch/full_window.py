"""``full_window_partition`` of a stream without keys: a call over all records that one subtask
gets, when they have ended. What the call keeps of them lies on disk beyond its memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import chain, repeat
from types import MappingProxyType
from typing import Any

from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.core.elements import MAX_TIMESTAMP, Batch, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.core.options.engine import RUNTIME_MODE, SORT_MEMORY, RuntimeMode, spill_folders
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.core.options.schema import read
from flinkpy.metrics.definitions import SPILLED_BYTES
from flinkpy.operators.base import BatchForm, OneInputOperator, WorksAtItsEnd
from flinkpy.operators.batch.sorted_records import SortedRecords
from flinkpy.operators.batch.sorting import KeyGroups
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.functions import close_function, method_of, open_function
from flinkpy.operators.row_batches import rows
from flinkpy.operators.spilling.operator_memory import OperatorMemory
from flinkpy.operators.user_errors import user_code_error
from flinkpy.operators.yielding import Moment, emit_results


class PartitionCall(ABC):
    """What is called for a partition; one attempt has one."""

    function: Any
    spilled = 0

    def begin(self, context: OperatorContext, memory: int) -> None:
        """The first record may come; ``memory`` is how many bytes may be kept."""

    @abstractmethod
    def add(self, values: list[Any]) -> None:
        """Takes records."""

    @abstractmethod
    def results(self) -> Iterable[Any] | None:
        """What the call gives for all records."""

    def close(self) -> None:
        """Frees what is kept."""


class Reduced(PartitionCall):
    """The records reduced to one; none of no record."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def begin(self, context: OperatorContext, memory: int) -> None:
        self._reduce: Callable[[Any, Any], Any] = method_of(self.function, "reduce")
        self._found: list[Any] = []

    def add(self, values: list[Any]) -> None:
        self._found = [reduce(self._reduce, [*self._found, *values])]

    def results(self) -> Iterable[Any]:
        return self._found


class Aggregated(PartitionCall):
    """The result of an AggregateFunction, also of no record."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def begin(self, context: OperatorContext, memory: int) -> None:
        self._accumulator = self.function.create_accumulator()

    def add(self, values: list[Any]) -> None:
        accumulator, add = self._accumulator, self.function.add
        for value in values:
            accumulator = add(value, accumulator)
        self._accumulator = accumulator

    def results(self) -> Iterable[Any]:
        return [self.function.get_result(self._accumulator)]


class Mapped(PartitionCall):
    """What a function makes of an iterator over the records."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def begin(self, context: OperatorContext, memory: int) -> None:
        self._kept = KeyGroups(memory, spill_folders(context.configuration), by_time=False)

    def add(self, values: list[Any]) -> None:
        self._kept.add(repeat(None), values)
        self.spilled = self._kept.spilled

    def results(self) -> Iterable[Any] | None:
        records = chain.from_iterable(
            chunk for _, chunks in self._kept.groups() for chunk in chunks
        )
        given: Iterable[Any] | None = method_of(self.function, "map_partition")(records)
        return given

    def close(self) -> None:
        self._kept.close()


class Sorted(PartitionCall):
    """The records in the order of a key."""

    def __init__(self, function: Any, *, descending: bool) -> None:
        self.function = function
        self.descending = descending

    def begin(self, context: OperatorContext, memory: int) -> None:
        self._kept = SortedRecords(
            method_of(self.function, "get_key"),
            descending=self.descending,
            memory=memory,
            folders=spill_folders(context.configuration),
        )

    def add(self, values: list[Any]) -> None:
        self._kept.add(values)
        self.spilled = self._kept.spilled

    def results(self) -> Iterable[Any]:
        return self._kept.records()

    def close(self) -> None:
        self._kept.close()


class FullWindowOperator(WorksAtItsEnd, OneInputOperator):
    """Makes a call over all records of its subtask. Its results have no timestamps."""

    batch_form = BatchForm.AS_IN_STREAM
    takes_no_policy = "sees all records at once: catch the exception in the function"
    takes_changes = INSERT_ONLY
    emits_changes = INSERT_ONLY
    memory_weights = MappingProxyType({MemoryKind.OPERATOR: 1})
    parks = True
    _end_of_time: Watermark | None = None

    def __init__(self, call: PartitionCall) -> None:
        self.call = call

    def open(self) -> None:
        values = self.context.configuration
        if read(values, RUNTIME_MODE) is not RuntimeMode.BATCH:
            raise ProgramError(
                "full_window_partition() of a stream without keys keeps its records in no "
                "checkpoint: run in BATCH (env.set_runtime_mode(RuntimeExecutionMode.BATCH)), or "
                "call key_by(...) before it"
            )
        self._memory = OperatorMemory.of(self.context)
        open_function(self.call.function, self.context)
        share = self._memory.limit
        self.call.begin(self.context, read(values, SORT_MEMORY) if share is None else share)

    def close(self) -> None:
        if hasattr(self, "_memory"):
            self.call.close()
            self._memory.close()
        close_function(self.call.function)

    def measures(self, now_ms: int) -> dict[str, float]:
        return {SPILLED_BYTES: self.call.spilled} if self.call.spilled else {}

    def process_batch(self, batch: Batch) -> None:
        values = rows(batch).values
        try:
            self.call.add(values)
        except ProgramError:
            raise
        except Exception as error:
            raise user_code_error(error, self.context) from error

    def process_watermark(self, watermark: Watermark) -> None:
        if watermark.timestamp == MAX_TIMESTAMP:
            self._end_of_time = watermark

    def finish(self) -> None:
        self._rest = self._work()

    def _work(self) -> Iterator[None]:
        yield from emit_results(
            lambda _, at: self.call.results(),
            (None,),
            None,
            Moment(),
            self,
            endless=True,
            names_record=False,
        )
        if self._end_of_time is not None:
            self.output.emit_control(self._end_of_time)
