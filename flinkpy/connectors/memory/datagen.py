"""A source of generated records: a function of the index, with or without an end, as fast as
possible or at a steady rate."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import length_hint
from typing import Any

from flinkpy.connectors.source_api.enumerators import SplitShares
from flinkpy.connectors.source_api.readers import NothingYet, SideBySideReader, SplitReader
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.clock import Clock
from flinkpy.core.codegen.idle_results import refuse_idle_records
from flinkpy.core.codegen.possible_results import may_give_idle
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError

_TIMER_ROUNDING_S = 1e-9  # a timer may fire this much too early


@dataclass(frozen=True)
class StrideSplit:
    """The indices ``next``, ``next + step``, … below ``end`` (None: without end). So all readers
    advance evenly."""

    split_id: str
    next: int
    step: int
    end: int | None


class DataGeneratorSource(Source[StrideSplit]):
    """Generates ``function(index)`` for the indices 0, 1, 2 … below ``count`` (None: without end),
    at ``rate`` records a second over all readers (None: as fast as they are consumed). Raises
    ProgramError for a negative ``count`` and a ``rate`` that is not positive.

    At a rate, each record is emitted when it is due, counted from the first one. A source that was
    held up catches up, so the number of records after any time is exact. With ``columns=True`` the
    function takes an int64 array of indices and returns a ``pyarrow.RecordBatch`` or a dict of
    columns.

    >>> source = DataGeneratorSource(lambda index: (index % 7, index), count=1000, rate=100)
    """

    has_timestamps = False

    def __init__(
        self,
        function: Callable[[Any], Any],
        count: int | None = None,
        rate: float | None = None,
        *,
        columns: bool = False,
    ) -> None:
        if count is not None and count < 0:
            raise ProgramError(f"count {count} is negative; leave it out for an unbounded stream")
        if rate is not None and rate <= 0:
            raise ProgramError(f"rate {rate} is not positive; leave it out for as fast as possible")
        self._function = function
        self._count = count
        self._rate = rate
        self._columns = columns

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self._count is not None else Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def is_columnar(self) -> bool:
        return self._columns

    def create_enumerator(
        self, context: SplitEnumeratorContext[StrideSplit], checkpoint: Any = None
    ) -> SplitEnumerator[StrideSplit]:
        def discover(parallelism: int) -> list[StrideSplit]:
            return [
                StrideSplit(f"{first}/{parallelism}", first, parallelism, self._count)
                for first in range(parallelism)
            ]

        return SplitShares(context, discover, checkpoint)

    def create_reader(self, context: ReaderContext) -> SourceReader[StrideSplit]:
        make = self._make_columns if self._columns else self._make_rows
        rate = self._rate
        if rate is None:
            return SideBySideReader(
                context, lambda split: GeneratingReader(split, make), awaits_all=True
            )
        return SideBySideReader(
            context, lambda split: RatedReader(split, make, rate, context.clock), awaits_all=True
        )

    @functools.cached_property
    def _may_give_idle(self) -> bool:
        return may_give_idle(self._function)

    def _make_rows(self, indices: range) -> Batch:
        function, upcoming = self._function, iter(indices)
        try:
            values = [function(index) for index in upcoming]
        except BaseException as error:
            failed = indices[-length_hint(upcoming) - 1]
            error.record_at_fault = failed  # type: ignore[attr-defined]
            raise
        if self._may_give_idle:
            refuse_idle_records(values, function)
        return RowBatch(values)

    def _make_columns(self, indices: range) -> Batch:
        import numpy as np

        from flinkpy.columns.values.conversion import batch_of_columns

        made = self._function(np.arange(indices.start, indices.stop, indices.step, dtype=np.int64))
        return ColumnBatch(batch_of_columns(made) if isinstance(made, dict) else made)

    def without_data(self) -> Source[StrideSplit]:
        return DataGeneratorSource(_nothing, self._count, self._rate, columns=self._columns)

    def __repr__(self) -> str:
        rate = f", {self._rate:g}/s" if self._rate is not None else ""
        return f"DataGeneratorSource({'unbounded' if self._count is None else self._count}{rate})"


def _nothing(index: Any) -> Any:
    """Replaces the function in the JobMaster, because only readers call it."""


class GeneratingReader(SplitReader[StrideSplit]):
    """Generates records as fast as they are consumed."""

    def __init__(self, split: StrideSplit, make: Callable[[range], Batch]) -> None:
        self._split, self._make = split, make
        self._next = self._last = split.next

    def next_batch(self, limit: int) -> Batch | NothingYet | None:
        start, step, end = self._next, self._split.step, self._split.end
        stop = start + limit * step
        if end is not None:
            if start >= end:
                return None
            stop = min(stop, end)
        self._last = start
        indices = range(start, stop, step)
        batch = self._make(indices)
        self._next = start + len(indices) * step
        return batch

    def snapshot(self) -> StrideSplit:
        return replace(self._split, next=self._next)

    def position(self) -> str:
        return f"index {self._last} of the generator"


class RatedReader(GeneratingReader):
    """Generates records at a steady rate: the record with index i is due i / rate seconds after the
    one with index 0."""

    def __init__(
        self, split: StrideSplit, make: Callable[[range], Batch], rate: float, clock: Clock
    ) -> None:
        super().__init__(split, make)
        self._rate, self._clock = rate, clock
        self._start = clock.monotonic() - (split.next - split.next % split.step) / rate

    def next_batch(self, limit: int) -> Batch | NothingYet | None:
        split, rate = self._split, self._rate
        if split.end is not None and self._next >= split.end:
            return None
        late = self._clock.monotonic() - self._start - self._next / rate
        if late < -_TIMER_ROUNDING_S:
            return NothingYet(-late)
        due = int(max(0.0, late) * rate / split.step) + 1
        return super().next_batch(min(due, limit))
