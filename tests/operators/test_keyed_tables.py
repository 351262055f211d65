"""Running aggregates over a table of numbers give what they give over a dict: results, errors,
snapshots, and what a failed batch leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import CheckpointBarrier
from flinkpy.core.errors import UserCodeError
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.rows.keyed import KeyedAggregateOperator, KeyedOperator, KeyedReduceOperator
from flinkpy.state.heap.number_table import NumberTable
from flinkpy.state.heap.running_values import RUNNING_RESULT, RunningValues
from tests.operators.harness import ChainHarness, linear

FIRST, SECOND = KeySpec(selector=lambda pair: pair[0]), KeySpec(selector=lambda pair: pair[1])
BARRIER = CheckpointBarrier(1, 0)
NEVER = 1 << 40

MAKERS: dict[str, Callable[[], KeyedOperator]] = {
    "reduce": lambda: KeyedReduceOperator(lambda a, b: (a[0], a[1] + b[1]), FIRST),
    "reduce to another type": lambda: KeyedReduceOperator(
        lambda a, b: (b[0], (a[1] - b[1]) / 2), FIRST
    ),
    "reduce that grows": lambda: KeyedReduceOperator(
        lambda a, b: (a[0], a[1] * 1000003 + b[1]), FIRST
    ),
    "reduce that compares": lambda: KeyedReduceOperator(lambda a, b: (a[0], a[1] < b[1]), FIRST),
    "sum": lambda: KeyedAggregateOperator("sum", 1, FIRST),
    "sum of the first field": lambda: KeyedAggregateOperator("sum", 0, SECOND),
    "min": lambda: KeyedAggregateOperator("min", 1, FIRST),
    "max": lambda: KeyedAggregateOperator("max", 1, FIRST),
}
PLAIN = st.tuples(st.integers(-6, 6), st.integers(-9, 9))
FLOATS = st.tuples(st.integers(-6, 6), st.floats(-9, 9))
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        (1, 2.5),
        (2, True),
        (True, 3),
        (2.0, 4),
        ("a", 1),
        (1 << 70, 1),
        (3, 1 << 63),
        (4, (1 << 63) - 1),
        [5, 1],
        (7, 8, 9),
        (8, "x"),
        (0.0, -0.0),
        ([], 1),
        None,
    ]
)
BATCHES = st.lists(st.lists(PLAIN, min_size=1, max_size=8), max_size=8) | st.lists(
    st.lists(FLOATS, min_size=1, max_size=8), max_size=8
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunningValues, "threshold", 2)
    monkeypatch.setattr(NumberTable, "smallest", 4)
    monkeypatch.setattr(NumberTable, "few", 2)


class Outcome:
    """What comes of batches, with restarts in between: results, errors, and the state in the end.
    ``table`` says whether there may be one."""

    def __init__(
        self,
        make: Callable[[], KeyedOperator],
        batches: list[list[Any]],
        table: bool,
        restarts: bool = False,
    ) -> None:
        self.was_table, self.seen = False, list[Any]()
        with pytest.MonkeyPatch.context() as patch:
            if not table:
                patch.setattr(RunningValues, "threshold", NEVER)
            operator = make()
            harness = ChainHarness(linear(operator))
            for batch in batches:
                if restarts:
                    saved, operator = operator.freeze_state(BARRIER).write(), make()
                    harness = ChainHarness(linear(operator), open_it=False)
                    operator.initialize_state(saved)
                    harness.chain.open()
                try:
                    harness.push(batch)
                except UserCodeError as error:
                    self.seen.append((error.record, error.operator, str(error.frames)))
                self.seen.append(
                    [(repr(each), [type(field) for field in each]) for each in harness.output]
                )
                harness.writers[0].elements.clear()
                self.was_table |= (
                    isinstance(operator.values, RunningValues) and operator.values.plain() is None
                )
            self.seen.append(
                sorted(
                    f"{key!r} {type(key)} {value!r} {type(value)}"
                    for key, value in operator.values.items()
                )
            )


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("kind", MAKERS)
@settings(max_examples=40)
@given(
    batches=BATCHES, odd=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), ODD), max_size=2)
)
def test_it_is_as_over_a_dict(
    kind: str, restarts: bool, batches: list[list[Any]], odd: list[tuple[int, int, Any]]
) -> None:
    batches = [list(batch) for batch in batches]
    if kind == "sum of the first field":
        batches = [[pair[::-1] for pair in batch] for batch in batches]
    for batch, at, record in odd:
        if batch < len(batches) and (batch, at) != (0, 0):
            batches[batch].insert(max(at, batch == 0), record)
    assert (
        Outcome(MAKERS[kind], batches, True, restarts).seen
        == Outcome(MAKERS[kind], batches, False, restarts).seen
    )


@pytest.mark.parametrize("kind", MAKERS)
def test_over_many_whole_numbers_it_is_a_table(kind: str) -> None:
    batches = [
        [
            (key, 3 * key + turn) if kind != "sum of the first field" else (3 * key + turn, key)
            for key in range(9)
        ]
        for turn in range(3)
    ]
    assert Outcome(MAKERS[kind], batches, True).was_table == (kind not in ("min", "max"))
    assert not Outcome(MAKERS[kind], batches, False).was_table


def test_an_error_in_the_middle_of_a_batch_leaves_what_was_done_before_it() -> None:
    operator = KeyedReduceOperator(lambda a, b: (a[0], a[1] // b[1]), FIRST)
    harness = ChainHarness(linear(operator))
    harness.push([(key, 100) for key in range(9)])
    with pytest.raises(UserCodeError) as caught:
        harness.push([(1, 2), (10, 7), (2, 5), (1, 5), (3, 0), (4, 2), (11, 1)])
    assert caught.value.record == "(3, 0)"
    assert "test_keyed_tables" in str(caught.value.frames)
    assert dict(operator.values) == {
        key: (key, value)
        for key, value in {**dict.fromkeys(range(9), 100), 1: 10, 10: 7, 2: 20}.items()
    }


def test_a_record_without_a_key_is_named_and_those_before_it_are_done() -> None:
    operator = KeyedAggregateOperator("sum", 1, FIRST)
    harness = ChainHarness(linear(operator))
    harness.push([(key, 1) for key in range(9)])
    with pytest.raises(UserCodeError) as caught:
        harness.push([(1, 1), (20, 1), None, (2, 1)])
    assert caught.value.record == "None"
    assert dict(operator.values) == {
        key: (key, value) for key, value in {**dict.fromkeys(range(9), 1), 1: 2, 20: 1}.items()
    }


def test_a_pair_of_another_shape_makes_whole_records_the_state() -> None:
    operator = KeyedAggregateOperator("sum", 1, FIRST)
    harness = ChainHarness(linear(operator))
    harness.push([(key, 1) for key in range(5)])
    harness.push([(1, 1), (6, 1), (7, 1, "more"), (1, 1), (6, 2)])
    assert harness.output[5:] == [(1, 2), (6, 1), (7, 1, "more"), (1, 3), (6, 3)]
    assert dict(operator.backend.engine_values(RUNNING_RESULT)) == {
        0: (0, 1),
        1: (1, 3),
        2: (2, 1),
        3: (3, 1),
        4: (4, 1),
        6: (6, 3),
        7: (7, 1, "more"),
    }
    assert isinstance(operator.values, RunningValues)
    assert operator.values.plain() is not None


def test_in_a_batch_job_one_key_after_the_other_is_processed_and_forgotten() -> None:
    harness = ChainHarness(linear(batch_form(KeyedAggregateOperator("sum", 1, FIRST))))
    harness.push([(key % 7, key) for key in range(70)])
    harness.chain.finish()
    assert sorted(harness.output) == [(key, sum(range(key, 70, 7))) for key in range(7)]
