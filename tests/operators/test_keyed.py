"""Keyed reduce and running aggregates against a plain loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.types import Row
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.functions import KeySelector, ReduceFunction, RuntimeContext
from flinkpy.operators.rows.keyed import KeyedAggregateOperator, KeyedReduceOperator
from tests.operators.harness import ChainHarness, linear, run

FIRST = KeySpec(selector=lambda value: value[0])
SELF = KeySpec(selector=lambda value: value % 3)


def test_reduce_emits_the_first_element_as_it_is_and_then_running_results() -> None:
    reduce = KeyedReduceOperator(lambda a, b: (a[0], a[1] + b[1]), FIRST)
    assert run([reduce], [("a", 1), ("b", 5), ("a", 2), ("a", 3)]) == [
        ("a", 1),
        ("b", 5),
        ("a", 3),
        ("a", 6),
    ]


def test_results_carry_the_timestamps_of_their_records() -> None:
    reduce = KeyedReduceOperator(lambda a, b: (a[0], a[1] + b[1]), FIRST)
    assert run([reduce], [("a", 1), ("a", 2)], [7, 8]) == [(("a", 1), 7), (("a", 3), 8)]


def test_the_key_selector_is_called_once_per_record() -> None:
    calls: list[Any] = []

    def select(value: int) -> int:
        calls.append(value)
        return value % 2

    run([KeyedReduceOperator(lambda a, b: a + b, KeySpec(selector=select))], [1, 2, 3, 4])
    assert calls == [1, 2, 3, 4]


def append_in_place(a: list[int], b: list[int]) -> list[int]:
    a.extend(b)
    return a


def test_a_reduce_that_changes_its_argument_does_not_change_what_was_emitted() -> None:
    operator = KeyedReduceOperator(append_in_place, KeySpec(selector=lambda value: 0))
    records = [[1], [2], [3]]
    assert run([operator], records) == [[1], [1, 2], [1, 2, 3]]
    assert records == [[1], [2], [3]]


def test_a_batch_that_turns_mutable_half_way_is_reduced_carefully_from_there() -> None:
    operator = KeyedReduceOperator(
        lambda a, b: append_in_place(a, b) if isinstance(a, list) else a + b, KeySpec(selector=type)
    )
    assert run([operator], [1, 2, [1], 3, [2]]) == [1, 3, [1], 6, [1, 2]]


def test_object_reuse_hands_out_the_objects_themselves() -> None:
    harness = ChainHarness(
        linear(KeyedReduceOperator(append_in_place, KeySpec(selector=lambda value: 0))),
        object_reuse=True,
    )
    harness.push([[1], [2]])
    assert harness.output == [[1, 2], [1, 2]]


def test_an_error_in_selector_or_reduce_names_the_record() -> None:
    for operator in (
        KeyedReduceOperator(lambda a, b: a / 0, SELF),
        KeyedReduceOperator(max, KeySpec(selector=lambda v: v // (v - 4))),
    ):
        with pytest.raises(UserCodeError) as caught:
            run([operator], [1, 4])
        assert (caught.value.operator, caught.value.record) == ("op 0", "4")
        assert caught.value.frames


LIFE: list[str] = []


class Select(KeySelector):
    def open(self, runtime_context: RuntimeContext) -> None:
        LIFE.append(f"selector {runtime_context.get_index_of_this_subtask()}")

    def get_key(self, value: Any) -> Any:
        return value[0]

    def close(self) -> None:
        LIFE.append("selector closed")


class Add(ReduceFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        LIFE.append("reduce")

    def reduce(self, value1: Any, value2: Any) -> Any:
        return (value1[0], value1[1] + value2[1])

    def close(self) -> None:
        LIFE.append("reduce closed")


def test_function_objects_are_opened_and_closed() -> None:
    LIFE.clear()
    selector: Any = Select()
    assert run([KeyedReduceOperator(Add(), KeySpec(selector=selector))], [("a", 1), ("a", 2)]) == [
        ("a", 1),
        ("a", 3),
    ]
    assert LIFE == ["selector 0", "reduce", "reduce closed", "selector closed"]


# -- aggregates ------------------------------------------------------------------------------------


class Pair(NamedTuple):
    key: str
    n: int


@dataclass(frozen=True)
class Frozen:
    key: str
    n: int


def expected(kind: str, records: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """On tuples (key, n, tag), aggregating n."""
    held: dict[str, tuple[str, int, int]] = {}
    out = []
    for record in records:
        current = held.get(record[0])
        if current is None:
            value = record
        elif kind == "sum":
            value = (current[0], current[1] + record[1], current[2])
        else:
            better = record[1] < current[1] if kind.startswith("min") else record[1] > current[1]
            whole = record if kind.endswith("_by") else (current[0], record[1], current[2])
            value = whole if better else current
        held[record[0]] = value
        out.append(value)
    return out


FORMS: dict[str, tuple[Callable[[Any], Any], int | str, Callable[[Any], Any]]] = {
    "tuple": (tuple, 1, lambda v: v[0]),
    "negative index": (tuple, -2, lambda v: v[0]),
    "list": (list, 1, lambda v: v[0]),
    "dict": (lambda r: {"key": r[0], "n": r[1], "tag": r[2]}, "n", lambda v: v["key"]),
    "row": (lambda r: Row(*r), 1, lambda v: v[0]),
    "named row": (lambda r: Row(key=r[0], n=r[1], tag=r[2]), "n", lambda v: v["key"]),
}


@given(
    st.sampled_from(["sum", "min", "max", "min_by", "max_by"]),
    st.sampled_from(sorted(FORMS)),
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(-5, 5), st.integers()),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 7),
)
def test_aggregates_agree_with_a_plain_loop_in_every_form_of_record(
    kind: str, form: str, records: list[tuple[str, int, int]], size: int
) -> None:
    make, position, key = FORMS[form]
    harness = ChainHarness(linear(KeyedAggregateOperator(kind, position, KeySpec(selector=key))))
    for start in range(0, len(records), size):
        harness.push([make(record) for record in records[start : start + size]])
    harness.chain.close()
    assert harness.output == [make(record) for record in expected(kind, records)]


@pytest.mark.parametrize(
    ("kind", "result"), [("sum", [3, 5, 6]), ("min", [3, 2, 1]), ("max_by", [3, 3, 3])]
)
def test_without_a_position_the_value_itself_is_aggregated(kind: str, result: list[int]) -> None:
    assert (
        run([KeyedAggregateOperator(kind, None, KeySpec(selector=lambda v: 0))], [3, 2, 1])
        == result
    )


def test_named_tuples_and_dataclasses_keep_their_type() -> None:
    for kind in (Pair, Frozen):
        operator = KeyedAggregateOperator("sum", "n", KeySpec(selector=lambda v: v.key))
        assert run([operator], [kind("a", 1), kind("a", 2)]) == [kind("a", 1), kind("a", 3)]


def test_records_of_another_shape_go_over_to_the_general_loop() -> None:
    operator = KeyedAggregateOperator("sum", 1, FIRST)
    given_records = [
        ("a", 1),
        ("a", 1),
        ["b", 1],
        ("c", 1, "more"),
        ("a", 1),
        ["b", 2],
        ("c", 1, "ignored"),
    ]
    assert run([operator], given_records) == [
        ("a", 1),
        ("a", 2),
        ["b", 1],
        ("c", 1, "more"),
        ("a", 3),
        ["b", 3],
        ("c", 2, "more"),
    ]


def test_wrong_aggregates_are_refused_when_the_program_is_built() -> None:
    with pytest.raises(ProgramError, match="choose one of sum, min"):
        KeyedAggregateOperator("avg", 0, FIRST)
    with pytest.raises(ProgramError, match="index, a field name or None"):
        KeyedAggregateOperator("sum", 1.5, FIRST)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="keyed by columns"):
        KeyedReduceOperator(max, KeySpec(columns=("a",)))
