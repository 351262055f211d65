from __future__ import annotations

import datetime
import pickle
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common import WatermarkStrategy
from flinkpy.connectors.memory.arrow_tables import ArrowSource
from flinkpy.connectors.memory.datagen import DataGeneratorSource
from flinkpy.connectors.memory.ranges import (
    CollectionSource,
    NumberSequenceSource,
    RangeSource,
    cut,
)
from flinkpy.connectors.source_api.enumerators import SplitDiscovery, SplitShares
from flinkpy.connectors.source_api.python_source import PythonSource, PythonSplit
from flinkpy.connectors.source_api.source import Boundedness, InputStatus
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import JobExecutionError, ProgramError, UserCodeError
from flinkpy.core.program.code import dumps
from flinkpy.datastream import ProcessFunction
from flinkpy.testing import embedded_environment
from tests.connectors.harness import World, read_all

# -- collections and sequences ---------------------------------------------------------------------


@settings(max_examples=25, deadline=None)  # pickling the user's way takes a while
@given(st.lists(st.integers(), max_size=50), st.integers(1, 9))
def test_a_collection_keeps_its_order_at_parallelism_1(values: list[int], batch: int) -> None:
    assert read_all(CollectionSource(values), batch_records=batch) == values


@settings(max_examples=25, deadline=None)  # pickling the user's way takes a while
@given(st.lists(st.integers(), max_size=50), st.integers(1, 6), st.integers(0, 1000))
def test_a_collection_is_read_once_by_many(values: list[int], parallelism: int, seed: int) -> None:
    assert sorted(read_all(CollectionSource(values), parallelism, seed, batch_records=7)) == sorted(
        values
    )


def test_a_collection_may_be_any_iterable_and_hold_anything() -> None:
    assert read_all(CollectionSource({"a": lambda: 1}.items()))[0][1]() == 1


def test_a_collection_that_cannot_travel_is_refused_when_built() -> None:
    with pytest.raises(ProgramError, match="the collection cannot be sent"):
        CollectionSource([threading.Lock()])


def test_the_pickle_of_a_collection_carries_no_data_where_that_goes_beside_it() -> None:
    assert len(dumps(CollectionSource(["x" * 1000] * 10), "the source", [])) < 1000


def test_a_number_sequence_holds_both_ends() -> None:
    assert read_all(NumberSequenceSource(3, 7)) == [3, 4, 5, 6, 7]
    assert sorted(read_all(NumberSequenceSource(-5, 1000), parallelism=4)) == list(range(-5, 1001))


def test_a_number_sequence_that_goes_down_is_refused() -> None:
    with pytest.raises(ProgramError, match="start 5 is greater than end 4"):
        NumberSequenceSource(5, 4)


@given(st.integers(-100, 100), st.integers(0, 100), st.integers(1, 20))
def test_cutting_a_range_loses_nothing(start: int, length: int, pieces: int) -> None:
    splits = cut(start, start + length, pieces)
    assert [index for split in splits for index in range(split.start, split.end)] == list(
        range(start, start + length)
    )
    assert len(splits) <= pieces


# -- columns ---------------------------------------------------------------------------------------


def test_an_arrow_table_of_many_chunks_is_read_in_order_as_columns() -> None:
    table = pa.concat_tables(
        [
            pa.table({"n": list(range(start, start + 10)), "s": ["x"] * 10})
            for start in range(0, 100, 10)
        ]
    )
    world = World(ArrowSource(table, batch_rows=32))
    world.run()
    batches = world.subtasks[0].output.batches
    assert all(isinstance(batch, ColumnBatch) for batch in batches)
    assert [len(batch) for batch in batches] == [32, 32, 32, 4]
    assert [row[0] for row in world.values] == list(range(100))
    world.close()


def test_an_empty_table_gives_nothing() -> None:
    assert read_all(ArrowSource(pa.table({"n": pa.array([], pa.int64())}))) == []


def test_a_pandas_frame_is_read_without_its_index() -> None:
    source = ArrowSource.from_pandas(pd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=[7, 8]))
    assert source.schema.names == ["a", "b"]
    assert [tuple(row) for row in read_all(source)] == [(1, "x"), (2, None)]


def test_a_list_is_no_table() -> None:
    with pytest.raises(ProgramError, match="this is a list"):
        ArrowSource([1, 2])


# -- generators ------------------------------------------------------------------------------------


def test_a_generator_makes_as_many_records_as_asked_for() -> None:
    assert read_all(
        DataGeneratorSource(lambda index: index * 2, count=250), batch_records=100
    ) == list(range(0, 500, 2))


@given(st.integers(0, 300), st.integers(1, 5), st.integers(0, 100))
def test_many_readers_share_the_indices(count: int, parallelism: int, seed: int) -> None:
    source = DataGeneratorSource(abs, count=count)
    assert sorted(read_all(source, parallelism, seed, batch_records=13)) == list(range(count))


def test_a_columnar_generator_gets_arrays_of_indices() -> None:
    source = DataGeneratorSource(
        lambda index: {"n": index, "square": index * index}, count=10, columns=True
    )
    assert source.is_columnar
    assert [tuple(row) for row in read_all(source, batch_records=4)] == [
        (n, n * n) for n in range(10)
    ]


def test_at_a_rate_each_record_leaves_when_it_is_due() -> None:
    source = DataGeneratorSource(lambda index: index, count=1000, rate=1000.0)
    world = World(source)
    moments: list[float] = []
    output = world.subtasks[0].output
    while not world.finished:
        before = len(output.batches)
        if not world.step():
            due = world.subtasks[0].timers.next_due()
            assert due is not None
            world.clock.advance(max(0.0, due - world.clock.monotonic()))
            world.subtasks[0].timers.fire()
        moments.extend(
            world.clock.monotonic() for batch in output.batches[before:] for _ in range(len(batch))
        )
    assert output.values == list(range(1000))
    assert all(len(batch) == 1 for batch in output.batches)
    assert np.allclose(moments, np.arange(1000) / 1000.0, atol=1e-6)
    world.close()


def test_a_generator_that_was_held_up_catches_up() -> None:
    world = World(DataGeneratorSource(lambda index: index, rate=100.0), batch_records=1000)
    output = world.subtasks[0].output
    while world.step():
        pass
    assert output.values == [0]
    world.clock.advance(1.0)  # nobody asked for a whole second
    world.subtasks[0].timers.fire()
    while world.step():
        pass
    assert output.values == list(range(101))
    world.close()


def test_the_rate_is_that_of_all_readers_together() -> None:
    world = World(DataGeneratorSource(lambda index: index, rate=100.0), parallelism=4)
    for _ in range(1000):
        if not world.step():
            world.clock.advance(0.005)
            if world.clock.monotonic() > 1.0:
                break
            for subtask in world.subtasks:
                subtask.timers.fire()
    assert abs(len(world.values) - 100) <= 1
    assert sorted(world.values) == list(range(len(world.values)))
    world.close()


def test_a_restored_generator_keeps_its_pace_from_where_it_was() -> None:
    world = World(DataGeneratorSource(lambda index: index, count=50, rate=10.0))
    for _ in range(60):
        if not world.step():
            world.clock.advance(0.1)
            world.subtasks[0].timers.fire()
    before, state = world.values, world.snapshot(0)
    world.restart(0, restored=state)
    world.run()
    assert before + world.values == list(range(50))
    world.close()


@pytest.mark.parametrize(
    ("count", "rate", "message"),
    [(-1, None, "count -1 is negative"), (1, 0, "rate 0 is not positive")],
)
def test_a_senseless_generator_is_refused(count: int, rate: float | None, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        DataGeneratorSource(lambda index: index, count, rate)


def test_without_a_count_a_generator_is_unbounded() -> None:
    assert DataGeneratorSource(abs).boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert DataGeneratorSource(abs, count=1).boundedness is Boundedness.BOUNDED


# -- sources in ten lines of Python ----------------------------------------------------------------


class Words(PythonSource):
    """Resumes by its own kind of position: how much of the text was read."""

    positioned = True

    def read(self, split: Any, position: int | None) -> Iterator[tuple[str, int]]:
        text = "to be or not to be"
        at = position or 0
        for word in text[at:].split():
            at = text.index(word, at) + len(word)
            yield word, at


def test_a_source_may_count_its_position_in_its_own_way() -> None:
    world = World(Words(), batch_records=2)
    while not world.values:
        world.step()
    before, state = world.values, world.snapshot(0)
    world.restart(0, restored=state)
    world.run()
    assert before + world.values == ["to", "be", "or", "not", "to", "be"]
    world.close()


class Wrong(PythonSource):
    """Gives what it was told to."""

    def __init__(self, splits: Any, records: Any, positioned: bool) -> None:
        self._splits = splits
        self._records = records
        self.positioned = positioned

    def splits(self, parallelism: int) -> Any:
        return self._splits

    def read(self, split: Any, position: Any) -> Any:
        return self._records


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            Wrong(None, [], False),
            r"Wrong\.splits\(\) gives None; it must return splits in a list, or yield each",
        ),
        (
            Wrong([1], None, False),
            r"Wrong\.read\(\) gives None; it must return records in a list, or yield each",
        ),
        (
            Wrong([1], [1], True),
            (
                r"Wrong\.read\(\) gives 1; as positioned is True, it gives pairs of a "
                r"record and the "
                r"position behind it"
            ),
        ),
    ],
)
def test_a_source_that_gives_something_else_is_told_what_to_give(
    source: PythonSource, message: str
) -> None:
    with pytest.raises((AssertionError, UserCodeError), match=message):
        read_all(source)


ALLOWED = threading.Semaphore(0)


class Blocking(PythonSource):
    """Gives one record each time the test allows it."""

    bounded = False
    blocking = True

    def read(self, split: Any, position: int) -> Iterator[int]:
        for index in range(position, 3):
            assert ALLOWED.acquire(timeout=10)
            yield index


class Sensors(PythonSource):
    """Three sensors; what each gives has no end."""

    bounded = False

    def __init__(self, blocking: bool = False) -> None:
        self.blocking = blocking

    def splits(self, parallelism: int) -> list[str]:
        return ["roof", "cellar", "yard"]

    def read(self, split: str, position: int) -> Iterator[tuple[str, int]]:
        yield from ((split, index) for index in count(position))


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("blocking", [False, True])
def test_splits_without_an_end_are_read_side_by_side(blocking: bool, parallelism: int) -> None:
    env = embedded_environment()
    env.set_parallelism(parallelism)
    seen: dict[str, list[int]] = {}
    with env.from_source(
        Sensors(blocking), WatermarkStrategy.no_watermarks(), "sensors"
    ).execute_and_collect() as readings:
        for sensor, index in readings:
            seen.setdefault(sensor, []).append(index)
            if len(seen) == 3:
                break
    assert all(indices == list(range(len(indices))) for indices in seen.values())


def test_splits_side_by_side_go_on_where_each_stood() -> None:
    world = World(Sensors(), batch_records=2)
    while len(world.values) < 8:
        world.step()
    before, state = world.values, world.snapshot(0)
    world.restart(0, restored=state)
    while len(world.values) < 8:
        world.step()
    for sensor in ["roof", "cellar", "yard"]:
        indices = [index for one, index in before + world.values if one == sensor]
        assert indices == list(range(len(indices)))
        assert len(indices) > 2
    world.close()


class Failing(PythonSource):
    blocking = True

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def read(self, split: Any, position: int) -> Iterator[int]:
        yield 0
        raise self._error


def _poll_until(world: World, count: int, woken: threading.Event) -> None:
    """Polls whenever the reading thread says so."""
    operator, output = world.subtasks[0].operator, world.subtasks[0].output
    operator.wake_up = woken.set
    while len(output.values) < count:
        while world.mail:
            world.mail.pop(0)()
        if (
            operator.emit_next() is InputStatus.NOTHING_AVAILABLE
            and len(output.values) < count
            and not world.mail
        ):
            assert woken.wait(10)
            woken.clear()


def test_a_blocking_source_is_read_on_a_thread_of_its_own() -> None:
    world = World(Blocking())
    ALLOWED.release(2)
    _poll_until(world, 2, threading.Event())
    assert world.values == [0, 1]
    assert world.subtasks[0].operator.emit_next() is InputStatus.NOTHING_AVAILABLE
    ALLOWED.release(1)  # let the thread end
    world.close()


def test_an_error_on_the_reading_thread_reaches_the_task() -> None:
    world = World(Failing(ValueError("device broken")))
    with pytest.raises(UserCodeError, match="device broken"):
        _poll_until(world, 2, threading.Event())
    world.close()


def test_an_exit_on_the_reading_thread_reaches_the_task_too() -> None:
    world = World(Failing(SystemExit(3)))
    with pytest.raises(SystemExit):
        _poll_until(world, 2, threading.Event())
    world.close()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(), max_size=40))
def test_a_blocking_source_gives_the_same_records(values: list[int]) -> None:
    class Threaded(PythonSource):
        blocking = True

        def read(self, split: Any, position: int) -> Iterator[int]:
            return iter(values[position:])

    world = World(Threaded())
    _poll_until(world, len(values), threading.Event())
    assert world.values == values
    world.close()


# -- times of a user's reader ----------------------------------------------------------------------


class Stamped(RangeSource):
    """Three records of a user's source, with these times."""

    has_timestamps = True

    def __init__(self, times: Any) -> None:
        super().__init__(0, 3)
        self.times = times

    def slicer(self) -> Callable[[int, int], Batch]:
        if isinstance(self.times, list):
            return lambda start, end: RowBatch(list(range(start, end)), self.times[start:end])
        return lambda start, end: ColumnBatch(
            pa.record_batch({"n": range(start, end)}), self.times[start:end]
        )

    @property
    def is_columnar(self) -> bool:
        return not isinstance(self.times, list)


def times_in_a_job(times: Any) -> list[int]:
    class Time(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
            yield ctx.timestamp()

    env = embedded_environment()
    stream = env.from_source(Stamped(times), WatermarkStrategy.no_watermarks(), "stamped")
    return stream.process(Time()).take(3)


@pytest.mark.parametrize(
    ("times", "why", "record"),
    [
        ([1, 2.5, 3], r"a timestamp is a whole number .*, poll\(\) gave 2\.5", "1"),
        ([1, 2, True], r"poll\(\) gave True", "2"),
        ([None, 2, 3], r"poll\(\) gave None", "0"),
        ([1, 2**70, 3], rf"poll\(\) gave {2**70} as event time", "1"),
        ([1, 2], r"poll\(\) gave \d records and \d timestamps", None),
        (np.array([1.0, 2.0, 3.0]), "no numpy array of int64", None),
        (np.array([1, 2]), "3 records and 2 timestamps", None),
    ],
)
def test_a_time_that_a_readers_batch_has_and_that_is_none_fails_the_job(
    times: Any, why: str, record: str | None
) -> None:
    with pytest.raises(JobExecutionError, match=why) as caught:
        times_in_a_job(times)
    assert record is None or f"on record {record}" in str(caught.value)


def test_times_of_a_readers_batch_may_be_numpys_numbers_and_datetimes() -> None:
    second = datetime.datetime(1970, 1, 1, 0, 0, 1)
    assert times_in_a_job([np.int64(7), second, 3]) == [7, 1000, 3]
    assert times_in_a_job(np.array([7, 8, 9])) == [7, 8, 9]


class Assigned:
    """What an enumerator assigns to the readers of a source."""

    def __init__(self, parallelism: int) -> None:
        self.parallelism = parallelism
        self.registered_readers: dict[int, str] = {}
        self.splits: dict[int, list[str]] = {}

    def assign_splits(self, subtask: int, splits: list[Any]) -> None:
        self.splits[subtask] = [split.split_id for split in splits]

    def call_async(self, call: Any, found: Any, interval_s: float | None = None) -> None: ...

    def send_event_to_reader(self, subtask: int, event: Any) -> None: ...

    def signal_no_more_splits(self, subtask: int) -> None: ...


@pytest.mark.parametrize(("parallelism", "wanted"), [(2, {1: ["b"]}), (3, {0: ["b"]})])
def test_a_split_that_waited_for_its_reader_at_a_checkpoint_goes_to_that_reader(
    parallelism: int, wanted: dict[int, list[str]]
) -> None:
    """With the same parallelism: watermarks of the other readers may be in flight."""
    splits = [PythonSplit(name, None, 0) for name in "abc"]
    shares: Any = SplitShares(Assigned(2), lambda _: splits)
    discovery: Any = SplitDiscovery(Assigned(2), lambda _: splits, 1)
    shares.start()
    discovery._found(splits, None)
    for enumerator in (shares, discovery):
        enumerator.add_reader(0)
        saved = pickle.loads(pickle.dumps(enumerator.snapshot_state(1)))
        context: Any = Assigned(parallelism)
        again: Any = (
            SplitShares(context, lambda _: splits, saved)
            if enumerator is shares
            else SplitDiscovery(context, lambda _: splits, 1, saved)
        )
        if enumerator is shares:
            again.start()
        for subtask in range(parallelism):
            again.add_reader(subtask)
        assert {at: given for at, given in context.splits.items() if given} == wanted


def test_a_savepoint_that_does_not_say_whose_splits_are_left_gives_them_in_turn() -> None:
    context: Any = Assigned(2)
    left = [PythonSplit(name, None, 0) for name in "xyz"]
    enumerator: Any = SplitShares(context, lambda _: [], left)
    enumerator.start()
    for subtask in range(2):
        enumerator.add_reader(subtask)
    assert context.splits == {0: ["x", "z"], 1: ["y"]}
