"""Windows by slices of a batch job give with little memory what they give with any, window by
window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import MAX_TIMESTAMP, Batch, ColumnBatch, RowBatch, Watermark
from flinkpy.core.errors import UserCodeError
from flinkpy.operators.base import OneInputOperator
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.spilling.spilled_slices import SpilledSlices
from flinkpy.windowing.slices.slices_in_files import PiecesForm
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.window_functions import ProcessWindowFunction
from tests.open_files import open_spill_files
from tests.operators.harness import ChainHarness, linear
from tests.operators.joining import stamped
from tests.values import KEYS, may_meet
from tests.windowing.slice_harness import SLICINGS, row_windows
from tests.windowing.test_joins_that_spill import shown
from tests.windowing.test_slice_operator import EVALUATE, FIRST, joined
from tests.windowing.test_windows_beyond_memory import COLUMNS

TUMBLING, SLIDING = Slicing(10, 10, 0), Slicing(20, 10, 0)


@pytest.fixture(autouse=True)
def _small_pieces() -> Iterator[None]:
    with mock.patch.object(PiecesForm, "at_once", 3):
        yield


class Told(ProcessWindowFunction):
    """Says the key, the window and the value."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield shown(key), context.window().start, list(elements)


def appended(left: Any, right: Any) -> Any:
    """Changes what it is given."""
    left[1].extend(right[1])
    return left


def of_rows(kind: str, function: Any = None) -> Callable[[Slicing], OneInputOperator]:
    reduce_function = {"reduce": joined, "append": appended}.get(kind)
    return lambda slicing: row_windows(
        FIRST, slicing, True, "reduce" if reduce_function else kind, 1, reduce_function, function
    )


def rows(records: Any) -> Batch:
    return RowBatch(
        [(key, number, number) for key, number, _ in records], [stamp for *_, stamp in records]
    )


def lists(records: Any) -> Batch:
    """Records that can be changed."""
    return RowBatch([(key, [number]) for key, number, _ in records], [each[2] for each in records])


def columns(records: Any) -> Batch:
    data = pa.record_batch(
        {"k": [each[0] for each in records], "v": [each[1] for each in records]},
        schema=pa.schema({"k": pa.string(), "v": pa.int64()}),
    )
    return ColumnBatch(data, np.array([each[2] for each in records]))


ROWS: dict[str, Any] = {kind: (of_rows(kind), rows) for kind in EVALUATE}
ROWS["append"] = of_rows("append"), lists
ROWS["function"] = of_rows("sum", Told()), rows
FORMS = ROWS | {
    f"columns, {name}": (lambda slicing, make=make: make(slicing, 0), columns)
    for name, make in COLUMNS.items()
}


class Job:
    """A batch job of one operator with so much memory."""

    def __init__(self, form: str, slicing: Slicing, memory: int | None) -> None:
        make, self._batch = FORMS[form]
        self.operator = batch_form(make(slicing))
        self.harness = ChainHarness(linear(self.operator), memory=memory)

    def take(self, records: Any) -> None:
        self.harness.chain.batch_inputs()[0](self._batch(records))
        self.harness.settle()

    def end(self, frees: bool = False) -> list[Any]:
        """The results with their timestamps, in the order of their windows."""
        harness = self.harness
        harness.control(Watermark(MAX_TIMESTAMP))
        while not harness.chain.finish():
            if frees:
                self.operator.free_memory()
            harness.settle()
        harness.settle()
        assert harness.chain.close() == []
        assert harness.managed_memory.reserved == 0
        results = [
            each
            for batch in harness.writers[0].elements
            if isinstance(batch, (RowBatch, ColumnBatch))
            for each in stamped(batch)
        ]
        # of one window, the order of keys is not said
        return [
            sorted(map(shown, some)) for _, some in groupby(results, key=lambda result: result[1])
        ]

    @property
    def spilled(self) -> float:
        found: float = self.operator.measures(0).get("spilledBytes", 0)
        return found


def records_of(keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    record = st.tuples(keys, st.integers(-99, 99), st.integers(-20, 40))
    return st.lists(st.lists(record, min_size=1, max_size=9), max_size=12)


@pytest.mark.wide(but=("reduce", "append", "columns, rounded"))
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25, deadline=None)
@given(st.data(), SLICINGS, st.sampled_from([0, 3000, 8000, 1 << 20]), st.integers(-1, 9))
def test_windows_with_little_memory_give_what_windows_with_any_give(
    form: str, data: st.DataObject, slicing: Slicing, memory: int, frees_at: int
) -> None:
    keys = KEYS if form in ROWS else st.sampled_from("abcdef") | st.none()
    steps = data.draw(records_of(keys))
    assume(may_meet([key for records in steps for key, *_ in records]))
    found = []
    for limit in (None, memory):
        job = Job(form, slicing, limit)
        for number, records in enumerate(steps):
            if number == frees_at:
                job.operator.free_memory()
            job.take(records)
        found.append(job.end(frees=frees_at > 6))
        assert limit is not None or not job.spilled
        # a batch in columns is looked at when the next one comes
        if limit == 0 and len(steps) > 1 and found[0]:
            assert job.spilled
    assert found[0] == found[1]


@pytest.mark.parametrize("form", ["sum", "append"])
def test_what_does_not_fit_is_put_together_in_portions(form: str) -> None:
    steps = [[(f"key {key}", at, at % 40) for key in range(40)] for at in range(20)]
    seen: list[int] = []
    whole = SpilledSlices._fitting

    def watched(self: Any, pieces: Any, size: int, level: int) -> Any:
        for portion in whole(self, pieces, size, level):
            seen.append(sum(map(self._form.size, portion)))
            yield portion

    found = []
    with mock.patch.object(SpilledSlices, "_fitting", watched):
        for memory in (None, 60_000):
            job = Job(form, SLIDING, memory)
            for records in steps:
                job.take(records)
            found.append(job.end())
    assert found[0] == found[1]
    assert len(seen) > 6
    assert max(seen) <= 30_000


def test_keys_that_are_added_to_take_no_more_memory() -> None:
    job = Job("sum", TUMBLING, 100_000)
    for at in range(200):
        job.take([("ab"[at % 2], 1, 5)] * 50)
    assert not job.spilled
    assert job.end() == [sorted(shown(((key, 5000, 1), 9)) for key in "ab")]


def test_files_are_gone_when_the_operator_closes_also_if_it_fails() -> None:
    before = open_spill_files()
    job = Job("sum", TUMBLING, 0)
    job.take([("a", 1, 5)])
    assert open_spill_files() == before + 1
    job.harness.chain.close()
    assert open_spill_files() == before
    assert job.harness.managed_memory.reserved == 0


def test_a_record_that_fails_while_it_waits_is_named() -> None:
    job = Job("sum", TUMBLING, 0)
    job.take([("a", 1, 5)])
    job.take([("a", "one", 5)])
    with pytest.raises(UserCodeError) as caught:
        job.end()
    assert caught.value.record == "('a', 'one', 'one')"
    job.harness.chain.close()


def test_records_that_wait_in_memory_are_not_changed_by_one_of_several_windows() -> None:
    found = []
    for memory in (None, 1 << 20):
        job = Job("append", SLIDING, memory)
        job.take([("a", 1, 5)])
        job.operator.free_memory()
        job.take([("b", 2, 5), ("b", 3, 5)])
        found.append(job.end())
    assert found[0] == found[1]
