"""Savepoints read and written without a job: what was made of history is what a job goes on
from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from flinkpy.common import Row, Types
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import (
    BroadcastProcessFunction,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.functions import CheckpointedFunction, MapFunction
from flinkpy.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from flinkpy.state_processor import (
    KeyedStateBootstrapFunction,
    KeyedStateReaderFunction,
    OperatorIdentifier,
    OperatorTransformation,
    SavepointFormatType,
    SavepointReader,
    SavepointWriter,
    StateBootstrapFunction,
)
from tests.checkpoints.kept_job import KEPT

TOTAL = ValueStateDescriptor("total", Types.LONG())
PAGES = ListStateDescriptor("pages", Types.STRING())
COUNTS = MapStateDescriptor("counts", Types.STRING(), Types.LONG())
LARGEST = ReducingStateDescriptor("largest", max, Types.LONG())
HISTORY = [
    (user, page, number)
    for number, (user, page) in enumerate(
        [("ann", "home"), ("bob", "help"), ("ann", "help"), ("cleo", "home")] * 25
    )
]


class FromHistory(KeyedStateBootstrapFunction):
    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(TOTAL)
        self.pages = runtime_context.get_list_state(PAGES)
        self.counts = runtime_context.get_map_state(COUNTS)
        self.largest = runtime_context.get_reducing_state(LARGEST)

    def process_element(self, value: Any, ctx: Any) -> None:
        _, page, amount = value
        assert ctx.get_current_key() == value[0]
        self.total.update((self.total.value() or 0) + amount)
        if page not in self.counts:
            self.pages.add(page)
        self.counts.put(page, (self.counts.get(page) or 0) + 1)
        self.largest.add(amount)
        ctx.timer_service().register_event_time_timer(5000)


class GoesOn(KeyedProcessFunction):
    """Counts on from what history left, and tells all of it at the end and at the timers of
    history."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(TOTAL)
        self.pages = runtime_context.get_list_state(PAGES)
        self.counts = runtime_context.get_map_state(COUNTS)
        self.largest = runtime_context.get_reducing_state(LARGEST)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.total.update((self.total.value() or 0) + value[2])
        self.counts.put(value[1], (self.counts.get(value[1]) or 0) + 1)
        self.largest.add(value[2])
        yield (
            "record",
            value[0],
            self.total.value(),
            list(self.pages.get()),
            sorted(self.counts.items()),
            self.largest.get(),
        )

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield "timer", ctx.get_current_key(), timestamp


def environment(parallelism: int, savepoint: str, **options: Any) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    env.set_max_parallelism(64)
    env.program.values.update(
        {"execution.state-recovery.path": savepoint, "restart-strategy.type": "none", **options}
    )
    return env


def totals() -> dict[str, tuple[int, list[tuple[str, int]]]]:
    found = {}
    for user in ("ann", "bob", "cleo"):
        of_user = [(page, number) for each, page, number in HISTORY if each == user]
        pages = [page for page, _ in of_user]
        found[user] = (
            sum(number for _, number in of_user),
            sorted((page, pages.count(page)) for page in set(pages)),
        )
    return found


@pytest.mark.parametrize("form", SavepointFormatType)
@pytest.mark.parametrize(
    ("parallelism", "backend", "parts"), [(1, "hashmap", 3), (3, "rocksdb", 1)]
)
def test_a_job_goes_on_from_state_that_was_made_of_history(
    form: SavepointFormatType, parallelism: int, backend: str, parts: int, tmp_path: Path
) -> None:
    state = OperatorTransformation.bootstrap_with(HISTORY).key_by(0).transform(FromHistory())
    location = (
        SavepointWriter.new_savepoint(64, parts)
        .with_operator("visits", state)
        .write(str(tmp_path / "savepoint"), form)
    )
    env = environment(parallelism, location, **{"state.backend.type": backend})
    new = env.from_collection([("ann", "home", 1000), ("bob", "news", 2000), ("dora", "home", 3)])
    with (
        new.key_by(lambda value: value[0])
        .process(GoesOn())
        .uid("visits")
        .execute_and_collect() as results
    ):
        found = sorted(results)
    was = totals()
    ann, bob = (dict(was[user][1]) for user in ("ann", "bob"))
    assert found == sorted(
        [
            (
                "record",
                "ann",
                was["ann"][0] + 1000,
                ["home", "help"],
                sorted({**ann, "home": ann["home"] + 1}.items()),
                1000,
            ),
            (
                "record",
                "bob",
                was["bob"][0] + 2000,
                ["help"],
                sorted({**bob, "news": 1}.items()),
                2000,
            ),
            ("record", "dora", 3, [], [("home", 1)], 3),
            *(("timer", user, 5000) for user in was),
        ]
    )


def test_a_job_with_another_max_parallelism_is_refused(tmp_path: Path) -> None:
    state = OperatorTransformation.bootstrap_with(HISTORY).key_by(0).transform(FromHistory())
    location = (
        SavepointWriter.new_savepoint(128)
        .with_operator("visits", state)
        .write(str(tmp_path / "savepoint"))
    )
    env = environment(1, location)
    stream = (
        env.from_collection([("ann", "home", 1)])
        .key_by(lambda value: value[0])
        .process(GoesOn())
        .uid("visits")
    )
    with (
        pytest.raises(JobExecutionError, match="max parallelism"),
        stream.execute_and_collect() as results,
    ):
        list(results)


class OfRows(KeyedStateBootstrapFunction):
    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(TOTAL)

    def process_element(self, value: Row, ctx: Any) -> None:
        self.total.update((self.total.value() or 0) + value["n"])


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"k": ["a", "b", "a"], "n": [1, 2, 3]}),
        pa.table({"k": ["a", "b", "a"], "n": [1, 2, 3]}).to_batches()[0],
        pd.DataFrame({"k": ["a", "b", "a"], "n": [1, 2, 3]}),
        [Row(k="a", n=1), Row(k="b", n=2), Row(k="a", n=3)],
    ],
    ids=lambda data: type(data).__name__,
)
def test_state_is_made_of_arrow_pandas_and_rows(data: Any, tmp_path: Path) -> None:
    state = OperatorTransformation.bootstrap_with(data).key_by("k").transform(OfRows())
    location = (
        SavepointWriter.new_savepoint()
        .with_operator("sums", state)
        .write(str(tmp_path / "savepoint"))
    )
    read = SavepointReader.read(location).read_keyed_state("sums", "total")
    assert sorted(read) == [("a", 4), ("b", 2)]
    table = read.to_arrow()
    assert table.schema == pa.schema([("key", pa.string()), ("value", pa.int64())])
    assert dict(zip(read.to_pandas()["key"], read.to_pandas()["value"])) == {"a": 4, "b": 2}


@pytest.mark.spark
def test_state_is_made_of_a_spark_dataframe(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "k string, n long")
    state = OperatorTransformation.bootstrap_with(frame).key_by("k").transform(OfRows())
    location = (
        SavepointWriter.new_savepoint()
        .with_operator("sums", state)
        .write(str(tmp_path / "savepoint"))
    )
    assert sorted(SavepointReader.read(location).read_keyed_state("sums", "total")) == [
        ("a", 4),
        ("b", 2),
    ]
    shown = spark.read.parquet(f"{location}/*.total.*.parquet").select("key", "value").collect()
    assert sorted(map(tuple, shown)) == [("a", 4), ("b", 2)]


class Limits(StateBootstrapFunction):
    def initialize_state(self, store: Any) -> None:
        self.limits = store.get_broadcast_state(
            MapStateDescriptor("limits", Types.STRING(), Types.LONG())
        )
        self.names = store.get_union_list_state(ListStateDescriptor("names", Types.STRING()))
        self.each = store.get_list_state(ListStateDescriptor("each", Types.LONG()))

    def process_element(self, value: tuple[str, int]) -> None:
        self.limits.put(*value)
        self.names.add(value[0])
        self.each.add(value[1])


class Within(BroadcastProcessFunction):
    def process_element(self, value: tuple[str, int], ctx: Any) -> Iterable[Any]:
        limit = ctx.get_broadcast_state(
            MapStateDescriptor("limits", Types.STRING(), Types.LONG())
        ).get(value[0])
        yield value[0], value[1] <= limit

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        return ()


class Known(MapFunction, CheckpointedFunction):
    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.names = sorted(
            store.get_union_list_state(ListStateDescriptor("names", Types.STRING())).get()
        )

    def map(self, value: Any) -> Any:
        return self.names

    def snapshot_state(self, context: Any) -> None: ...


@pytest.mark.parametrize("form", SavepointFormatType)
def test_operator_state_is_made_and_read(form: SavepointFormatType, tmp_path: Path) -> None:
    state = OperatorTransformation.bootstrap_with([("a", 5), ("b", 7)]).transform(Limits())
    location = (
        SavepointWriter.new_savepoint(64, 2)
        .with_operator("limits", state)
        .with_operator("known", state)
        .write(str(tmp_path / "savepoint"), form)
    )
    reader = SavepointReader.read(location)
    assert dict(reader.read_broadcast_state("limits", "limits")) == {"a": 5, "b": 7}
    assert list(reader.read_union_state("limits", "names")) == ["a", "b"]
    assert reader.read_list_state("limits", "each").to_arrow().to_pydict() == {"value": [5, 7]}
    with pytest.raises(
        ProgramError,
        match=(
            r"has no list state 'names'; it has 'limits' \(broadcast state\), 'names' \(union "
            r"list state\)"
        ),
    ):
        reader.read_list_state("limits", "names")
    only_one = {"execution.state-recovery.ignore-unclaimed-state": True}
    env = environment(2, location, **only_one)
    told = env.from_collection([("x", 1)]).broadcast(
        MapStateDescriptor("limits", Types.STRING(), Types.LONG())
    )
    checked = (
        env.from_collection([("a", 5), ("b", 8), ("a", 6)])
        .connect(told)
        .process(Within())
        .uid("limits")
    )
    with checked.execute_and_collect() as results:
        assert sorted(results) == [("a", False), ("a", True), ("b", False)]
    env = environment(2, location, **only_one)
    with env.from_collection([1, 2]).map(Known()).uid("known").execute_and_collect() as results:
        assert list(results) == [["a", "b"]] * 2


@pytest.mark.parametrize("form", ["native", "canonical"])
def test_states_of_a_jobs_savepoint_are_read(form: str) -> None:
    reader = SavepointReader.read(str(KEPT / "0.1.0" / form))
    last = reader.read_keyed_state("states", "last").to_arrow()
    assert str(last.schema.field("value").type) == "struct<day: date32[day], at: int64>"
    assert sorted(last["key"].to_pylist()) == list("abcde")
    expiring = dict(reader.read_keyed_state("states", "expiring"))
    assert expiring["a"].startswith("a ")
    assert all(key == value[0] for key, value in reader.read_keyed_state("sums", "_running result"))
    numbers = dict(reader.read_keyed_state("states", "numbers"))
    assert {type(number) for number in numbers["a"]} == {int, float}
    assert sum(reader.read_keyed_state("states", "numbers").to_arrow()["value"][0].as_py()) > 0
    with pytest.raises(ProgramError, match=r"no table: .*iterate over its entries instead"):
        reader.read_keyed_state("sessions", "_windows").to_arrow()
    assert dict(reader.read_broadcast_state("ruled", "factors")) == {0: 0.5, 1: 1.5, 2: -2.0}
    assert len(list(reader.read_union_state("listed", "largest"))) == 2


def test_several_states_are_read_together_with_the_timers_of_their_key() -> None:
    class All(KeyedStateReaderFunction):
        def open(self, runtime_context: Any) -> None:
            self.total = runtime_context.get_reducing_state(
                ReducingStateDescriptor("total", lambda a, b: a + b, Types.LONG())
            )
            self.digits = runtime_context.get_map_state(
                MapStateDescriptor("digits", Types.STRING(), Types.LONG())
            )

        def read_key(self, key: Any, ctx: Any) -> Iterable[Any]:
            yield (
                key,
                self.total.get(),
                sum(self.digits.values()),
                ctx.registered_event_time_timers(),
                ctx.registered_processing_time_timers(),
            )

    found = {
        key: rest
        for key, *rest in SavepointReader.read(str(KEPT / "0.1.0" / "canonical")).read_keyed_state(
            "states", All()
        )
    }
    assert sorted(found) == list("abcde")
    assert {count for _, count, _, _ in found.values()} == {12}
    assert all(
        set(timers) <= {12000, 12001} and timers and not none
        for _, _, timers, none in found.values()
    )


@pytest.mark.parametrize("form", SavepointFormatType)
def test_a_savepoint_is_changed_operator_by_operator(
    form: SavepointFormatType, tmp_path: Path
) -> None:
    one = OperatorTransformation.bootstrap_with(HISTORY).key_by(0).transform(FromHistory())
    first = (
        SavepointWriter.new_savepoint(64)
        .with_operator("visits", one)
        .with_operator("more", one)
        .write(str(tmp_path / "first"), form)
    )
    other = OperatorTransformation.bootstrap_with([Row(k="x", n=9)]).key_by("k").transform(OfRows())
    second = (
        SavepointWriter.from_existing_savepoint(first)
        .remove_operator("more")
        .change_operator_identifier("visits", "calls")
        .with_operator("visits", other)
        .write(str(tmp_path / "second"), form)
    )
    reader = SavepointReader.read(second)
    assert dict(reader.read_keyed_state("calls", "total")) == {
        user: total for user, (total, _) in totals().items()
    }
    assert dict(reader.read_keyed_state("visits", "total")) == {"x": 9}
    with pytest.raises(
        ProgramError,
        match="has no state of an operator with the uid 'more'; it has that of 'visits'",
    ):
        reader.read_keyed_state("more", "total")
    # the first one stays as it was
    assert sorted(SavepointReader.read(first).read_keyed_state("more", "total"))


def test_a_jobs_savepoint_is_changed_and_the_job_goes_on(tmp_path: Path) -> None:
    """Only one state of the job's operators is exchanged; the others are copied, in whichever form
    they are."""
    for form in ("native", "canonical"):
        kept = SavepointWriter.from_existing_savepoint(str(KEPT / "0.1.0" / form))
        location = kept.change_operator_identifier("sums", "renamed").write(str(tmp_path / form))
        before = SavepointReader.read(str(KEPT / "0.1.0" / form))
        after = SavepointReader.read(location)
        assert sorted(after.read_keyed_state("renamed", "_running result")) == sorted(
            before.read_keyed_state("sums", "_running result")
        )
        assert sorted(after.read_keyed_state("states", "total")) == sorted(
            before.read_keyed_state("states", "total")
        )


def test_mistakes_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    state = OperatorTransformation.bootstrap_with(HISTORY).key_by(0).transform(FromHistory())
    writer = SavepointWriter.new_savepoint().with_operator("visits", state)
    for call, message in (
        (
            lambda: writer.with_operator("visits", state),
            r"already: call remove_operator\('visits'\) before",
        ),
        (lambda: writer.remove_operator("others"), "has no state of the operator 'others'"),
        (lambda: writer.change_operator_identifier("visits", "visits"), "already: remove it first"),
        (lambda: writer.with_operator("x", FromHistory()), "takes what transform"),  # type: ignore[arg-type]
        (
            lambda: OperatorTransformation.bootstrap_with([1]).transform(FromHistory()),  # type: ignore[arg-type]
            "takes a StateBootstrapFunction",
        ),
        (
            lambda: OperatorTransformation.bootstrap_with([1]).key_by(0).transform(Limits()),  # type: ignore[arg-type]
            "takes a KeyedStateBootstrapFunction",
        ),
        (
            lambda: OperatorTransformation.bootstrap_with([1]).key_by(),
            "takes a function, or the names",
        ),
        (lambda: SavepointWriter.new_savepoint(4, 5), "cannot be"),
        (lambda: OperatorIdentifier.for_uid_hash("visits"), "32 hexadecimal digits"),
        (lambda: SavepointReader.read(str(tmp_path)), "is no checkpoint"),
    ):
        with pytest.raises(ProgramError, match=message):
            call()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ProgramError, match="is not empty"):
        writer.write(str(tmp_path / "full"))
    no_records = OperatorTransformation.bootstrap_with(7).key_by(0).transform(FromHistory())
    with pytest.raises(ProgramError, match="state is made of records"):
        SavepointWriter.new_savepoint().with_operator("visits", no_records).write(
            str(tmp_path / "new")
        )
    series = (
        OperatorTransformation.bootstrap_with(pd.Series([1])).key_by(0).transform(FromHistory())
    )
    with pytest.raises(ProgramError, match="this is a Series: give a DataFrame"):
        SavepointWriter.new_savepoint().with_operator("visits", series).write(str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_a_failing_function_leaves_no_savepoint(tmp_path: Path) -> None:
    class Fails(OfRows):
        def process_element(self, value: Row, ctx: Any) -> None:
            raise ValueError("a record that does not fit")

    state = OperatorTransformation.bootstrap_with([Row(k="a", n=1)]).key_by("k")
    writer = (
        SavepointWriter.new_savepoint()
        .with_operator("first", state.transform(OfRows()))
        .with_operator("second", state.transform(Fails()))
    )
    with pytest.raises(ValueError, match="does not fit"):
        writer.write(str(tmp_path / "savepoint"))
    assert not (tmp_path / "savepoint").exists()


def test_what_a_function_opened_is_closed(tmp_path: Path) -> None:
    left_open = set[int]()

    class Holds(OfRows):
        def open(self, runtime_context: Any) -> None:
            super().open(runtime_context)
            self.held = object()
            left_open.add(id(self.held))

        def close(self) -> None:
            left_open.remove(id(self.held))

    class HoldsLimits(Limits):
        def open(self, runtime_context: Any) -> None:
            left_open.add(id(self))

        def close(self) -> None:
            left_open.remove(id(self))

    state = OperatorTransformation.bootstrap_with([Row(k="a", n=1)]).key_by("k").transform(Holds())
    limits = OperatorTransformation.bootstrap_with([]).transform(HoldsLimits())
    SavepointWriter.new_savepoint(64, 3).with_operator("sums", state).with_operator(
        "limits", limits
    ).write(str(tmp_path / "savepoint"))
    assert left_open == set()


def test_of_states_with_files_of_their_own_only_those_of_the_one_that_is_read_are_opened(
    tmp_path: Path,
) -> None:
    state = OperatorTransformation.bootstrap_with(HISTORY).key_by(0).transform(FromHistory())
    SavepointWriter.new_savepoint(64, 2).with_operator("visits", state).write(
        str(tmp_path / "savepoint")
    )
    for file in (tmp_path / "savepoint").glob("*.parquet"):
        if ".total." not in file.name:
            file.unlink()
    read = SavepointReader.read(str(tmp_path / "savepoint"))
    assert dict(read.read_keyed_state("visits", "total")) == {
        user: total for user, (total, _) in totals().items()
    }
    with pytest.raises(ProgramError, match=r"has no keyed state 'others'; it has .*'pages'"):
        read.read_keyed_state("visits", "others")
