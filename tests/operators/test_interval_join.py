"""The interval join against Flink's rules: bounds, order of arrival, late records, what is kept and
for how long, restores."""

from __future__ import annotations

import doctest
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.typeinfo import Types
from flinkpy.core.elements import MIN_TIMESTAMP, RowBatch
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.functions import RuntimeContext
from flinkpy.operators.process import join_functions
from flinkpy.operators.process.interval_join import IntervalJoinOperator
from flinkpy.operators.process.join_functions import ProcessJoinFunction
from flinkpy.state.descriptors import ValueStateDescriptor
from tests.operators.joining import Gathered, Subtasks, disordered, without_restarts

FIRST = KeySpec(selector=lambda value: value[0])


class Pair(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterable[Any]:
        yield left, right, ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp()


def subtasks(
    lower: int,
    upper: int,
    parallelism: int = 1,
    tags: tuple[str | None, str | None] = (None, None),
    function: Any = None,
) -> Subtasks:
    return Subtasks(
        lambda: IntervalJoinOperator(function or Pair(), FIRST, FIRST, lower, upper, tags),
        parallelism,
    )


def times(output: Gathered) -> list[tuple[int, int]]:
    """The timestamps of the joined records."""
    return sorted((result[2], result[3]) for result, _ in output.main)


def at(*moments: int) -> list[tuple[Any, int]]:
    """Records of one key."""
    return [(("k", moment), moment) for moment in moments]


def kept(of: Subtasks) -> list[tuple[list[int], list[int]]]:
    """The times of what is kept, per key."""
    return [
        (buffers[0], buffers[2])
        for operator in of.operators
        for _, buffers in operator._buffers.items()
    ]


# -- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (-1, 1, [(5, 4), (5, 5), (5, 6)]),
        (0, 0, [(5, 5)]),
        (1, 2, [(5, 6), (5, 7)]),
        (-3, -2, [(5, 2), (5, 3)]),
        (-3, 2, [(5, 2), (5, 3), (5, 4), (5, 5), (5, 6), (5, 7)]),
        (1, 0, []),  # what two exclusive bounds at one moment come to
    ],
)
@pytest.mark.parametrize("left_first", [True, False])
def test_both_bounds_are_inclusive_whichever_side_comes_first(
    lower: int, upper: int, expected: list[tuple[int, int]], left_first: bool
) -> None:
    joined = subtasks(lower, upper)
    for side in (0, 1) if left_first else (1, 0):
        joined.push(side, at(5) if side == 0 else at(*range(1, 10)))
    assert times(joined.output) == expected


def test_only_records_of_one_key_meet() -> None:
    joined = subtasks(-10, 10, parallelism=2)
    joined.push(0, [((key, "left"), 1) for key in "abc"])
    joined.push(1, [((key, "right"), 2) for key in "bcd"])
    assert sorted(result[0][0] for result, _ in joined.output.main) == ["b", "c"]


def test_records_out_of_order_and_of_one_moment_all_find_their_partners() -> None:
    joined = subtasks(0, 1)
    joined.push(0, at(7, 3, 5, 3))
    joined.push(1, at(4, 3))
    assert times(joined.output) == [(3, 3), (3, 3), (3, 4), (3, 4)]


def test_results_have_the_later_timestamp_of_both_and_the_function_sees_all_three() -> None:
    joined = subtasks(-5, 5)
    joined.push(0, at(1, 9))
    joined.push(1, at(4))
    assert sorted(joined.output.main) == [
        ((("k", 1), ("k", 4), 1, 4, 4), 4),
        ((("k", 9), ("k", 4), 9, 4, 9), 9),
    ]


# -- late records ----------------------------------------------------------------------------------


def test_a_record_before_the_watermark_is_late_and_one_at_it_is_not() -> None:
    joined = subtasks(-10, 10)
    joined.watermark(5)
    joined.push(0, at(4, 5))
    joined.push(1, at(4, 5, 6))
    assert times(joined.output) == [(5, 5), (5, 6)]
    assert joined.operators[0].late_records_dropped == 2


def test_late_records_of_each_side_go_to_their_own_side_output_with_their_timestamps() -> None:
    joined = subtasks(-10, 10, tags=("late left", "late right"))
    joined.watermark(5)
    joined.push(0, at(4, 7))
    joined.push(1, at(3, 2, 7))
    assert joined.output.sides == {"late left": at(4), "late right": at(3, 2)}
    assert times(joined.output) == [(7, 7)]
    assert joined.operators[0].late_records_dropped == 0


def test_a_function_reaches_side_outputs_of_its_own() -> None:
    class Split(ProcessJoinFunction):
        def process_element(self, left: Any, right: Any, ctx: Any) -> Iterable[Any]:
            yield OutputTag("side"), left
            yield right

    joined = subtasks(0, 5, function=Split())
    joined.push(0, at(1))
    joined.push(1, at(2))
    assert joined.output.sides == {"side": [(("k", 1), 2)]}
    assert joined.output.main == [(("k", 2), 2)]


# -- what is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lower", "upper", "left_until", "right_until"),
    [
        (-2, 3, 3, 2),  # a left record may find partners up to 3 later, a right one up to 2 later
        (1, 3, 3, 0),
        (-3, -1, 0, 3),
        (0, 0, 0, 0),
    ],
)
def test_a_record_goes_with_the_watermark_that_ends_its_interval(
    lower: int, upper: int, left_until: int, right_until: int
) -> None:
    for side, until in ((0, left_until), (1, right_until)):
        joined = subtasks(lower, upper)
        joined.push(side, at(10))
        joined.watermark(10 + until - 1)
        assert len(kept(joined)) == 1
        joined.watermark(10 + until)
        assert kept(joined) == []
        assert entries_of_index(joined) == 0


def entries_of_index(joined: Subtasks) -> int:
    return len(joined.operators[0]._expiries)


def test_the_index_has_an_entry_for_each_key_and_side_however_many_records_there_are() -> None:
    joined = subtasks(-10, 10)
    joined.push(0, at(*range(50)))
    joined.push(1, at(*range(50)))
    assert entries_of_index(joined) == 2
    joined.watermark(30)
    assert kept(joined) == [([*range(21, 50)], [*range(21, 50)])]
    assert entries_of_index(joined) == 2
    joined.push(0, at(40, 30))  # behind the first one, which goes before them
    assert entries_of_index(joined) == 2
    joined.restart(1)
    assert entries_of_index(joined) == 2
    joined.watermark(59)
    assert (kept(joined), entries_of_index(joined)) == ([], 0)


def test_a_record_that_comes_before_the_first_of_its_key_goes_before_it() -> None:
    joined = subtasks(-10, 10)
    joined.push(0, at(8))
    joined.push(0, at(5))
    joined.watermark(15)
    assert kept(joined) == [([8], [])]
    joined.watermark(18)
    assert (kept(joined), entries_of_index(joined)) == ([], 0)


def test_only_what_is_over_goes() -> None:
    joined = subtasks(-2, 4)
    joined.push(0, at(1, 2, 3))
    joined.push(1, at(1, 3, 4))
    joined.watermark(6)
    assert kept(joined) == [([3], [])]
    joined.watermark(7)
    assert kept(joined) == []


def test_examples_of_join_functions_run() -> None:
    assert doctest.testmod(join_functions).failed == 0


def test_a_late_record_is_not_kept() -> None:
    joined = subtasks(-2, 2)
    joined.watermark(100)
    joined.push(0, at(1))
    assert kept(joined) == []


# -- failures and refusals -------------------------------------------------------------------------


def test_records_without_timestamps_are_refused() -> None:
    joined = subtasks(0, 1)
    with pytest.raises(ProgramError, match="right stream have none: call assign_timestamps"):
        joined.operators[0].process_batch2(RowBatch([("k", 1)]))
    with pytest.raises(ProgramError, match="timestamps that mean something"):
        joined.push(0, at(MIN_TIMESTAMP))


def test_a_failing_function_names_the_pair() -> None:
    class Fails(ProcessJoinFunction):
        def process_element(self, left: Any, right: Any, ctx: Any) -> Iterable[Any]:
            raise ValueError("no")

    joined = subtasks(0, 5, function=Fails())
    joined.push(0, at(1))
    with pytest.raises(UserCodeError) as caught:
        joined.push(1, at(2))
    assert caught.value.record == "(('k', 1), ('k', 2))"


class Counting(ProcessJoinFunction):
    """Keeps state per key, and says when it was opened and closed."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls.append("open")
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterable[Any]:
        self.count.update((self.count.value() or 0) + 1)
        return [(left[0], self.count.value())]

    def close(self) -> None:
        self.calls.append("close")


def test_a_function_may_keep_state_of_the_key() -> None:
    function = Counting()
    joined = subtasks(0, 5, function=function)
    joined.push(0, [(("a", 0), 1), (("b", 0), 1), (("a", 1), 2)])
    joined.push(1, [(("a", 2), 3), (("b", 2), 3)])
    assert [result for result, _ in joined.output.main] == [("a", 1), ("a", 2), ("b", 1)]
    joined.close()
    assert function.calls == ["open", "close"]


def test_many_results_go_on_in_portions() -> None:
    joined = subtasks(-100, 100)
    joined.push(0, at(*range(3)))
    joined.push(1, at(*range(20)))
    assert len(joined.output.main) == 60
    assert joined.output.largest < 10


def test_what_is_kept_may_live_in_rocksdb(tmp_path: Path) -> None:
    configuration = {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.localdir": str(tmp_path),
    }
    joined = Subtasks(
        lambda: IntervalJoinOperator(Pair(), FIRST, FIRST, -2, 2), 2, configuration=configuration
    )
    joined.push(0, at(9, 1, 5))
    joined.watermark(4)
    joined.restart(1)
    joined.watermark(4)
    assert kept(joined) == [([5, 9], [])]
    joined.push(1, at(7, 4, 11))
    assert times(joined.output) == [(5, 4), (5, 7), (9, 7), (9, 11)]
    joined.watermark(20)
    assert kept(joined) == []
    joined.close()


# -- any input -------------------------------------------------------------------------------------


def model(steps: Sequence[Any], lower: int, upper: int) -> tuple[Counter[Any], list[set[Any]]]:
    """Flink's rules, record by record: (joined pairs, late records of each side)."""
    watermark = MIN_TIMESTAMP
    sides: list[list[tuple[Any, int]]] = [[], []]
    pairs: Counter[Any] = Counter()
    late: list[set[Any]] = [set(), set()]
    for step in steps:
        if isinstance(step, int):
            watermark = step
            for side, keep in ((0, max(0, upper)), (1, max(0, -lower))):
                sides[side] = [
                    (value, time) for value, time in sides[side] if time + keep > watermark
                ]
            continue
        side, records = step
        for value, time in records:
            if time < watermark:
                late[side].add((value, time))
                continue
            sides[side].append((value, time))
            for partner, other in sides[1 - side]:
                left, right = (
                    ((value, time), (partner, other))
                    if side == 0
                    else ((partner, other), (value, time))
                )
                if left[0][0] == right[0][0] and lower <= right[1] - left[1] <= upper:
                    pairs[(left[0], right[0], left[1], right[1])] += 1
    return pairs, late


@given(disordered(), st.integers(-8, 8), st.integers(0, 10), st.integers(1, 3))
def test_any_input_is_joined_as_the_rules_say_and_a_restore_changes_nothing(
    steps: list[Any], lower: int, width: int, parallelism: int
) -> None:
    expected, late = model(without_restarts(steps), lower, lower + width)
    joined = subtasks(lower, lower + width, parallelism, ("left", "right"))
    output = joined.run(steps)
    assert Counter(result[:4] for result, _ in output.main) == expected
    assert all(stamp == result[4] == max(result[2], result[3]) for result, stamp in output.main)
    assert [set(output.sides.get(name, ())) for name in ("left", "right")] == late
    assert kept(joined) == []
