"""Window joins and co-groups: Flink's rules, and that all their forms (grid, general, columns)
follow them on any input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.functions import KeySelector, RuntimeContext
from flinkpy.operators.process.join_functions import CoGroupFunction, FlatJoinFunction, JoinFunction
from flinkpy.windowing.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.joins.columnar_join import ColumnarJoinOperator
from flinkpy.windowing.joins.tagged_union import CoGroup, JoinPairs, TaggedKey, TaggedUnion
from flinkpy.windowing.joins.window_join import WindowJoinOperator
from flinkpy.windowing.session_windows import EventTimeSessionWindows
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.operators.joining import BARRIER, Record, Subtasks, disordered, without_restarts
from tests.windowing.joins import (
    ASSIGNERS,
    FIRST,
    SLIDING,
    TUMBLING,
    columns,
    group,
    grouped,
    joined,
    late_in,
    pair,
)


class BothAsOne(WindowOperator):
    """The general form, behind two inputs."""

    def process_batch1(self, batch: Any) -> Any:
        return self.process_batch(
            RowBatch(list(map(TaggedUnion.one, batch.values)), batch.timestamps)
        )

    def process_batch2(self, batch: Any) -> Any:
        return self.process_batch(
            RowBatch(list(map(TaggedUnion.two, batch.values)), batch.timestamps)
        )


def general(function: Any, assigner: Any, lateness: int, parallelism: int = 1) -> Subtasks:
    key = KeySpec(TaggedKey(lambda value: value[0], lambda value: value[0]))
    windows = WindowingStrategy(assigner, allowed_lateness=lateness)
    return Subtasks(lambda: BothAsOne(key, windows, window_function=function), parallelism)


def at(name: str, *moments: int) -> list[Record]:
    """Records of key k."""
    return [(("k", f"{name}{moment}"), moment) for moment in moments]


def names(of: Subtasks) -> list[str]:
    return [f"{first[1]} {second[1]}" for (first, second), _ in of.output.main]


# -- joins -----------------------------------------------------------------------------------------


def test_pairs_of_a_window_are_joined_when_it_is_complete_and_get_its_last_timestamp() -> None:
    of = joined()
    of.push(0, at("l", 1, 12, 3))
    of.push(1, at("r", 9, 2, 10))
    of.watermark(8)
    assert of.output.main == []
    of.watermark(9)
    assert names(of) == ["l1 r9", "l1 r2", "l3 r9", "l3 r2"]
    assert {stamp for _, stamp in of.output.main} == {9}
    of.watermark(MAX_TIMESTAMP)
    assert names(of)[4:] == ["l12 r10"]
    assert of.operators[0]._slices == {}


def test_a_record_without_partner_gives_nothing() -> None:
    of = joined()
    of.push(0, [(("a", 1), 1), (("b", 1), 1)])
    of.push(1, [(("b", 2), 2), (("c", 2), 2)])
    assert [result for result, _ in of.run([MAX_TIMESTAMP]).main] == [(("b", 1), ("b", 2))]


def test_overlapping_windows_each_join_their_records() -> None:
    of = joined(SLIDING)  # [0, 10), [4, 14), ...
    of.push(0, at("l", 5))
    of.push(1, at("r", 6, 12))
    of.run([MAX_TIMESTAMP])
    assert Counter((name, stamp) for name, (_, stamp) in zip(names(of), of.output.main)) == Counter(
        {("l5 r6", 9): 1, ("l5 r6", 13): 1, ("l5 r12", 13): 1}
    )


def test_records_between_two_windows_are_in_none_and_not_late() -> None:
    of = joined(SlidingEventTimeWindows(2, 10))
    of.push(0, at("l", 1, 5))
    of.push(1, at("r", 0, 5, 11))
    of.push(0, at("l", 6))
    of.push(0, at("l", 11, 15))
    of.run([MAX_TIMESTAMP])
    assert names(of) == ["l1 r0", "l11 r11"]
    assert of.operators[0].late_records_dropped == 0


def test_late_records_are_dropped_and_counted() -> None:
    of = joined()
    of.push(0, at("l", 1))
    of.watermark(9)
    of.push(1, at("r", 2, 11, 3))
    of.run([MAX_TIMESTAMP])
    assert names(of) == []
    assert of.operators[0].late_records_dropped == 2


def test_within_the_allowed_lateness_each_late_record_evaluates_its_key_anew() -> None:
    of = joined(lateness=5)
    of.push(0, at("l", 1))
    of.push(0, [(("other", "o"), 1)])
    of.push(1, [*at("r", 2), (("other", "p"), 2)])
    of.watermark(9)
    assert len(of.output.main) == 2
    of.push(1, at("r", 3, 4))
    assert names(of)[2:] == ["l1 r2", "l1 r3", "l1 r2", "l1 r3", "l1 r4"]
    of.watermark(14)
    of.push(1, at("r", 5))
    assert len(of.output.main) == 7
    assert of.operators[0].late_records_dropped == 1


def test_a_flat_join_gives_any_number() -> None:
    class Repeat(FlatJoinFunction):
        def join(self, first: Any, second: Any) -> Iterable[Any] | None:
            return None if first[1] == "l1" else [second[1]] * 2

    of = joined(function=Repeat(), flat=True)
    of.push(0, at("l", 1, 2))
    of.push(1, at("r", 3))
    assert [result for result, _ in of.run([9]).main] == ["r3", "r3"]


def test_a_function_of_any_form_joins_the_same_whether_keys_have_one_record_or_several() -> None:
    limit = 3

    def called(first: Any, second: Any) -> Any:
        return (first, second) if limit else None

    for several in (False, True):
        right = at("r", 4, 5) if several else at("r", 4)
        found = []
        for function, flat in (
            (pair, False),
            (called, False),
            (lambda first, second: iter([(first, second)]), True),
        ):
            of = joined(function=function, flat=flat)
            of.push(0, at("l", 1, 2, 3))
            of.push(1, right)
            found.append(of.run([9]).main)
        assert found[0] == found[1] == found[2]
        assert len(found[0]) == 3 * len(right)


def test_many_pairs_go_on_in_portions() -> None:
    of = joined(TumblingEventTimeWindows(1000))
    of.push(0, at("l", *range(30)))
    of.push(1, at("r", *range(3)))
    of.run([MAX_TIMESTAMP])
    assert len(of.output.main) == 90
    assert of.output.largest < 10


def test_far_more_records_on_the_right_join_the_same() -> None:
    of = joined(TumblingEventTimeWindows(1000))
    of.push(1, [((number % 50, number), number) for number in range(300)])
    of.push(0, [((7, -1), 3)])
    assert [second for (_, second), _ in of.run([MAX_TIMESTAMP]).main] == [
        (7, number) for number in range(7, 300, 50)
    ]


# -- co-groups -------------------------------------------------------------------------------------


def test_a_co_group_sees_both_sides_of_each_key_also_where_one_is_empty() -> None:
    of = grouped()
    of.push(0, [(("a", 1), 1), (("b", 1), 1), (("a", 2), 2)])
    of.push(1, [(("c", 3), 3), (("b", 3), 3)])
    assert sorted(of.run([9]).main) == [
        (([], [("c", 3)]), 9),
        (([("a", 1), ("a", 2)], []), 9),
        (([("b", 1)], [("b", 3)]), 9),
    ]


def test_a_co_group_function_may_change_its_lists() -> None:
    def take_all(first: list[Any], second: list[Any]) -> Any:
        yield [first.pop() for _ in range(len(first))], [second.pop() for _ in range(len(second))]

    of = grouped(SLIDING, lateness=20, function=take_all)
    of.push(0, at("l", 5, 6))
    of.push(1, at("r", 7))
    of.watermark(9)
    of.push(1, at("r", 8))
    of.watermark(13)
    assert [(len(first), len(second)) for (first, second), _ in of.output.main] == [
        (1, 0),
        (2, 1),
        (2, 2),
        (2, 2),
    ]


# -- functions and failures ------------------------------------------------------------------------


class Key(KeySelector):
    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls.append("open key")

    def get_key(self, value: Any) -> Any:
        return value[0]

    def close(self) -> None:
        self.calls.append("close key")


class Both(JoinFunction, CoGroupFunction):
    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls.append("open")

    def join(self, first: Any, second: Any) -> Any:
        if second[1] == "r3":
            raise ValueError("no")
        return first

    def co_group(self, first: list[Any], second: list[Any]) -> Any:
        raise ValueError("no")

    def close(self) -> None:
        self.calls.append("close")


@pytest.mark.parametrize("general_form", [False, True])
def test_functions_and_selectors_are_opened_and_closed(general_form: bool) -> None:
    calls: list[str] = []

    def make() -> Any:
        keys = Key(calls), Key(calls)
        if general_form:
            windows, joined = WindowingStrategy(TUMBLING), JoinPairs(Both(calls), False)
            return BothAsOne(KeySpec(TaggedKey(*keys)), windows, window_function=joined)
        return WindowJoinOperator(Both(calls), KeySpec(keys[0]), KeySpec(keys[1]), TUMBLING)

    of = Subtasks(make)
    of.push(0, at("l", 1))
    of.push(1, at("r", 2))
    assert of.run([9]).main == [(("k", "l1"), 9)]
    of.close()
    assert Counter(calls) == Counter({"open": 1, "close": 1, "open key": 2, "close key": 2})


def test_failures_name_what_was_joined() -> None:
    of = joined(function=Both([]))
    of.push(0, at("l", 1))
    of.push(1, at("r", 2, 3))
    with pytest.raises(UserCodeError) as caught:
        of.watermark(9)
    assert (caught.value.cause, caught.value.record) == (
        "ValueError: no",
        "(('k', 'l1'), ('k', 'r3'))",
    )
    of = grouped(function=Both([]))
    of.push(0, at("l", 1))
    with pytest.raises(UserCodeError, match="ValueError: no"):
        of.watermark(9)
    # an expression, written out in the loop
    of = joined(function=lambda first, second: first[1] / second[2])
    of.push(0, at("l", 1))
    of.push(1, at("r", 2))
    with pytest.raises(UserCodeError, match="IndexError") as caught:
        of.watermark(9)
    assert caught.value.record == "(('k', 'l1'), ('k', 'r2'))"
    assert [frame.function for frame in caught.value.frames] == ["<lambda>"]
    of = joined()
    with pytest.raises(UserCodeError) as caught:
        of.operators[0].process_batch1(RowBatch([("a", 1), 5], [1, 2]))
    assert caught.value.record == "5"


@pytest.mark.parametrize("made", [joined, grouped], ids=["join", "co-group"])
@pytest.mark.parametrize("when", ["at the watermark", "in a snapshot"])
def test_a_key_that_cannot_be_hashed_is_named_with_its_record(made: Any, when: str) -> None:
    of = made()
    of.operators[0].process_batch1(RowBatch([("a", 1), ([], 2)], [1, 2]))
    of.operators[0].process_batch2(RowBatch([("a", 3)], [3]))
    with pytest.raises(UserCodeError, match="unhashable type: 'list'") as caught:
        of.watermark(9) if when == "at the watermark" else of.operators[0].freeze_state(
            BARRIER
        ).write()
    assert caught.value.record == "([], 2)"


def test_records_without_timestamps_are_refused() -> None:
    columnar = Subtasks(lambda: ColumnarJoinOperator(["k"], ["k"], TUMBLING))
    for operator, batch in (
        (joined().operators[0], RowBatch([("a", 1)])),
        (joined().operators[0], RowBatch([("a", 1)], [MIN_TIMESTAMP])),
        (columnar.operators[0], ColumnBatch(pa.RecordBatch.from_pydict({"k": [1]}))),
    ):
        with pytest.raises(ProgramError, match="call assign_timestamps_and_watermarks"):
            operator.process_batch1(batch)


def test_rows_and_columns_are_saved_to_rocksdb_and_read_again(tmp_path: Path) -> None:
    configuration = {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.localdir": str(tmp_path),
    }

    def in_rows() -> Any:
        return WindowJoinOperator(
            lambda first, second: (first[0], first[1], second[1]), FIRST, FIRST, SLIDING
        )

    for of in (
        Subtasks(lambda: ColumnarJoinOperator(["k"], ["k"], SLIDING), 2, columns, configuration),
        Subtasks(in_rows, 2, None, configuration),
    ):
        records = [((number % 7, number), number) for number in range(12)]
        of.push(0, records)
        of.watermark(7)
        of.restart(3)
        of.watermark(7)
        of.push(1, records)
        expected, _ = model([(0, records), 7, (1, records), MAX_TIMESTAMP], SLIDING, 0)
        assert Counter(of.run([MAX_TIMESTAMP]).main) == Counter(
            {
                ((one[0], one[1], other[1]), stamp): count
                for (one, other, stamp), count in pairs_of(expected).items()
            }
        )
        of.close()


def test_a_window_complete_before_a_restore_is_not_fired_again() -> None:
    of = grouped(lateness=100)
    of.push(0, [(("a", 1), 1), (("b", 1), 1)])
    of.watermark(9)
    of.push(0, [(("a", 2), 12)])
    of.restart(2)
    of.watermark(9)
    assert len(of.output.main) == 2
    of.push(1, [(("b", 3), 3)])
    assert of.output.main[2:] == [(([("b", 1)], [("b", 3)]), 9)]
    of.watermark(19)
    assert of.output.main[3:] == [(([("a", 2)], []), 19)]


# -- any input, any form ---------------------------------------------------------------------------


def model(steps: Sequence[Any], assigner: Any, lateness: int) -> tuple[list[Any], int]:
    """Flink's rules, record by record and window by window: (what a co-group is given, late
    records)."""
    watermark, late = MIN_TIMESTAMP, 0
    contents: dict[Any, tuple[list[Any], list[Any]]] = {}
    waiting: set[Any] = set()
    fired: list[Any] = []

    def fire(window: Any, key: Any) -> None:
        fired.append((tuple(list(side) for side in contents[window, key]), window.max_timestamp()))

    for step in steps:
        if isinstance(step, int):
            watermark = step
            for window, key in sorted(waiting):
                if window.max_timestamp() <= watermark:
                    waiting.discard((window, key))
                    fire(window, key)
            contents = {
                name: sides
                for name, sides in contents.items()
                if name[0].max_timestamp() + lateness > watermark
            }
            continue
        side, records = step
        for value, stamp in records:
            windows = assigner.assign_windows(value, stamp, None)
            taken = [window for window in windows if window.max_timestamp() + lateness > watermark]
            late += not taken and stamp + lateness <= watermark
            for window in taken:
                contents.setdefault((window, value[0]), ([], []))[side].append(value)
                if window.max_timestamp() <= watermark:
                    fire(window, value[0])
                else:
                    waiting.add((window, value[0]))
    return fired, late


def comparable(fired: Iterable[Any]) -> Counter[Any]:
    return Counter(
        (tuple(sorted(first)), tuple(sorted(second)), stamp) for (first, second), stamp in fired
    )


def in_order(fired: Iterable[Any]) -> Counter[Any]:
    return Counter((tuple(first), tuple(second), stamp) for (first, second), stamp in fired)


def pairs_of(fired: Iterable[Any]) -> Counter[Any]:
    return Counter(
        (one, other, stamp) for (first, second), stamp in fired for one in first for other in second
    )


@given(disordered(), ASSIGNERS, st.sampled_from([0, 0, 1, 5, 100]), st.integers(1, 3))
def test_any_input_is_grouped_and_joined_as_the_rules_say_and_a_restore_changes_nothing(
    steps: list[Any], assigner: Any, lateness: int, parallelism: int
) -> None:
    expected, late = model(without_restarts(steps), assigner, lateness)
    groups = grouped(assigner, lateness, parallelism=parallelism)
    pairs = joined(assigner, lateness, parallelism=parallelism)
    # overlapping windows are put together slice by slice
    compare = in_order if isinstance(assigner, TumblingEventTimeWindows) else comparable
    assert compare(groups.run(steps).main) == compare(expected)
    assert Counter((*pair, stamp) for pair, stamp in pairs.run(steps).main) == pairs_of(expected)
    assert groups.operators[0]._slices == {}
    if not any(isinstance(step, tuple) and step[0] == "restart" for step in steps):
        assert late_in(groups) == late_in(pairs) == late


@given(disordered(), ASSIGNERS, st.sampled_from([0, 1, 5]))
def test_the_general_form_gives_the_same_as_the_one_for_grids(
    steps: list[Any], assigner: Any, lateness: int
) -> None:
    groups = grouped(assigner, lateness).run(steps).main
    pairs = joined(assigner, lateness).run(steps).main
    assert comparable(general(CoGroup(group), assigner, lateness).run(steps).main) == comparable(
        groups
    )
    assert Counter(general(JoinPairs(pair, False), assigner, lateness).run(steps).main) == Counter(
        pairs
    )


def test_sessions_of_both_streams_are_joined_in_the_general_form() -> None:
    of = general(JoinPairs(pair, False), EventTimeSessionWindows(5), 0)
    of.push(0, at("l", 1, 20))
    of.push(1, at("r", 5, 9, 30))
    of.run([MAX_TIMESTAMP])
    assert names(of) == ["l1 r5", "l1 r9"]
    assert {stamp for _, stamp in of.output.main} == {13}


def test_a_record_that_comes_before_the_first_watermark_after_a_restore_is_joined_although_another_checkpoint_comes_first() -> (
    None
):
    of = joined(TUMBLING, lateness=20)
    of.run([(0, [(("a", 1), 5)]), (1, [(("a", 2), 5)]), 15])
    of.restart(1)
    of.push(1, [(("a", 3), 6)])
    of.restart(2)
    of.output.main.clear()
    assert of.run([9, 12]).main == [((("a", 1), ("a", 2)), 9), ((("a", 1), ("a", 3)), 9)]
    of.restart(1)
    of.output.main.clear()
    assert of.run([12, 19]).main == []
