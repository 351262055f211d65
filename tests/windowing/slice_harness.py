"""One window operator alone, and what Flink's rules make of the same elements: record by record,
window by window, without slices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.types import Row
from flinkpy.core.elements import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Batch,
    CheckpointBarrier,
    ColumnBatch,
    ControlElement,
    RowBatch,
    Watermark,
)
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.core.keys import key_group_range
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import OneInputOperator
from flinkpy.operators.context import OperatorContext, Output, TaskInfo
from flinkpy.state.snapshots.saved_state import SavedState
from flinkpy.windowing.slices.column_slices import AggregateSlices, FieldSlices
from flinkpy.windowing.slices.operator import SliceOperator
from flinkpy.windowing.slices.row_slices import RowSlices
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windows import TimeWindow
from tests.operators.harness import ManualTimers, do_all
from tests.state_bytes import keyed_share

LATE = OutputTag("late")
BARRIER = CheckpointBarrier(1, 0)
MAX_PARALLELISM = 8


class Gathered(Output):
    """Everything that came out: main results, side results, watermarks."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.side: list[tuple[Any, int]] = []
        self.watermarks: list[int] = []

    def emit(self, batch: Batch) -> None:
        assert len(batch) > 0
        self.batches.append(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        assert tag_id == LATE.tag_id
        assert isinstance(batch, RowBatch)
        self.side += [
            (tuple(record), stamp) if isinstance(record, Row) else (record, stamp)
            for record, stamp in stamped([batch])
        ]

    def emit_control(self, element: ControlElement) -> None:
        assert isinstance(element, Watermark)
        self.watermarks.append(element.timestamp)


def stamped(batches: Sequence[Batch]) -> list[tuple[Any, int]]:
    """Records with their timestamps; of columns, as tuples."""
    found: list[tuple[Any, int]] = []
    for batch in batches:
        if isinstance(batch, ColumnBatch):
            assert batch.timestamps is not None
            found += zip(
                [tuple(row.values()) for row in batch.data.to_pylist()], batch.timestamps.tolist()
            )
        else:
            assert batch.timestamps is not None
            found += zip(batch.values, batch.timestamps)
    return found


class Alone:
    """One attempt of one subtask of the operator."""

    def __init__(
        self,
        operator: OneInputOperator,
        restored: SavedState | None = None,
        subtask: int = 0,
        parallelism: int = 1,
        timers: ManualTimers | None = None,
        batch_records: int = 3,
        backend: str = "hashmap",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.operator = operator
        self.out = Gathered()
        self.timers = timers or ManualTimers()
        task = TaskInfo(
            "job",
            "task",
            ExecutionAttemptId(JobId("job"), JobVertexId("vertex"), subtask, 0),
            parallelism,
            MAX_PARALLELISM,
        )
        context = OperatorContext(
            OperatorId("op"),
            "windows",
            None,
            task,
            self.timers.clock,
            self.timers,
            lambda action: action(),
            lambda event: None,
            {"state.backend.type": backend, **(options or {})},
            batch_records=batch_records,
        )
        operator.setup(context, self.out)
        operator.initialize_state(restored)
        operator.open()

    def push(self, element: Batch | Watermark) -> None:
        if isinstance(element, Watermark):
            do_all(self.operator.process_watermark(element))
        elif len(element):
            do_all(self.operator.process_batch(element))

    def snapshot(self) -> SavedState:
        return self.operator.freeze_state(BARRIER).write()

    @property
    def results(self) -> list[tuple[Any, int]]:
        return stamped(self.out.batches)


@dataclass
class Model:
    """Event-time windows by Flink's rules: ``evaluate`` makes the result of a window's records of
    one key, in the order of their slices, and within a slice as they came. (Windows that do not
    overlap have one slice.)"""

    slicing: Slicing
    evaluate: Callable[[list[Any]], Any]
    select: Callable[[Any], Any]
    lateness: int = 0

    def __post_init__(self) -> None:
        self.watermark = MIN_TIMESTAMP
        self.contents: dict[tuple[TimeWindow, Any], list[tuple[int, Any]]] = {}
        self.timers: set[tuple[TimeWindow, Any]] = set()
        self.results: list[tuple[Any, int]] = []
        self.late: list[tuple[Any, int]] = []

    def push(self, element: RowBatch | Watermark) -> None:
        if isinstance(element, Watermark):
            self._advance(element.timestamp)
        else:
            assert element.timestamps is not None
            for record, stamp in zip(element.values, element.timestamps):
                self._record(record, stamp)

    def _windows(self, stamp: int) -> list[TimeWindow]:
        size, slide, offset = self.slicing.size, self.slicing.slide, self.slicing.offset
        last = stamp - (stamp - offset) % slide
        return [TimeWindow(start, start + size) for start in range(last, stamp - size, -slide)]

    def _record(self, record: Any, stamp: int) -> None:
        skipped = True
        for window in self._windows(stamp):
            if window.end - 1 + self.lateness <= self.watermark:
                continue
            skipped = False
            place = window, self.select(record)
            self.contents.setdefault(place, []).append((self.slicing.slice_of(stamp), record))
            if window.end - 1 <= self.watermark:
                self._fire(place)
            else:
                self.timers.add(place)
        if skipped and stamp + self.lateness <= self.watermark:
            self.late.append((record, stamp))

    def _advance(self, watermark: int) -> None:
        self.watermark = max(self.watermark, watermark)
        for place in sorted(
            (each for each in self.timers if each[0].end - 1 <= self.watermark),
            key=lambda each: each[0].end,
        ):
            self.timers.discard(place)
            self._fire(place)
        for window, key in list(self.contents):
            if min(window.end - 1 + self.lateness, MAX_TIMESTAMP) <= self.watermark:
                del self.contents[window, key]

    def _fire(self, place: tuple[TimeWindow, Any]) -> None:
        records = [record for _, record in sorted(self.contents[place], key=lambda each: each[0])]
        self.results.append((self.evaluate(records), place[0].end - 1))


SPAN = st.integers(1, 12)
SLICINGS = st.builds(
    lambda size, slide, offset: Slicing(size, slide, offset % slide), SPAN, SPAN, st.integers(0, 11)
) | st.builds(lambda size: Slicing(size, size, 0), SPAN)
RECORDS = st.tuples(st.sampled_from("abc"), st.integers(-50, 50), st.integers(0, 9))
ELEMENTS = st.lists(
    st.lists(st.tuples(RECORDS, st.integers(-8, 6)), max_size=8) | st.integers(-4, 6), max_size=14
)


def elements_of(drawn: list[Any]) -> list[RowBatch | Watermark]:
    """Batches of records around a time that goes on, and watermarks, the last one the end of
    time."""
    elements: list[RowBatch | Watermark] = []
    now, watermark = 20, 0
    for each in drawn:
        if isinstance(each, int):
            now += 2
            watermark = max(watermark, now + each - 4)
            elements.append(Watermark(watermark))
        elif each:
            now += 3
            elements.append(
                RowBatch([record for record, _ in each], [now + shift for _, shift in each])
            )
    return [*elements, Watermark(MAX_TIMESTAMP)]


def by_time(results: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """In an order that does not depend on the order of keys."""
    return sorted(results, key=lambda result: (result[1], repr(result[0])))


def rescaled(saved: list[SavedState], subtask: int, parallelism: int) -> SavedState:
    """The state of a subtask, out of that of all of them before."""
    return keyed_share(saved, key_group_range(subtask, MAX_PARALLELISM, parallelism))


def row_windows(
    key: KeySpec | None,
    slicing: Slicing,
    event_time: bool,
    kind: str,
    position: Any = None,
    reduce_function: Any = None,
    window_function: Any = None,
    lateness: int = 0,
    late_tag: OutputTag | None = None,
) -> SliceOperator:
    return SliceOperator(
        RowSlices(key, kind, position, reduce_function, window_function),
        slicing,
        event_time,
        lateness,
        late_tag,
    )


def field_windows(
    keys: Sequence[str],
    slicing: Slicing,
    event_time: bool,
    kind: str,
    position: int | str,
    lateness: int = 0,
    late_tag: OutputTag | None = None,
) -> SliceOperator:
    return SliceOperator(FieldSlices(keys, kind, position), slicing, event_time, lateness, late_tag)


def aggregate_windows(
    keys: Sequence[str],
    slicing: Slicing,
    event_time: bool,
    calls: Sequence[Any],
    lateness: int = 0,
    late_tag: OutputTag | None = None,
) -> SliceOperator:
    return SliceOperator(AggregateSlices(keys, calls), slicing, event_time, lateness, late_tag)
