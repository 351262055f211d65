"""Windows that have no room in memory give what windows in memory give: on disk from the first
record on, or from some, with a failure in between, restored with another backend and another number
of subtasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns import col
from flinkpy.columns.aggregate_plan import aggregate_calls
from flinkpy.core.elements import MAX_TIMESTAMP, ColumnBatch, RowBatch, Watermark
from flinkpy.core.keys import channel_of_key_group, key_group
from flinkpy.core.options.state import ROCKSDB_DIRECTORY, ROCKSDB_OBJECTS
from flinkpy.operators.base import OneInputOperator
from flinkpy.state.far_timers import FarTimers
from flinkpy.state.held_values import HeldValues
from flinkpy.state.snapshots.saved_state import SavedState
from flinkpy.state.timed_entries import SlicesBeyondMemory
from flinkpy.windowing.assigners import SlidingEventTimeWindows
from flinkpy.windowing.general.contents import ListContents, ReduceContents
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.session_windows import EventTimeSessionWindows
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.window_functions import ProcessWindowFunction
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.windowing.slice_harness import (
    ELEMENTS,
    SLICINGS,
    Alone,
    aggregate_windows,
    by_time,
    elements_of,
    field_windows,
    rescaled,
)
from tests.windowing.test_slice_operator import EVALUATE, FIRST, SLIDING, joined, operator_of, share

_IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
NO_ROOM: dict[str, Any] = {ROCKSDB_OBJECTS.key: "0 b"}
if _IN_MEMORY is not None:
    NO_ROOM[ROCKSDB_DIRECTORY.key] = _IN_MEMORY


@pytest.fixture(autouse=True)
def _looks_at_each_batch() -> Iterator[None]:
    with (
        mock.patch.object(SlicesBeyondMemory, "few", 0),
        mock.patch.object(SlicesBeyondMemory, "at_once", 2),
        mock.patch.object(HeldValues, "at_once", 1),
        mock.patch.object(FarTimers, "few", 1),
    ):
        yield


class Subtasks:
    """All subtasks of one attempt."""

    def __init__(
        self,
        make: Callable[[], OneInputOperator],
        parallelism: int,
        backend: str,
        saved: list[SavedState] | None = None,
    ) -> None:
        self.each = [
            Alone(
                make(),
                None if saved is None else rescaled(saved, subtask, parallelism),
                subtask,
                parallelism,
                backend=backend,
                options=NO_ROOM,
            )
            for subtask in range(parallelism)
        ]

    def push(self, element: RowBatch | Watermark) -> None:
        for subtask, alone in enumerate(self.each):
            alone.push(share(element, subtask, len(self.each)))

    def close(self) -> None:
        for alone in self.each:
            alone.operator.close()

    @property
    def results(self) -> list[tuple[Any, int]]:
        return [result for alone in self.each for result in alone.results]


BACKENDS = st.sampled_from(["rocksdb", "rocksdb", "hashmap"])


@settings(max_examples=25, deadline=None)
@given(
    ELEMENTS,
    SLICINGS,
    st.sampled_from(sorted(EVALUATE)),
    st.sampled_from([0, 4]),
    st.integers(0, 14),
    st.sampled_from([(1, 1), (1, 2), (2, 1)]),
    st.tuples(BACKENDS, BACKENDS),
)
def test_windows_without_room_in_memory_give_what_windows_in_memory_give(
    drawn: list[Any],
    slicing: Slicing,
    kind: str,
    lateness: int,
    cut: int,
    scales: tuple[int, int],
    backends: tuple[str, str],
) -> None:
    elements, make = elements_of(drawn), partial(operator_of, kind, slicing, lateness)
    whole = Alone(make())
    before = Subtasks(make, scales[0], backends[0])
    for element in elements[:cut]:
        whole.push(element)
        before.push(element)
    saved = [alone.snapshot() for alone in before.each]
    before.close()
    after = Subtasks(make, scales[1], backends[1], saved)
    for told in whole.out.watermarks[-1:]:
        after.push(Watermark(told))
    for element in elements[cut:]:
        whole.push(element)
        after.push(element)
    assert by_time(before.results + after.results) == by_time(whole.results)
    for alone in after.each:
        assert not alone.operator.store.starts  # type: ignore[attr-defined]
        assert not any(alone.operator.backend.statistics.keys.values())  # type: ignore[attr-defined]
    after.close()


def test_records_are_added_to_what_lies_on_disk() -> None:
    """Each batch finds the accumulator of the one before there."""
    whole, alone = (
        Alone(operator_of("sum", SLIDING), backend=backend, options=NO_ROOM)
        for backend in ("hashmap", "rocksdb")
    )
    for number in (1, 2, 4, 8):
        for each in (whole, alone):
            each.push(RowBatch([("a", number, 0)], [3]))
    for each in (whole, alone):
        each.push(Watermark(MAX_TIMESTAMP))
        each.operator.close()
    assert alone.results == whole.results
    assert {value[1] for value, _ in whole.results} == {15}


@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_keys_on_disk_of_a_subtask_that_was_ahead_are_not_evaluated_twice(backend: str) -> None:
    keys = {channel_of_key_group(key_group(key, 8), 8, 2): key for key in "abcdefgh"}
    make = partial(operator_of, "sum", SLIDING)
    before = Subtasks(make, 2, "rocksdb")
    for key in keys.values():
        before.push(RowBatch([(key, 1, 0), (key, 2, 0)], [3, 7]))
        before.push(RowBatch([(key, 4, 0)], [8]))  # what came before is written now
    ahead, behind = before.each
    ahead.push(Watermark(9))
    saved = [alone.snapshot() for alone in before.each]
    after = Subtasks(make, 1, backend, saved)
    after.push(Watermark(5))
    again = Subtasks(make, 1, backend, [after.each[0].snapshot()])
    again.push(Watermark(MAX_TIMESTAMP))
    behind.push(Watermark(MAX_TIMESTAMP))
    ahead.push(Watermark(MAX_TIMESTAMP))
    first = [result for result in ahead.results if result[1] > 9]
    assert by_time(after.results + again.results) == by_time(first + behind.results)
    for each in (before, after, again):
        each.close()


class Gathered(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, context.window().start, sorted(map(repr, elements))


ASSIGNERS: dict[str, Callable[[], Any]] = {
    "sessions": lambda: EventTimeSessionWindows(4),
    "sliding": lambda: SlidingEventTimeWindows(9, 3, 0),
}
CONTENTS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "reduced": lambda: (ReduceContents(joined),),
    "listed": lambda: (ListContents(), Gathered()),
}


@pytest.mark.wide(but=("reduced-sessions",))
@settings(max_examples=20, deadline=None)
@given(
    ELEMENTS,
    st.integers(0, 14),
    st.sampled_from([(1, 1), (1, 2), (2, 1)]),
    st.tuples(BACKENDS, BACKENDS),
)
@pytest.mark.parametrize("assigner", ASSIGNERS)
@pytest.mark.parametrize("contents", CONTENTS)
def test_general_windows_without_room_in_memory_give_what_windows_in_memory_give(
    contents: str,
    assigner: str,
    drawn: list[Any],
    cut: int,
    scales: tuple[int, int],
    backends: tuple[str, str],
) -> None:
    def make() -> WindowOperator:
        return WindowOperator(
            FIRST, WindowingStrategy(ASSIGNERS[assigner]()), *CONTENTS[contents]()
        )

    elements = elements_of(drawn)
    whole, before = Alone(make()), Subtasks(make, scales[0], backends[0])
    for element in elements[:cut]:
        whole.push(element)
        before.push(element)
    saved = [alone.snapshot() for alone in before.each]
    given = before.results
    before.push(RowBatch([("a", 7, 7)], [1_000]))  # what was saved is not touched
    before.close()
    after = Subtasks(make, scales[1], backends[1], saved)
    for told in whole.out.watermarks[-1:]:
        after.push(Watermark(told))
    for element in elements[cut:]:
        whole.push(element)
        after.push(element)
    assert by_time(given + after.results) == by_time(whole.results)
    after.close()


CALLS = aggregate_calls(
    [
        col("v").sum.alias("sum"),
        col("v").count.alias("count"),
        (col("v") / 7).sum.alias("rounded"),
        (col("v") / 7).max.alias("max"),
    ],
    "test",
)
COLUMNS: dict[str, Callable[[Slicing, int], OneInputOperator]] = {
    "rounded": lambda slicing, lateness: aggregate_windows(["k"], slicing, True, CALLS, lateness),
    "exact": lambda slicing, lateness: aggregate_windows(["k"], slicing, True, CALLS[:2], lateness),
    "first": lambda slicing, lateness: field_windows(["k"], slicing, True, "min", "v", lateness),
    "all": lambda slicing, lateness: aggregate_windows([], slicing, True, CALLS, lateness),
}


@pytest.mark.wide(but=("rounded",))
@settings(max_examples=12, deadline=None)
@given(
    ELEMENTS, SLICINGS, st.sampled_from([0, 4]), st.integers(0, 14), st.tuples(BACKENDS, BACKENDS)
)
@pytest.mark.parametrize("form", COLUMNS)
def test_windows_of_columns_without_room_in_memory_give_what_windows_in_memory_give(
    form: str,
    drawn: list[Any],
    slicing: Slicing,
    lateness: int,
    cut: int,
    backends: tuple[str, str],
) -> None:
    elements = [in_columns(each) for each in elements_of(drawn)]
    make = partial(COLUMNS[form], slicing, lateness)
    whole = Alone(make())
    before = Alone(make(), backend=backends[0], options=NO_ROOM)
    for element in elements[:cut]:
        whole.push(element)
        before.push(element)
    after = Alone(make(), before.snapshot(), backend=backends[1], options=NO_ROOM)
    before.operator.close()
    for told in whole.out.watermarks[-1:]:
        after.push(Watermark(told))
    for element in elements[cut:]:
        whole.push(element)
        after.push(element)
    assert by_time(before.results + after.results) == by_time(whole.results)
    assert not after.operator.store.starts  # type: ignore[attr-defined]
    after.operator.close()


def in_columns(element: RowBatch | Watermark) -> Any:
    if isinstance(element, Watermark):
        return element
    keys, values, _ = zip(*element.values)
    data = pa.RecordBatch.from_pydict({"k": list(keys), "v": list(values)})
    return ColumnBatch(data, np.array(element.timestamps, np.int64))


@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_columns_on_disk_of_a_subtask_that_was_ahead_are_not_evaluated_twice(backend: str) -> None:
    keys = {channel_of_key_group(key_group(key, 8), 8, 2): key for key in "abcdefgh"}
    make = partial(COLUMNS["rounded"], SLIDING, 0)
    before = Subtasks(make, 2, "rocksdb")
    for subtask, key in keys.items():
        for records, stamps in ((((key, 1, 0), (key, 2, 0)), [3, 7]), (((key, 4, 0),), [8])):
            batch = in_columns(RowBatch(list(records), stamps))
            before.each[subtask].push(batch)
    ahead, behind = before.each
    ahead.push(Watermark(9))
    saved = [alone.snapshot() for alone in before.each]
    after = Subtasks(make, 1, backend, saved)
    after.push(Watermark(5))
    again = Subtasks(make, 1, backend, [after.each[0].snapshot()])
    again.push(Watermark(MAX_TIMESTAMP))
    behind.push(Watermark(MAX_TIMESTAMP))
    ahead.push(Watermark(MAX_TIMESTAMP))
    first = [result for result in ahead.results if result[1] > 9]
    assert by_time(after.results + again.results) == by_time(first + behind.results)
    for each in (before, after, again):
        each.close()


def check_rounded(slicing: Slicing, batches: list[Any]) -> None:
    """Sums of floats are those of memory to the last bit."""
    sums = []
    for backend in ("hashmap", "rocksdb"):
        alone = Alone(COLUMNS["rounded"](slicing, 0), backend=backend, options=NO_ROOM)
        for element in (*batches, Watermark(MAX_TIMESTAMP)):
            alone.push(element)
        sums.append(by_time(alone.results))
        alone.operator.close()
    assert sums[0] == sums[1]


def test_sums_of_floats_on_disk_are_rounded_as_those_in_memory() -> None:
    batches = [
        in_columns(RowBatch([("a", at * 37 % 50 + each, 0) for each in range(3)], [1, 2, 3]))
        for at in range(20)
    ]
    check_rounded(SLIDING, batches)


def test_a_window_adds_up_what_its_slices_have_also_where_keys_came_late_to_one_on_disk() -> None:
    batches = [
        in_columns(RowBatch([("b", 1, 0), ("a", -1, 0)], [0, -1])),
        in_columns(RowBatch([("a", -2, 0), ("a", -3, 0)], [0, 0])),
    ]
    check_rounded(Slicing(2, 1, 0), batches)
