"""Interval joins of a batch job give with little memory what they give with any: of each key in the
same order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import MAX_TIMESTAMP, RowBatch, Watermark
from flinkpy.core.errors import UserCodeError
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.process.interval_join import IntervalJoinOperator
from flinkpy.operators.process.spilled_joins import RecordsForm
from flinkpy.operators.spilling.spilled_slices import SpilledSlices
from tests.open_files import open_spill_files
from tests.operators.harness import ChainHarness, linear
from tests.operators.joining import stamped
from tests.operators.test_interval_join import FIRST, Counting, Pair
from tests.values import KEYS, may_meet
from tests.windowing.test_joins_that_spill import shown


@pytest.fixture(autouse=True)
def _small_pieces() -> Iterator[None]:
    with mock.patch.object(RecordsForm, "at_once", 3):
        yield


class Job:
    """A batch job of one operator with so much memory."""

    def __init__(self, lower: int, upper: int, memory: int | None, function: Any = None) -> None:
        self.operator = batch_form(
            IntervalJoinOperator(function or Pair(), FIRST, FIRST, lower, upper)
        )
        self._harness = ChainHarness(linear(self.operator, inputs=2), memory=memory)

    def take(self, side: int, records: Any) -> None:
        batch = RowBatch([value for value, _ in records], [stamp for _, stamp in records])
        self._harness.chain.batch_inputs()[side](batch)
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
        return [each for batch in batches if isinstance(batch, RowBatch) for each in stamped(batch)]

    @property
    def spilled(self) -> float:
        found: float = self.operator.measures(0).get("spilledBytes", 0)
        return found


RECORDS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.lists(
            st.tuples(st.tuples(KEYS, st.integers(0, 999)), st.integers(-20, 40)),
            min_size=1,
            max_size=9,
        ),
    ),
    max_size=12,
)


@settings(max_examples=100, deadline=None)
@given(
    RECORDS,
    st.integers(-8, 8),
    st.integers(0, 30),
    st.sampled_from([0, 3000, 10_000, 1 << 20]),
    st.integers(-1, 9),
)
@example([(0, [((1, 1), 5)]), (1, [((1, 2), 5)]), (0, [((1, 3), 6)])], -2, 4, 1 << 20, 2)
def test_a_join_with_little_memory_gives_what_one_with_any_gives(
    steps: Any, lower: int, width: int, memory: int, frees_at: int
) -> None:
    assume(may_meet([value[0] for _, records in steps for value, _ in records]))
    found = []
    for limit in (None, memory):
        job = Job(lower, lower + width, limit)
        for number, (side, records) in enumerate(steps):
            if number == frees_at:
                job.operator.free_memory()
            job.take(side, records)
        # of each key in their order
        found.append(shown(sorted(job.end(), key=lambda result: shown(result[0][0][0]))))
        assert limit is not None or not job.spilled
    assert found[0] == found[1]


def test_what_does_not_fit_is_joined_in_portions() -> None:
    sizes, files = [], open_spill_files()
    whole = SpilledSlices._fitting

    def watched(self: Any, pieces: Any, size: int, level: int) -> Any:
        for portion in whole(self, pieces, size, level):
            if level:
                sizes.append(sum(len(piece.keys) for piece in portion))
            yield portion

    with mock.patch.object(SpilledSlices, "_fitting", watched):
        job = Job(-9, 9, 40_000)
        for at in range(50):
            job.take(at % 2, [((key, at), at) for key in range(40)])
        results = job.end()
    assert len(results) == 40 * sum(
        abs(one - other) <= 9 for one in range(0, 50, 2) for other in range(1, 50, 2)
    )
    assert job.spilled
    assert max(sizes) < 400
    assert open_spill_files() <= files


def test_state_of_the_function_is_that_of_the_key_in_files_too() -> None:
    counts = []
    for memory in (None, 0):
        job = Job(-5, 5, memory, Counting())
        for at in range(6):
            job.take(at % 2, [((key, at), at) for key in ("a", "b", float("nan"))])
        counts.append(sorted((repr(key), count) for (key, count), _ in job.end()))
    assert counts[0] == counts[1]


def test_a_record_whose_key_fails_is_named_while_it_would_wait_too() -> None:
    job = Job(-5, 5, 0)
    job.take(0, [(("a", 1), 1)])
    with pytest.raises(UserCodeError) as caught:
        job.take(0, [(("b", 2), 2), ((), 3)])
    assert caught.value.record == "()"
