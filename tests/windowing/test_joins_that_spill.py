"""Window joins of a batch job give with little memory what they give with any."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import MAX_TIMESTAMP, Batch, ColumnBatch, RowBatch, Watermark
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.spilling.spilled_slices import SpilledSlices
from flinkpy.windowing.assigners import TumblingEventTimeWindows
from flinkpy.windowing.joins.columnar_join import ColumnarJoinOperator
from flinkpy.windowing.joins.spilled_columns import ColumnsForm
from flinkpy.windowing.joins.spilled_sides import SidesForm
from flinkpy.windowing.joins.window_co_group import WindowCoGroupOperator
from flinkpy.windowing.joins.window_join import WindowJoinOperator
from tests.open_files import open_spill_files
from tests.operators.harness import ChainHarness, linear
from tests.operators.joining import stamped
from tests.values import KEYS
from tests.windowing.joins import ASSIGNERS, FIRST, columns, group, pair

Made: TypeAlias = "tuple[Callable[[Any], Any], Callable[[int, Any], Batch]]"


def rows(side: int, records: Any) -> Batch:
    return RowBatch([value for value, _ in records], [stamp for _, stamp in records])


ROWS: dict[str, Made] = {
    "join": (lambda assigner: WindowJoinOperator(pair, FIRST, FIRST, assigner), rows),
    "flat join": (
        lambda assigner: WindowJoinOperator(
            lambda one, other: [one, other], FIRST, FIRST, assigner, flat=True
        ),
        rows,
    ),
    "co-group": (lambda assigner: WindowCoGroupOperator(group, FIRST, FIRST, assigner), rows),
}
COLUMNS: dict[str, Made] = {
    "columns": (lambda assigner: ColumnarJoinOperator(["k"], ["k"], assigner), columns)
}
FORMS = ROWS | COLUMNS


@pytest.fixture(autouse=True)
def _small_pieces() -> Iterator[None]:
    with mock.patch.object(SidesForm, "at_once", 3), mock.patch.object(ColumnsForm, "at_once", 3):
        yield


def records_of(keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Batches: the side, then records with their moments."""
    record = st.tuples(st.tuples(keys, st.integers(0, 999)), st.integers(-20, 40))
    batch = st.tuples(st.integers(0, 1), st.lists(record, min_size=1, max_size=9))
    return st.lists(batch, max_size=12)


class Job:
    """A batch job of one operator with so much memory."""

    def __init__(self, made: Made, assigner: Any, memory: int | None) -> None:
        make, self._batches = made
        self.operator = batch_form(make(assigner))
        self._harness = ChainHarness(linear(self.operator, inputs=2), memory=memory)

    def take(self, side: int, records: Any) -> None:
        self._harness.chain.batch_inputs()[side](self._batches(side, records))
        self._harness.settle()

    def end(self) -> list[Any]:
        """The results with their timestamps."""
        harness = self._harness
        for side in (0, 1):
            harness.chain.end_input(side)
        harness.control(Watermark(MAX_TIMESTAMP))
        while not harness.chain.finish():
            harness.settle()
        harness.settle()
        assert harness.chain.close() == []
        assert harness.managed_memory.reserved == 0
        batches = harness.writers[0].elements
        return [
            each
            for batch in batches
            if isinstance(batch, (RowBatch, ColumnBatch))
            for each in stamped(batch)
        ]

    @property
    def spilled(self) -> float:
        found: float = self.operator.measures(0).get("spilledBytes", 0)
        return found


def shown(value: object) -> str:
    """The repr, with the elements of sets in an order that a copy has, too."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(shown, value))})"
    if type(value) in (tuple, list):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"  # type: ignore[call-overload]
    return repr(value)


def results(
    made: Made, assigner: Any, memory: int | None, steps: Any, frees_at: int = -1
) -> tuple[list[Any], float]:
    job = Job(made, assigner, memory)
    for number, (side, records) in enumerate(steps):
        if number == frees_at:
            job.operator.free_memory()
        job.take(side, records)
    # of windows that end together, the order of keys is not said
    return sorted(job.end(), key=lambda result: (result[1], shown(result[0]))), job.spilled


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40, deadline=None)
@given(st.data(), ASSIGNERS, st.sampled_from([0, 1200, 4000, 1 << 20]), st.integers(-1, 9))
def test_joins_with_little_memory_give_what_joins_with_any_give(
    form: str, data: st.DataObject, assigner: Any, memory: int, frees_at: int
) -> None:
    keys = KEYS if form in ROWS else st.integers(0, 5)
    steps = data.draw(records_of(keys))
    expected, nothing = results(FORMS[form], assigner, None, steps)
    found, spilled = results(FORMS[form], assigner, memory, steps, frees_at)
    assert shown(found) == shown(expected)
    assert not nothing
    if not memory and steps:
        assert spilled or not expected


@pytest.mark.parametrize("form", FORMS)
def test_a_window_that_does_not_fit_is_joined_part_by_part(form: str) -> None:
    steps = [(at % 2, [((key, at), 5) for key in range(40)]) for at in range(20)]
    made, window = FORMS[form], TumblingEventTimeWindows(10)
    expected, _ = results(made, window, None, steps)
    seen: list[int] = []
    whole = SpilledSlices._fitting

    def watched(self: Any, pieces: Any, size: int, level: int) -> Any:
        for portion in whole(self, pieces, size, level):
            seen.append(sum(map(self._form.size, portion)))
            yield portion

    with mock.patch.object(SpilledSlices, "_fitting", watched):
        found, spilled = results(made, window, 60_000, steps)
    assert found == expected
    assert spilled
    assert len(seen) > 2
    assert max(seen) <= 30_000


def test_files_are_gone_when_the_operator_closes_also_if_it_fails() -> None:
    before = open_spill_files()
    job = Job(ROWS["join"], TumblingEventTimeWindows(10), 0)
    job.take(0, [(("a", 1), 5)])
    assert open_spill_files() == before + 1
    job._harness.chain.close()
    assert open_spill_files() == before
    assert job._harness.managed_memory.reserved == 0
