"""Sources written as Python iteration: columns, event times, positions, splits that become more,
and what was read for good."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkpy.common import Types, WatermarkStrategy
from flinkpy.common.time import Time
from flinkpy.connectors.source_api.python_source import PythonSplit
from flinkpy.connectors.source_api.readers import Acknowledgements
from flinkpy.connectors.sources import PythonSource
from flinkpy.core.errors import UserCodeError
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.table.expressions import col
from flinkpy.testing import embedded_environment
from tests.connectors.harness import World, read_all


class Given(PythonSource):
    """Gives what the test says."""

    def __init__(self, *records: Any, **attributes: Any) -> None:
        self.records = records
        vars(self).update(attributes)

    def read(self, split: Any, position: Any) -> Iterator[Any]:
        yield from (
            self.records[position or 0 :]
            if not self.positioned
            else (each for each in self.records if each[-1] > (position or 0))
        )


OVER, INTERRUPTED = threading.Event(), list[str]()


class HardToInterrupt(PythonSource):
    bounded, blocking = False, True

    def splits(self, parallelism: int) -> list[str]:
        return ["a", "b", "c"]

    def read(self, split: str, position: Any) -> Iterator[str]:
        yield split
        OVER.wait()

    def interrupt(self, split: str) -> None:
        INTERRUPTED.append(split)
        raise OSError(f"{split} is gone already")


def test_all_splits_are_interrupted_although_interrupting_one_of_them_fails() -> None:
    world = World(HardToInterrupt())
    world.run_until(lambda: len(world.values) == 3, "reading", 60)
    with pytest.raises(OSError, match="is gone already"):
        world.close()
    OVER.set()
    assert sorted(INTERRUPTED) == ["a", "b", "c"]


def test_columns_flow_as_columns() -> None:
    table = pa.table({"city": ["Oslo", "Rome", "Oslo"], "n": [1, 2, 3]})
    source = Given(table, table.to_batches()[0], columnar=True, schema=table.schema)
    stream = embedded_environment().from_source(source).filter(col("n") > 1)
    assert stream.to_arrow().to_pydict() == {"city": ["Rome", "Oslo"] * 2, "n": [2, 3] * 2}


def test_a_name_that_the_schema_does_not_have_is_told_while_the_program_is_built() -> None:
    source = Given(columnar=True, schema=pa.schema({"n": pa.int64()}))
    with pytest.raises(Exception, match="m"):
        embedded_environment().from_source(source).filter(col("m") > 1)


@pytest.mark.parametrize("blocking", [False, True])
def test_batches_have_positions_of_rows_or_of_their_own(blocking: bool) -> None:
    batches = [
        pa.table({"n": [1, 2]}),
        pa.table({"n": pa.array([], pa.int64())}),
        pa.table({"n": [3]}),
    ]
    counted = World(Given(*batches, columnar=True, blocking=blocking))
    counted.run_until(lambda: counted.finished, "reading", 20)
    assert [value[0] for value in counted.values] == [1, 2, 3]
    counted.close()
    own = World(
        Given(
            *((batch, at) for at, batch in enumerate(batches, 1)),
            columnar=True,
            positioned=True,
            blocking=blocking,
        )
    )
    own.run_until(lambda: bool(own.values), "reading", 20)
    rest = own.checkpoint()
    rest.run_until(lambda: rest.finished, "reading", 20)
    assert [value[0] for value in own.values + rest.values] == [1, 2, 3]
    own.close()
    rest.close()


def test_views_of_text_become_plain_text() -> None:
    batch = pa.record_batch({"t": pa.array(["a", None], pa.string_view())})
    world = World(Given(batch, columnar=True))
    world.run()
    [found] = world.subtasks[0].output.batches
    # they are columns
    assert found.data.schema.field("t").type == pa.string()  # type: ignore[union-attr]
    world.close()


def test_columns_are_brought_to_the_schema_that_the_source_says() -> None:
    schema = pa.schema([("n", pa.int64()), ("t", pa.string())])
    world = World(
        Given(
            pa.table({"t": ["a"], "more": [0], "n": pa.array([1], pa.int8())}),
            columnar=True,
            schema=schema,
        )
    )
    world.run()
    [found] = world.subtasks[0].output.batches
    assert found.data.schema == schema  # type: ignore[union-attr]  # they are columns
    world.close()


def test_event_times_may_be_numpys_numbers() -> None:
    world = World(Given(("a", np.int64(5)), has_timestamps=True))
    world.run()
    [found] = world.subtasks[0].output.batches
    assert [type(time) for time in found.timestamps or ()] == [int]
    world.close()


def test_event_times_come_with_the_records() -> None:
    source = Given(("a", 1000), ("b", 2500), ("c", 1500), has_timestamps=True)
    stream = embedded_environment().from_source(
        source, WatermarkStrategy.for_monotonous_timestamps()
    )
    counts = (
        stream.map(lambda value: 1, Types.INT())
        .window_all(TumblingEventTimeWindows.of(Time.seconds(1)))
        .reduce(lambda a, b: a + b)
    )
    assert sorted(counts.execute_and_collect()) == [1, 2]


def test_event_times_come_with_columns_too() -> None:
    batches = (pa.table({"n": [1, 2]}), [10, 20], 1), (pa.table({"n": [3]}), np.array([30]), 2)
    world = World(Given(*batches, columnar=True, has_timestamps=True, positioned=True))
    world.run()
    # each has some
    times = [int(time) for batch in world.subtasks[0].output.batches for time in batch.timestamps]  # type: ignore[union-attr]
    assert times == [10, 20, 30]
    world.close()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            Given(1, has_timestamps=True),
            "gives 1; as has_timestamps is True, it gives pairs of a record and its event time",
        ),
        (
            Given((1, 2), has_timestamps=True, positioned=True),
            (
                "as has_timestamps and positioned are True, it gives triples of a record, "
                "its event "
                "time and the position behind it"
            ),
        ),
        (
            Given(1, columnar=True),
            "gives 1; as columnar is True, it gives a pyarrow.RecordBatch or Table each time",
        ),
        (
            Given((pa.table({"n": [1, 2]}), [1]), columnar=True, has_timestamps=True),
            "gives 1 event times for 2 rows; it gives one for each",
        ),
        (
            Given((1, 5), (2, "noon"), has_timestamps=True),
            "whole number of milliseconds or a datetime, .* gave 'noon'",
        ),
        (
            Given((1, 1.5e12), has_timestamps=True),
            "whole number of milliseconds or a datetime, .* gave 1500000000000.0",
        ),
        (
            Given(pa.table({"m": [1]}), columnar=True, schema=pa.schema([("n", pa.int64())])),
            r"gives columns that are not those of its schema \(no column n\); there are m",
        ),
        (
            Given(pa.table({"n": [1.5]}).to_pandas(), columnar=True),
            "gives a DataFrame; as columnar is True",
        ),
    ],
)
def test_a_source_that_gives_something_else_is_told_what_to_give(
    source: PythonSource, message: str
) -> None:
    with pytest.raises(UserCodeError, match=message):
        read_all(source)


class Growing(Given):
    bounded = False
    discovery_interval_s: float | None = 0.5
    found: list[Any]

    def splits(self, parallelism: int) -> list[Any]:
        return list(self.found)

    def read(self, split: Any, position: Any) -> Iterator[Any]:
        yield from [(split, 1), (split, 2)][position:]


def test_splits_are_told_apart_by_their_text() -> None:
    world = World(Growing(found=["a", 1, ("b", 2)]), 2)
    world.run_until(lambda: len(world.values) == 6, "reading", 20)
    assert [subtask.output.values[0][0] for subtask in world.subtasks] == ["a", 1]  # in turn
    world.close()


def test_a_split_without_a_text_of_its_own_is_refused() -> None:
    world = World(Growing(found=[object()]))
    with pytest.raises(
        UserCodeError,
        match=(
            r"has no text that tells it from other splits: define split_id\(self, split\) in "
            r"Growing"
        ),
    ):
        world.run_until(lambda: False, "reading", 20)
    world.close()


def test_what_looking_for_splits_raises_fails_the_job() -> None:
    world = World(Growing(found=None))
    with pytest.raises(UserCodeError, match="NoneType"):
        world.run_until(lambda: False, "reading", 20)
    world.close()


def test_restored_before_it_has_looked_it_looks_again() -> None:
    first = World(Growing(found=["a", "b"]))
    second = first.restored_from((first.coordinator.snapshot_state(1), [first.snapshot(0)]))
    second.run_until(lambda: len(second.values) == 4, "reading", 20)
    first.close()
    second.close()


class Told:
    def __init__(self) -> None:
        self.told: list[list[tuple[str, int]]] = []
        self.of: Acknowledgements[PythonSplit] = Acknowledgements(self.tell)

    def tell(self, splits: list[PythonSplit]) -> None:
        self.told.append([(split.split_id, split.position) for split in splits])


def split(name: str, position: int) -> PythonSplit:
    return PythonSplit(name, None, position)


def test_what_an_aborted_checkpoint_had_is_acknowledged_with_the_next() -> None:
    told = Told()
    told.of.split_ended(split("a", 9))
    told.of.begin(1, [split("b", 1)])
    told.of.begin(2, [split("b", 4)])
    told.of.begin(3, [split("b", 6)])
    told.of.complete(2)
    assert told.told == [[("a", 9), ("b", 4)]]
    told.of.complete(2)
    assert len(told.told) == 1
    told.of.complete(3)
    assert told.told[1:] == [[("b", 6)]]
