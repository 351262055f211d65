"""Records that can be changed in place: who changes what it got changes nothing for others, neither
for what is kept to be joined later nor for other pairs and windows. ``enable_object_reuse`` turns
the copies off that this takes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from flinkpy.common import Row, Time, WatermarkStrategy
from flinkpy.core.mutability import could_be_mutated, is_safe, isolated
from flinkpy.datastream import (
    AggregateFunction,
    CoGroupFunction,
    DataStream,
    KeyedStream,
    ProcessFunction,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
    WindowedStream,
)
from flinkpy.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkpy.testing import CollectingSink, embedded_environment

FORMS: dict[str, Callable[[int, int], Any]] = {
    "dict": lambda number, at: {"n": number, "at": at},
    "Row": lambda number, at: Row(n=number, at=at),
    "list": lambda number, at: [number, at],
    "tuple of a dict": lambda number, at: ({"n": number}, at),
}
ms = Time.milliseconds
at_zero = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record: 0)


def number(record: Any) -> int:
    found = record[0] if isinstance(record, (list, tuple)) else record["n"]
    return found["n"] if isinstance(found, dict) else found  # type: ignore[no-any-return]


def time(record: Any) -> int:
    return record[1] if isinstance(record, (list, tuple)) else record["at"]  # type: ignore[no-any-return]


def spoil(record: Any) -> None:
    found = record[0] if isinstance(record, tuple) else record
    found[0 if isinstance(record, list) else "n"] = -1


def spoiled_pair(first: Any, second: Any) -> tuple[int, int]:
    """The numbers of both, which are then changed."""
    found = number(first), number(second)
    spoil(first)
    spoil(second)
    return found


class Spoiling(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        yield spoiled_pair(left, right)


class Pairing(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        yield left, right


def one_key(record: Any) -> int:
    return 0


JOINS: dict[str, Callable[..., Any]] = {
    "interval": lambda a, b: (
        a.key_by(one_key).interval_join(b.key_by(one_key)).between(ms(-100), ms(100))
    ),
    "tumbling": lambda a, b: (
        a.join(b).where(one_key).equal_to(one_key).window(TumblingEventTimeWindows.of(ms(100)))
    ),
    "sliding": lambda a, b: (
        a.join(b)
        .where(one_key)
        .equal_to(one_key)
        .window(SlidingEventTimeWindows.of(ms(100), ms(50)))
    ),
    "sessions": lambda a, b: (
        a.join(b)
        .where(one_key)
        .equal_to(one_key)
        .window(EventTimeSessionWindows.with_gap(ms(1000)))
    ),
    "with an evictor": lambda a, b: (
        a.join(b)
        .where(one_key)
        .equal_to(one_key)
        .window(TumblingEventTimeWindows.of(ms(100)))
        .evictor(CountEvictor.of(99))
    ),
}
PAIRS = sorted((left, right) for left in (1, 2) for right in (11, 12, 13))


def sides(env: StreamExecutionEnvironment, form: str) -> tuple[DataStream, DataStream]:
    stamped = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(time)
    made = [
        [FORMS[form](each, 60 + each) for each in numbers] for numbers in ((1, 2), (11, 12, 13))
    ]
    left, right = (
        env.from_collection(records).assign_timestamps_and_watermarks(stamped) for records in made
    )
    return left, right


def run(stream: DataStream) -> list[Any]:
    sink = CollectingSink()
    stream.sink_to(sink)
    stream.get_execution_environment().execute()
    return sorted(sink.values)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("culprit", ["function", "consumer"])
def test_every_pair_of_a_join_has_the_records_as_they_came(
    culprit: str, join: str, form: str
) -> None:
    pairs = JOINS[join](*sides(embedded_environment(), form))
    if join == "interval":
        joined = (
            pairs.process(Spoiling())
            if culprit == "function"
            else pairs.process(Pairing()).map(lambda pair: spoiled_pair(*pair))
        )
    else:
        joined = (
            pairs.apply(spoiled_pair)
            if culprit == "function"
            else pairs.apply(lambda a, b: (a, b)).map(lambda pair: spoiled_pair(*pair))
        )
    assert run(joined) == sorted(PAIRS * (2 if join == "sliding" else 1))


class Groups(CoGroupFunction):
    def co_group(self, first: list[Any], second: list[Any]) -> Any:
        found = sorted(map(number, first)), sorted(map(number, second))
        for record in [*first, *second]:
            spoil(record)
        yield found


@pytest.mark.parametrize("form", FORMS)
def test_groups_of_overlapping_windows_have_the_records_as_they_came(form: str) -> None:
    left, right = sides(embedded_environment(), form)
    groups = (
        left.co_group(right)
        .where(one_key)
        .equal_to(one_key)
        .window(SlidingEventTimeWindows.of(ms(100), ms(50)))
        .apply(Groups())
    )
    assert run(groups) == [([1, 2], [11, 12, 13])] * 2


def test_with_object_reuse_joins_hand_out_the_records_themselves() -> None:
    env = embedded_environment()
    env.get_config().enable_object_reuse()
    joined = JOINS["interval"](*sides(env, "list")).process(Identities())
    assert sorted({left for left, _ in run(joined)}) == [1, 2], (
        "each of two lists, whatever it was joined with"
    )


class Identities(ProcessJoinFunction):
    """Gives every left list a number, that stays as long as it is the same list."""

    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        if len(left) == 2:
            left.append(left[0])
        yield left[2], right[0]


def test_windows_of_records_that_can_be_changed_end_as_they_were_filled() -> None:
    env = embedded_environment()
    left, _ = sides(env, "dict")
    sliding = (
        left.key_by(one_key)
        .window(SlidingEventTimeWindows.of(ms(100), ms(50)))
        .apply(lambda key, window, inputs: inputs)
    )
    assert run(sliding.process(Spoil())) == [1, 1, 2, 2]


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("join", JOINS)
def test_one_record_of_many_that_can_be_changed_is_kept_as_it_came(join: str, size: int) -> None:
    env = embedded_environment()
    env.configure({"execution.runtime-mode": "BATCH"})  # in one piece
    left = env.from_collection(
        [(0, 0)] * (size // 2) + [([1], 0)] + [(0, 0)] * (size // 2)
    ).assign_timestamps_and_watermarks(at_zero)
    right = env.from_collection([(0, 0)] * 2).assign_timestamps_and_watermarks(at_zero)

    def found(one: Any, other: Any) -> int:
        if not isinstance(one[0], list):
            return 0
        one[0].append(1)
        return len(one[0])

    class Found(ProcessJoinFunction):
        def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
            yield found(left, right)

    pairs = JOINS[join](left, right)
    joined = pairs.process(Found()) if join == "interval" else pairs.apply(found)
    assert set(run(joined)) - {0} == {2}


WINDOWS: dict[str, Callable[[KeyedStream], WindowedStream]] = {
    "overlapping": lambda keyed: keyed.window(SlidingEventTimeWindows.of(ms(100), ms(50))),
    "overlapping, of another trigger": lambda keyed: keyed.window(
        SlidingEventTimeWindows.of(ms(100), ms(50))
    ).trigger(AtTheEnd()),
    "evaluated for each record": lambda keyed: keyed.window(
        TumblingEventTimeWindows.of(ms(100))
    ).trigger(CountTrigger.of(1)),
    "behind an evictor": lambda keyed: (
        keyed.window(TumblingEventTimeWindows.of(ms(100)))
        .trigger(CountTrigger.of(1))
        .evictor(CountEvictor.of(9))
    ),
}


class AtTheEnd(EventTimeTrigger):
    """Not the assigner's own, so the windows are not put together of slices."""


class Sum(AggregateFunction):
    """Into the first record, or the last."""

    def __init__(self, *, last: bool) -> None:
        self.last = last

    def create_accumulator(self) -> Any:
        return None

    def add(self, value: Any, accumulator: Any) -> Any:
        return value if accumulator is None else self.merge(accumulator, value)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        into, other = (acc_b, acc_a) if self.last else (acc_a, acc_b)
        into[0] += other[0]
        return into


def all_and_spoil(key: Any, window: Any, records: Any) -> list[int]:
    found = sum(record[0] for record in records)
    for record in records:
        record[0] = -1
    return [found]


@pytest.mark.parametrize(
    "kept",
    [
        "all",
        "reduced into the first",
        "reduced into the last",
        "added to the first",
        "added to the last",
    ],
)
@pytest.mark.parametrize("windows", WINDOWS)
def test_a_window_has_its_records_as_they_came_whatever_the_function_did_to_them_in_another(
    windows: str, kept: str
) -> None:
    stream = (
        embedded_environment()
        .from_collection([[1], [2], [4]])
        .assign_timestamps_and_watermarks(at_zero)
    )
    windowed = WINDOWS[windows](stream.key_by(one_key))
    last = kept.endswith("last")
    if kept == "all":
        results = windowed.apply(all_and_spoil)
    elif kept.startswith("added"):
        results = windowed.aggregate(Sum(last=last))
    else:
        results = windowed.reduce(lambda one, other: Sum(last=last).merge(one, other)).map(
            lambda record: record[0]
        )
    assert run(results) == ([7, 7] if windows.startswith("overlapping") else [1, 3, 7])


class Tally(AggregateFunction):
    """Its result is a list of its own, which grows with each window."""

    def __init__(self) -> None:
        self.windows: list[int] = []

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + value

    def get_result(self, accumulator: int) -> list[int]:
        self.windows.append(accumulator)
        return self.windows

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def test_the_result_of_a_window_is_what_the_aggregate_gave_at_that_time() -> None:
    numbers = (
        embedded_environment()
        .from_collection([1, 2, 3])
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
                lambda number: number
            )
        )
    )
    tallies = numbers.key_by(one_key).window(TumblingEventTimeWindows.of(ms(1))).aggregate(Tally())
    assert list(tallies.map(spoil_a_list).execute_and_collect()) == [
        [1, "spoiled"],
        [1, 2, "spoiled"],
        [1, 2, 3, "spoiled"],
    ]


@pytest.mark.parametrize(
    "reduce",
    [
        lambda total, record: (total if isinstance(total, list) else [total]) + [record],
        lambda total, record: [total, record],
        lambda total, record: grown(total, record),
    ],
)
def test_what_reduce_makes_of_numbers_is_given_out_as_it_is_at_the_time(
    reduce: Callable[[Any, Any], Any],
) -> None:
    expected = list(
        accumulate(
            [1, 2, 3, 4], lambda total, record: copy.deepcopy(reduce(copy.deepcopy(total), record))
        )
    )
    sums = embedded_environment().from_collection([1, 2, 3, 4]).key_by(one_key).reduce(reduce)
    assert list(sums.map(spoil_a_list).execute_and_collect()) == [
        spoil_a_list(each) for each in expected
    ]


def grown(total: Any, record: int) -> list[int]:
    """A list that was begun for the second record."""
    found = total if isinstance(total, list) else [total]
    found.append(record)
    return found


def spoil_a_list(found: Any) -> Any:
    if isinstance(found, list):
        found.append("spoiled")
    return found


class Spoil(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield number(value)
        spoil(value)


# -- what that rests on ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "safe"),
    [
        (np.float64(1.5), True),
        (np.int32(1), True),
        (np.datetime64(0, "s"), True),
        (np.zeros(2), False),
        (np.zeros(1, dtype=[("a", int)])[0], False),
        (("a", np.float64(1)), True),
        (("a", np.zeros(1)), False),
        (Row(1), False),
    ],
)
def test_numbers_of_numpy_cannot_be_changed_and_its_arrays_can(value: Any, safe: bool) -> None:
    assert is_safe(value) is safe
    assert could_be_mutated([value]) is not safe


def test_an_isolated_function_sees_copies_and_passes_on_what_else_it_gets() -> None:
    context: list[Any] = []

    def changes(one: list[int], other: list[int], seen: list[Any]) -> int:
        one.append(9)
        seen.append(other)
        return len(one)

    mine, yours = [1], [2]
    assert isolated(changes)(mine, yours, context) == 2
    assert (mine, context) == ([1], [[2]])
    assert context[0] is not yours


@pytest.mark.parametrize("form", FORMS)
def test_a_record_that_stands_in_a_collection_several_times_is_as_many_records(form: str) -> None:
    def spoiled(record: Any) -> int:
        found = number(record)
        spoil(record)
        return found

    record = FORMS[form](7, 0)
    stream = embedded_environment().from_collection([record, FORMS[form](8, 0), record, record])
    assert stream.map(spoiled).execute_and_collect(limit=4) == [7, 8, 7, 7]
    assert number(record) == 7
