"""Fused runs of stages: the same results as one operator at a time, exact counters, and errors that
name operator and record."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.codegen.generated import GENERATED
from flinkpy.core.errors import UserCodeError
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.chain.fusion import fused_source, segments
from flinkpy.operators.chain.stages import Stage, StageKind
from flinkpy.operators.rows.stateless import FilterOperator, FlatMapOperator, MapOperator
from tests.operators.harness import ChainHarness, linear

M, F, X = StageKind.MAP, StageKind.FILTER, StageKind.FLAT_MAP


def twice_lazily(value: int) -> Iterator[int]:
    yield value
    yield value + 1


STAGES: dict[str, Callable[[], StreamOperator]] = {
    "add": lambda: MapOperator(lambda value: value + 3),
    "negate": lambda: MapOperator(lambda value: -value),
    "even": lambda: FilterOperator(lambda value: value % 2 == 0),
    "not a multiple of three": lambda: FilterOperator(lambda value: value % 3),
    "nothing": lambda: FilterOperator(lambda value: False),
    "twice": lambda: FlatMapOperator(lambda value: [value, value * 2]),
    "twice, lazily": lambda: FlatMapOperator(twice_lazily),
    "perhaps none": lambda: FlatMapOperator(lambda value: None if value % 5 == 0 else (value,)),
}


def collect(
    names: list[str], batches: list[list[int]], stamped: bool, fusion: bool
) -> tuple[list[Any], list[tuple[str, int, int]], list[int]]:
    harness = ChainHarness(linear(*(STAGES[name]() for name in names)), fusion=fusion)
    for batch in batches:
        if batch:
            harness.push(batch, [value * 10 for value in batch] if stamped else None)
    sizes = [len(element) for element in harness.writers[0].elements]  # type: ignore[arg-type]
    harness.chain.close()
    return harness.writers[0].stamped, list(harness.chain.metrics.of_operators()), sizes


BATCHES = st.lists(st.lists(st.integers(-50, 50), max_size=8), max_size=5)


@given(st.lists(st.sampled_from(sorted(STAGES)), min_size=1, max_size=6), BATCHES, st.booleans())
def test_a_fused_chain_gives_what_an_unfused_one_gives_and_counts_the_same(
    names: list[str], batches: list[list[int]], stamped: bool
) -> None:
    fused, fused_counters, fused_sizes = collect(names, batches, stamped, fusion=True)
    unfused, unfused_counters, unfused_sizes = collect(names, batches, stamped, fusion=False)
    assert fused == unfused
    assert fused_counters == unfused_counters
    assert fused_sizes == unfused_sizes


def test_a_loop_holds_at_most_one_stage_that_changes_the_count() -> None:
    assert segments([M, M, M]) == [range(3)]
    assert segments([M, F, M, M]) == [range(4)]
    assert segments([F, F, X]) == [range(1), range(1, 2), range(2, 3)]
    assert segments([M, X, M, F, M]) == [range(2), range(2, 5)]


def test_every_stage_has_a_line_of_its_own() -> None:
    for kinds in ([M, F, X, M], [X, X], [M], [F, M, M]):
        for timestamped in (False, True):
            sources = [
                fused_source([Stage(kind, str) for kind in kinds], loop, timestamped)
                for loop in segments(kinds)
            ]
            assert {stage for source in sources for stage, _ in source.origins.values()} == set(
                range(len(kinds))
            )
            for source in sources:
                compile(source.text, "fused", "exec")


def test_maps_hand_the_timestamps_on_by_reference() -> None:
    harness = ChainHarness(linear(MapOperator(str), MapOperator(len)))
    harness.push([1, 22], [5, 6])
    batch = harness.writers[0].elements[0]
    harness.push([333], None)
    assert batch.timestamps == [5, 6]  # type: ignore[union-attr]
    assert harness.output == [1, 2, 3]


def fail_on_three(value: int) -> int:
    if value == 3:
        raise ValueError("three is too much")
    return value


def flat_fail_on_three(value: int) -> Iterator[int]:
    yield 0
    yield fail_on_three(value)


@pytest.mark.parametrize("stamped", [False, True])
@pytest.mark.parametrize(
    ("operators", "failing", "record"),
    [
        ([MapOperator(fail_on_three)], 0, "3"),
        ([MapOperator(lambda v: v + 1), MapOperator(fail_on_three)], 1, "3"),
        ([MapOperator(lambda v: v + 1), MapOperator(fail_on_three), MapOperator(str)], 1, "3"),
        ([MapOperator(lambda v: v * 1), FilterOperator(fail_on_three), MapOperator(str)], 1, "3"),
        ([FilterOperator(lambda v: v > 0), FilterOperator(fail_on_three)], 1, "3"),
        ([FlatMapOperator(flat_fail_on_three)], 0, "3"),
        ([FlatMapOperator(flat_fail_on_three), MapOperator(str), FilterOperator(bool)], 0, "3"),
        (
            [
                FlatMapOperator(lambda v: [v, v]),
                MapOperator(str),
                FlatMapOperator(lambda v: fail_on_three(int(v)) and ()),
            ],
            2,
            "'3'",
        ),
        ([FlatMapOperator(lambda v: fail_on_three(v) and ()), MapOperator(str)], 0, "3"),
    ],
)
@pytest.mark.parametrize("fusion", [True, False])
def test_an_error_names_the_operator_and_the_record(
    operators: list[Any], failing: int, record: str, stamped: bool, fusion: bool
) -> None:
    harness = ChainHarness(linear(*operators), fusion=fusion)
    values = [1, 2, 3, 4]
    with pytest.raises(UserCodeError) as caught:
        harness.push(values, values if stamped else None)
    error = caught.value
    assert (error.operator, error.uid, error.record) == (f"op {failing}", f"uid-{failing}", record)
    assert error.cause == "ValueError: three is too much"
    assert error.subtask == "task (1/1)#0"
    assert error.frames[-1].function == "fail_on_three"
    assert error.frames[-1].text == 'raise ValueError("three is too much")'
    assert {frame.file for frame in error.frames} == {__file__}
    assert "three is too much" in error.traceback
    harness.chain.close()


def test_the_full_traceback_shows_the_generated_line_and_the_source_goes_with_the_chain() -> None:
    before = set(linecache.cache)
    harness = ChainHarness(linear(MapOperator(fail_on_three)))
    with pytest.raises(UserCodeError) as caught:
        harness.push([3])
    assert (
        "out = [y if type(y := f0(x)) in ATOMS else private(y) for x in cursor]"
        in caught.value.traceback
    )
    assert any(GENERATED in file for file in set(linecache.cache) - before)
    harness.chain.close()
    assert not any(GENERATED in file for file in set(linecache.cache) - before)


def test_the_record_in_an_error_is_bounded_even_when_its_repr_raises() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    def fail(value: Any) -> Any:
        raise KeyError("k")

    for value, shown in (("x" * 10_000, 200), (list(range(100_000)), 200), (Shy(), 60)):
        harness = ChainHarness(linear(MapOperator(fail)))
        with pytest.raises(UserCodeError) as caught:
            harness.push([value])
        assert caught.value.record is not None
        assert len(caught.value.record) <= shown
        harness.chain.close()


def test_a_stop_iteration_of_the_user_is_an_error_like_any_other() -> None:
    harness = ChainHarness(linear(MapOperator(lambda value: next(iter(())))))
    with pytest.raises(UserCodeError, match="StopIteration"):
        harness.push([1])
    harness.chain.close()


class Keeps:
    """Changes what it gave out before, what it was given before, and what it is given now; and
    gives a part of all that."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.kept: list[Any] = []

    def __call__(self, value: Any) -> Any:
        for each in self.kept:
            each.append("later")
        if self.what == "its own":
            self.kept[:] = self.kept[:1] or [["own"]]
            return self.kept[0]
        value.append(self.what)
        self.kept = [*self.kept[-3:], value]
        return {"the same": value, "a tuple": value, "true": True}[self.what]

    def many(self, value: Any) -> Iterator[Any]:
        yield self(value)
        yield self(value)


CHANGING: dict[str, Callable[[], StreamOperator]] = {
    "its own list": lambda: MapOperator(Keeps("its own")),
    "what it was given": lambda: MapOperator(Keeps("the same")),
    "one that keeps what it lets through": lambda: FilterOperator(Keeps("true")),
    "many of its own": lambda: FlatMapOperator(Keeps("its own").many),
    "many of what it was given": lambda: FlatMapOperator(Keeps("the same").many),
    "a list of the same twice": lambda: FlatMapOperator(lambda value: [value, value]),
    "the same": lambda: MapOperator(lambda value: value),
    "a copy": lambda: MapOperator(lambda value: value + [1]),
    "perhaps a tuple": lambda: FlatMapOperator(lambda value: (value,)),
}


def changed(
    names: list[str],
    records: int,
    batch: int,
    fusion: bool,
    traced: bool,
    object_reuse: bool = False,
) -> list[Any]:
    before = sys.gettrace()
    if traced:
        sys.settrace(lambda *event: None)
    try:
        harness = ChainHarness(
            linear(*(CHANGING[name]() for name in names)),
            fusion=fusion,
            object_reuse=object_reuse,
            batch_records=10_000,
        )
    finally:
        sys.settrace(before)
    for start in range(0, records, batch):
        harness.push([[number] for number in range(start, min(records, start + batch))])
    assert harness.chain.close() == []
    return harness.output


@given(
    st.lists(st.sampled_from(sorted(CHANGING)), min_size=1, max_size=5),
    st.integers(1, 6),
    st.sampled_from([2, 10_000]),
    st.booleans(),
    st.booleans(),
)
def test_functions_that_change_what_they_gave_or_were_given_are_not_seen_to_whatever_the_form(
    names: list[str], records: int, batch: int, fusion: bool, traced: bool
) -> None:
    assert changed(names, records, batch, fusion, traced) == changed(names, records, 1, False, True)
