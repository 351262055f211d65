"""What one key is, whatever operator and backend: over real values, each form against plain dicts
with the equality of ``docs/values.md``."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import MAX_TIMESTAMP, RowBatch, Watermark
from flinkpy.core.keys import canonical_key, canonical_keys, stable_hash
from flinkpy.datastream import KeyedProcessFunction
from flinkpy.graph.partitioning import KeySpec, Partitioning, PartitioningKind
from flinkpy.network.partitioning.partitioners import make_selector
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.process.interval_join import IntervalJoinOperator
from flinkpy.operators.process.process_operators import KeyedProcessOperator
from flinkpy.operators.rows.keyed import KeyedAggregateOperator, KeyedReduceOperator
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.state.rocksdb.key_bytes import encode_key
from flinkpy.windowing.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from flinkpy.windowing.general.contents import ReduceContents
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.joins.window_co_group import WindowCoGroupOperator
from flinkpy.windowing.joins.window_join import WindowJoinOperator
from flinkpy.windowing.session_windows import EventTimeSessionWindows
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.operators.harness import do_all
from tests.operators.joining import Subtasks
from tests.values import BERLIN, KEYS, NOON, UTC, has_none, key_of, may_meet, shown
from tests.windowing.slice_harness import Alone, row_windows

FIRST = KeySpec(selector=lambda record: record[0])  # is written out in loops


def first_of(record: Any) -> Any:
    return record[0] if record else None


CALLED = KeySpec(selector=first_of)
BACKENDS = [
    "hashmap",
    pytest.param(
        "rocksdb",
        marks=pytest.mark.skipif(find_spec("rocksdict") is None, reason="needs rocksdict"),
    ),
]
STREAMS = st.lists(KEYS, min_size=1, max_size=24).filter(may_meet)
# equal for a dict, but two moments
TWICE = [
    NOON.replace(hour=2, minute=30, tzinfo=BERLIN),
    NOON.replace(hour=2, minute=30, tzinfo=BERLIN, fold=1),
]
IN_TUPLES = [(key, 1) for key in TWICE]


def pieces(records: list[Any], size: int) -> list[list[Any]]:
    return [records[at : at + size] for at in range(0, len(records), size)]


@settings(max_examples=300)
@given(one=KEYS, other=KEYS)
@example(
    one=NOON.replace(hour=2, minute=30, tzinfo=BERLIN),
    other=NOON.replace(hour=0, minute=30, tzinfo=UTC),
)
@example(one=TWICE[0], other=TWICE[1])
def test_one_key_is_one_in_dicts_in_the_database_and_on_its_way(one: Any, other: Any) -> None:
    assume(may_meet([one, other]))
    same = key_of(other) in {key_of(one)}
    assert (canonical_key(other) in {canonical_key(one)}) == same
    assert (encode_key(one) == encode_key(other)) == same
    assert not same or stable_hash(one) == stable_hash(other)
    form = canonical_key(one)
    assert canonical_key(form) is form


@given(keys=STREAMS)
@example(keys=TWICE + IN_TUPLES)
def test_all_forms_of_a_batch_of_keys_are_those_of_each(keys: list[Any]) -> None:
    assert canonical_keys(keys) == list(map(canonical_key, keys))


@given(keys=STREAMS, stamped=st.booleans())
@example(keys=TWICE + IN_TUPLES, stamped=True)
@example(keys=TWICE[::-1] + IN_TUPLES[::-1] + TWICE, stamped=False)
def test_records_of_one_key_go_to_one_channel(keys: list[Any], stamped: bool) -> None:
    selector = make_selector(Partitioning(PartitioningKind.HASH, FIRST, max_parallelism=128), 3)
    channels: dict[Any, int] = {}
    for _ in range(2):
        for channel, part in selector.split(
            RowBatch([(key,) for key in keys], [1] * len(keys) if stamped else None)
        ):
            assert isinstance(part, RowBatch)
            for (key,) in part.values:
                assert channels.setdefault(key_of(key), channel) == channel


class Count(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        seen = (self.seen.value() or 0) + 1
        self.seen.update(seen)
        yield value[0], seen


def running(keys: list[Any]) -> tuple[list[Any], list[Any]]:
    """For each record its key's first record's key, and how many there have been."""
    firsts: dict[Any, Any] = {}
    counts: dict[Any, int] = {}
    shown_first, counted = [], []
    for key in keys:
        counts[key_of(key)] = counts.get(key_of(key), 0) + 1
        shown_first.append((firsts.setdefault(key_of(key), key), counts[key_of(key)]))
        counted.append((key, counts[key_of(key)]))
    return shown_first, counted


def add(a: Any, b: Any) -> Any:
    count = a[1] + b[1]
    return a[0], count


MAKERS: dict[str, Callable[[KeySpec], Any]] = {
    "a reduce that is written out": lambda key: KeyedReduceOperator(
        lambda a, b: (a[0], a[1] + b[1]), key
    ),
    "a reduce that is called": lambda key: KeyedReduceOperator(add, key),
    "sum": lambda key: KeyedAggregateOperator("sum", 1, key),
    "a process function": lambda key: KeyedProcessOperator(Count(), key),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", MAKERS)
@settings(max_examples=40)
@given(
    keys=STREAMS,
    key=st.sampled_from([FIRST, CALLED]),
    size=st.sampled_from([1, 3, 24]),
    restart=st.integers(0, 24),
)
@example(keys=[1, 1.0, True], key=FIRST, size=24, restart=24)
@example(keys=TWICE + IN_TUPLES + TWICE, key=FIRST, size=24, restart=24)
@example(keys=TWICE + IN_TUPLES + TWICE, key=CALLED, size=1, restart=3)
def test_running_results_are_those_of_a_dict(
    kind: str, backend: str, keys: list[Any], key: KeySpec, size: int, restart: int
) -> None:
    subtask = Alone(MAKERS[kind](key), backend=backend)
    results: list[Any] = []
    done = 0
    for batch in pieces([(each, 1) for each in keys], size):
        if done <= restart < done + size:
            saved = subtask.snapshot()
            subtask.operator.close()
            subtask = Alone(MAKERS[kind](key), saved, backend=backend)
        subtask.push(RowBatch(batch, [1] * len(batch)))
        results += [record for record, _ in subtask.results]
        subtask.out.batches.clear()
        done += len(batch)
    subtask.operator.close()
    assert shown(results) == shown(running(keys)[kind == "a process function"])


@pytest.mark.parametrize("memory", [1, 1 << 20], ids=["spilling", "in memory"])
@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind != "a process function"])
@settings(max_examples=40)
@given(keys=STREAMS)
@example(keys=TWICE + IN_TUPLES + TWICE)
def test_in_a_batch_job_each_key_has_the_last_of_its_running_results(
    kind: str, memory: int, keys: list[Any]
) -> None:
    last: dict[Any, Any] = {}
    for key, result in zip(keys, running(keys)[0]):
        last[key_of(key)] = result
    subtask = Alone(batch_form(MAKERS[kind](FIRST)))
    subtask.operator.groups._memory = memory  # type: ignore[attr-defined]
    for key in keys:
        subtask.push(RowBatch([(key, 1)], [1]))
    subtask.operator.finish()
    while subtask.operator.has_rest:
        subtask.operator.emit_rest()
    subtask.operator.close()
    assert sorted(map(str, map(shown, [record for record, _ in subtask.results]))) == sorted(
        map(str, map(shown, last.values()))
    )


WINDOWS: dict[str, Callable[[KeySpec], Any]] = {
    "slices": lambda key: row_windows(key, Slicing(10, 10, 0), True, "sum", 1),
    "slices that overlap": lambda key: row_windows(
        key, Slicing(10, 5, 0), True, "reduce", reduce_function=add
    ),
    "slices that count": lambda key: row_windows(
        key,
        Slicing(10, 10, 0),
        True,
        "count",
        window_function=lambda key, window, found: [(key, *found)],
    ),
    "windows": lambda key: WindowOperator(
        key, WindowingStrategy(TumblingEventTimeWindows(10)), ReduceContents(add)
    ),
    "windows that overlap": lambda key: WindowOperator(
        key, WindowingStrategy(SlidingEventTimeWindows(10, 5)), ReduceContents(add)
    ),
    "sessions": lambda key: WindowOperator(
        key, WindowingStrategy(EventTimeSessionWindows(5)), ReduceContents(add)
    ),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", WINDOWS)
@settings(max_examples=25)
@given(keys=STREAMS, size=st.sampled_from([1, 24]), restart=st.booleans())
@example(keys=TWICE + IN_TUPLES + TWICE, size=24, restart=False)
@example(keys=TWICE + IN_TUPLES + TWICE, size=1, restart=True)
# a set may have another order after a restore
@example(keys=[frozenset([1, float("nan")])], size=1, restart=True)
def test_windows_have_one_result_a_key(
    kind: str, backend: str, keys: list[Any], size: int, restart: bool
) -> None:
    subtask = Alone(WINDOWS[kind](FIRST), backend=backend)
    for number, batch in enumerate(pieces([(key, 1) for key in keys], size)):
        if restart and number == 1:
            saved = subtask.snapshot()
            subtask.operator.close()
            subtask = Alone(WINDOWS[kind](FIRST), saved, backend=backend)
        subtask.push(RowBatch(batch, [7] * len(batch)))
    subtask.push(Watermark(MAX_TIMESTAMP))
    subtask.operator.close()
    counts: dict[Any, Any] = {key_of(key): result for key, result in zip(keys, running(keys)[0])}
    times = 2 if kind.endswith("overlap") else 1
    if kind == "slices that count":  # what it shows is the key itself, and NaN is float's
        found = {str(shown(key_of(key))): count for (key, count), _ in subtask.results}
        assert found == {str(shown(key_of(key))): count for key, count in counts.values()}
        assert len(subtask.results) == len(counts)
        return
    assert sorted(str(shown(record)) for record, _ in subtask.results) == sorted(
        times * [str(shown(each)) for each in counts.values()]
    )


JOINS: dict[str, Callable[[], Any]] = {
    "window join": lambda: WindowJoinOperator(
        lambda a, b: (a, b), FIRST, FIRST, TumblingEventTimeWindows(10)
    ),
    "interval join": lambda: IntervalJoinOperator(lambda a, b, ctx: [(a, b)], FIRST, FIRST, -5, 5),
    "co-group": lambda: WindowCoGroupOperator(
        lambda a, b: [(one, other) for one in a for other in b],
        FIRST,
        FIRST,
        TumblingEventTimeWindows(10),
    ),
}


@pytest.mark.parametrize("kind", JOINS)
@settings(max_examples=40)
@given(left=STREAMS, right=STREAMS, size=st.sampled_from([1, 24]), restart=st.booleans())
@example(left=TWICE + IN_TUPLES, right=TWICE + IN_TUPLES, size=24, restart=False)
def test_joins_find_partners_of_one_key_and_none_for_none(
    kind: str, left: list[Any], right: list[Any], size: int, restart: bool
) -> None:
    assume(may_meet([*left, *right]))

    def row(side: str, keys: list[Any]) -> list[Any]:
        return [(key, f"{side}{number}") for number, key in enumerate(keys)]

    subtasks = Subtasks(JOINS[kind])
    for batch in pieces(row("l", left), size):
        do_all(subtasks.operators[0].process_batch1(RowBatch(batch, [7] * len(batch))))
    if restart:
        subtasks.restart(1)
    for batch in pieces(row("r", right), size):
        do_all(subtasks.operators[0].process_batch2(RowBatch(batch, [7] * len(batch))))
    do_all(subtasks.operators[0].process_watermark(Watermark(MAX_TIMESTAMP)))
    subtasks.close()
    found = sorted((one[1], other[1]) for (one, other), _ in subtasks.output.main)
    assert found == sorted(
        (one[1], other[1])
        for one in row("l", left)
        for other in row("r", right)
        if key_of(other[0]) in {key_of(one[0])} and (kind == "co-group" or not has_none(one[0]))
    )
