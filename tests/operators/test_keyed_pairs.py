"""Running aggregates of pairs of a key and a value: what comes out, and what a snapshot means, is
the same with functions written out or called."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import CheckpointBarrier
from flinkpy.core.errors import UserCodeError
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.rows.keyed import KeyedAggregateOperator, KeyedOperator, KeyedReduceOperator
from flinkpy.operators.rows.keyed_pairs import pair_form
from flinkpy.state.snapshots.saved_state import SavedState
from tests.operators.harness import ChainHarness, linear, run

FIRST, SECOND = KeySpec(selector=lambda pair: pair[0]), KeySpec(selector=lambda pair: pair[1])
# cannot be written out, so whole records are kept
CALLED = KeySpec(selector=lambda pair: random.choice([pair[0]]))

MAKERS: dict[str, Callable[[KeySpec], KeyedOperator]] = {
    "reduce": lambda key: KeyedReduceOperator(lambda a, b: (a[0], a[1] + b[1]), key),
    "reduce that takes the record's key": lambda key: KeyedReduceOperator(
        lambda a, b: (b[0], a[1] * 2 - b[1]), key
    ),
    "sum": lambda key: KeyedAggregateOperator("sum", 1, key),
    "min": lambda key: KeyedAggregateOperator("min", 1, key),
    "max": lambda key: KeyedAggregateOperator("max", -1, key),
    "max_by": lambda key: KeyedAggregateOperator("max_by", 1, key),
}
pairs = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 9)), min_size=1)
others = st.tuples(st.sampled_from("xyz"), st.none(), st.just(1))


@pytest.mark.parametrize("kind", MAKERS)
@given(records=pairs)
def test_results_are_those_of_whole_records_as_state(kind: str, records: list[Any]) -> None:
    assert run([MAKERS[kind](FIRST)], records) == run([MAKERS[kind](CALLED)], records)


def test_the_key_may_be_the_second_field() -> None:
    assert run([KeyedAggregateOperator("sum", 0, SECOND)], [(1, "a"), (2, "b"), (3, "a")]) == [
        (1, "a"),
        (2, "b"),
        (4, "a"),
    ]


@given(
    before=pairs,
    records=st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 9)) | others, min_size=1),
)
def test_from_the_first_record_of_another_shape_on_whole_records_are_kept(
    before: list[Any], records: list[Any]
) -> None:
    def results(key: KeySpec) -> list[Any]:
        harness = ChainHarness(linear(KeyedReduceOperator(lambda a, b: (a[0], a[1] + b[1]), key)))
        harness.push(before)
        harness.push(
            [record if record[1] is not None else (*record[:1], 0, 1) for record in records]
        )
        return harness.output

    assert results(FIRST) == results(CALLED)


def test_lists_in_pairs_are_protected_as_before() -> None:
    operator = KeyedReduceOperator(lambda a, b: (a[0], a[1] + b[1]), FIRST)
    assert run([operator], [("a", 1), ("b", [1]), ("a", 2), ("b", [2])]) == [
        ("a", 1),
        ("b", [1]),
        ("a", 3),
        ("b", [1, 2]),
    ]


BARRIER = CheckpointBarrier(1, 0)


def restarted(operator: KeyedOperator, saved: SavedState | None) -> ChainHarness:
    harness = ChainHarness(linear(operator), open_it=False)
    operator.initialize_state(saved)
    harness.chain.open()
    return harness


@pytest.mark.parametrize("then", [FIRST, CALLED])
@pytest.mark.parametrize("first", [FIRST, CALLED])
@pytest.mark.parametrize("kind", ["sum", "reduce"])
def test_restored_is_never_failed_whichever_form_the_state_has(
    kind: str, first: KeySpec, then: KeySpec
) -> None:
    records, later = [("a", 1), ("b", 2), ("a", 3)], [("b", 5), ("c", 1), ("a", 1)]
    operator = MAKERS[kind](first)
    ChainHarness(linear(operator)).push(records)
    saved = operator.freeze_state(BARRIER).write()
    again = restarted(MAKERS[kind](then), saved)
    again.push(later)
    assert again.output == [("b", 7), ("c", 1), ("a", 5)]


def test_a_restored_pair_meets_records_of_another_shape() -> None:
    operator = KeyedAggregateOperator("sum", 1, FIRST)
    ChainHarness(linear(operator)).push([("a", 1)])
    again = restarted(
        KeyedAggregateOperator("sum", 1, FIRST), operator.freeze_state(BARRIER).write()
    )
    again.push([("b", 1, "more"), ("a", 2)])
    assert again.output == [("b", 1, "more"), ("a", 3)]


def test_an_error_in_the_update_has_the_users_frame() -> None:
    with pytest.raises(UserCodeError) as caught:
        run([KeyedReduceOperator(lambda a, b: (a[0], a[1] / b[1]), FIRST)], [("a", 1), ("a", 0)])
    assert caught.value.record == "('a', 0)"
    assert "test_keyed_pairs" in str(caught.value.frames)


@pytest.mark.parametrize(
    ("update", "selected"),
    [
        ("(current[0], record[1]) if record[1] > current[1] else current", "record[0]"),
        ("(current[0], current[1], 1)", "record[0]"),
        ("(current[1], current[1] + record[1])", "record[0]"),
        ("(current[0], len(current))", "record[0]"),
        ("(current[0], current[1])", "record[2]"),
        ("(current[0], current[1])", "select(record)"),
        ("current", "record[0]"),
        ("(current[0], current[0])", "record[0]"),
    ],
)
def test_other_updates_need_whole_records(update: str, selected: str) -> None:
    assert pair_form(update, selected) is None
