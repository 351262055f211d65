"""Jobs that stop with a savepoint and go on from it give what one that never stopped gives."""

from __future__ import annotations

import ast
import asyncio
import itertools
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common import Duration, Time, Types, WatermarkStrategy
from flinkpy.common.job_client import JobClient
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.core.errors import ConfigurationError, FlinkpyError, SavepointError
from flinkpy.datastream import (
    AsyncDataStream,
    DataStream,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Committer
from tests.waiting import eventually

KEYS, RECORDS, RATE, WINDOW_MS = 7, 600, 1500, 50
Record = tuple[Any, ...]


class Case(NamedTuple):
    """A program over (key, time) for each millisecond, and the lines that an undisturbed run
    writes."""

    name: str
    build: Callable[[DataStream], DataStream]
    wanted: Callable[[], list[Record]]


def timed(stream: DataStream) -> DataStream:
    """With fewer subtasks than before, one of them reads what is left of several splits, one after
    the other: their times are out of order."""
    out_of_order = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(RECORDS))
    strategy = out_of_order.with_timestamp_assigner(lambda record, _: record[1])
    return stream.assign_timestamps_and_watermarks(strategy)


def windows() -> TumblingEventTimeWindows:
    return TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS))


def running_counts(stream: DataStream) -> DataStream:
    counted = stream.map(lambda record: (record[0], 1)).uid("ones").key_by(lambda record: record[0])
    return counted.reduce(lambda a, b: (a[0], a[1] + b[1])).uid("counts")


def wanted_counts() -> list[Record]:
    return [
        (key, count + 1) for key in range(KEYS) for count, _ in enumerate(range(key, RECORDS, KEYS))
    ]


def windowed_sums(stream: DataStream) -> DataStream:
    return (
        timed(stream)
        .key_by(lambda record: record[0])
        .window(windows())
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .uid("windows")
    )


def wanted_windows() -> list[Record]:
    sums: Counter[tuple[int, int]] = Counter()
    for index in range(RECORDS):
        sums[index % KEYS, index // WINDOW_MS] += index
    return [(key, total) for (key, _), total in sums.items()]


def joined(stream: DataStream) -> DataStream:
    left, right = timed(stream), timed(stream.map(lambda record: (*record, "right")).uid("right"))
    both = (
        left.join(right)
        .where(lambda record: record[0])
        .equal_to(lambda record: record[0])
        .window(windows())
    )
    return both.apply(lambda a, b: (a[0], a[1], b[1]))


def wanted_pairs() -> list[Record]:
    met = defaultdict(list)
    for index in range(RECORDS):
        met[index % KEYS, index // WINDOW_MS].append(index)
    return [
        (key, a, b) for (key, _), times in met.items() for a, b in itertools.product(times, times)
    ]


def looked_up(stream: DataStream) -> DataStream:
    async def answer(record: Record) -> list[Record]:
        await asyncio.sleep(0.01 * (record[1] % 5))
        return [record]

    return AsyncDataStream.unordered_wait(stream, answer, Time.seconds(60)).uid("answers")


class AtTimers(KeyedProcessFunction):
    """Each record, at a timer of processing time, or at the latest when event time ends."""

    def open(self, runtime_context: Any) -> None:
        from flinkpy.datastream.state import ListStateDescriptor

        self.waiting = runtime_context.get_list_state(
            ListStateDescriptor("waiting", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: Any, ctx: Any) -> None:
        self.waiting.add(value)
        ctx.timer_service().register_processing_time_timer(
            ctx.timer_service().current_processing_time() + 20
        )
        ctx.timer_service().register_event_time_timer(2**62)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield from list(self.waiting.get() or ())
        self.waiting.clear()


def at_timers(stream: DataStream) -> DataStream:
    return timed(stream).key_by(lambda record: record[0]).process(AtTimers()).uid("timers")


def wanted_records() -> list[Record]:
    return [(index % KEYS, index) for index in range(RECORDS)]


CASES = [
    Case("running counts", running_counts, wanted_counts),
    Case("windows", windowed_sums, wanted_windows),
    Case("joins", joined, wanted_pairs),
    Case("asynchronous calls", looked_up, wanted_records),
    Case("timers of processing time", at_timers, wanted_records),
]


class Program:
    """A case, its folders, and its runs."""

    def __init__(self, case: Case, folder: Path, options: dict[str, Any]) -> None:
        self.case = case
        self.folder = folder
        self.options = options
        self.savepoint: str | None = None
        self.runs, self.rate = 0, RATE

    def start(self, parallelism: int, mark: int) -> JobClient:
        """One more run, from the last savepoint if there is one. It is at the mark when its file is
        there."""
        self.runs += 1
        reached = self.folder / f"reached-{self.runs}"
        options = {
            **self.options,
            "execution.checkpointing.savepoint-dir": str(self.folder / "savepoints"),
        }
        if self.savepoint is not None:
            options["execution.state-recovery.path"] = self.savepoint
        env = StreamExecutionEnvironment.get_execution_environment(options)
        env.set_parallelism(parallelism).set_max_parallelism(16)

        def passed(record: Record) -> Record:
            if record[1] >= mark and not reached.exists():
                reached.touch()
            return record

        pairs = (
            env.generate(lambda index: (index % KEYS, index), count=RECORDS, rate=self.rate)
            .uid("pairs")
            .map(passed)
            .uid("passed")
        )
        self.case.build(pairs).sink_to(FileSink(self.folder / "out")).uid("out")
        client = env.execute_async(self.case.name)
        eventually(lambda: reached.exists() or client.get_job_status().result().is_terminal_state())
        return client

    def stop(self, client: JobClient, drain: bool = False, form: str | None = None) -> bool:
        """False: it had ended before."""
        asked = client.stop_with_savepoint(drain, format_type=form)
        error = asked.exception(60)
        if isinstance(error, SavepointError) and (
            "has ended" in str(error) or "is FINISHED" in str(error)
        ):
            return False
        self.savepoint = asked.result()
        assert client.get_job_status().result().name == "FINISHED"
        return True

    def finish(self, client: JobClient) -> None:
        client.get_job_execution_result().result()

    def written(self) -> list[Record]:
        files = [
            path
            for path in (self.folder / "out").rglob("*")
            if path.is_file() and not path.name.startswith(".")
        ]
        return sorted(
            ast.literal_eval(line) for path in files for line in path.read_text().splitlines()
        )


parallelisms = st.integers(1, 3)
marks = st.integers(0, RECORDS - 150)
forms = st.sampled_from([None, "CANONICAL"])
options = st.sampled_from(
    [
        {},
        {"execution.checkpointing.interval": "30 ms"},
        {"state.backend.type": "rocksdb"},
        {"taskmanager.numberOfTaskSlots": "1", "execution.checkpointing.interval": "50 ms"},
    ]
)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(CASES),
    options,
    st.lists(st.tuples(parallelisms, marks, forms), min_size=1, max_size=3),
    parallelisms,
)
def test_what_stops_and_goes_on_gives_what_an_undisturbed_run_gives(
    case: Case, options: dict[str, str], stops: list[tuple[int, int, str | None]], at_last: int
) -> None:
    with TemporaryDirectory() as folder:
        program = Program(case, Path(folder), options)
        if all(
            program.stop(program.start(parallelism, mark), form=form)
            for parallelism, mark, form in stops
        ):
            program.finish(program.start(at_last, RECORDS))
        assert program.written() == sorted(case.wanted())


WINDOWS, COUNTS = CASES[1], CASES[0]


@settings(max_examples=5, deadline=None)
@given(options, parallelisms, marks, parallelisms)
def test_a_job_that_is_drained_fires_its_windows_for_what_was_read_and_the_next_one_goes_on_behind(
    options: dict[str, str], parallelism: int, mark: int, at_last: int
) -> None:
    with TemporaryDirectory() as folder:
        program = Program(WINDOWS, Path(folder), options)
        if program.stop(program.start(parallelism, mark), drain=True):
            first = len(program.written())
            assert first > 0
            program.finish(program.start(at_last, RECORDS))
        totals: Counter[int] = Counter()
        for key, total in program.written():
            totals[key] += total
        assert totals == {key: sum(range(key, RECORDS, KEYS)) for key in range(KEYS)}


@pytest.fixture
def counting(tmp_path: Path) -> Program:
    return Program(COUNTS, tmp_path, {"execution.checkpointing.interval": "30 ms"})


class FragileFiles(FileSink):
    """Files whose first commit fails after so many were committed, and only once."""

    def __init__(self, folder: Path, after: int) -> None:
        super().__init__(folder / "out")
        self._after, self._failed = after, folder / "failed"

    def create_committer(self, context: OperatorContext) -> Committer:
        inner, after, failed = super().create_committer(context), self._after, self._failed

        class Fragile(Committer):
            def commit(self, committables: Sequence[Any]) -> None:
                assert inner is not None
                if failed.exists() or len(list(failed.parent.glob("out/part-*"))) < after:
                    inner.commit(committables)
                else:
                    failed.touch()
                    raise OSError("the disk is busy")

        return Fragile()


@pytest.mark.parametrize("drain", [False, True])
def test_a_job_whose_sink_fails_to_commit_for_the_savepoint_stops_all_the_same(
    drain: bool, tmp_path: Path
) -> None:
    def start(savepoint: str | None) -> JobClient:
        options = {
            "execution.checkpointing.interval": "1 h",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.delay": "10 ms",
        }
        if savepoint is not None:
            options["execution.state-recovery.path"] = savepoint
        env = StreamExecutionEnvironment.get_execution_environment(options)
        env.set_parallelism(2).set_max_parallelism(16)
        # the first one is not to come to its end
        rate = RATE // 20 if savepoint is None else RATE * 20
        numbers = env.generate(lambda index: index, count=RECORDS, rate=rate).uid("numbers")
        counts = numbers.key_by(lambda number: number % KEYS).reduce(lambda a, b: b).uid("last")
        counts.sink_to(FragileFiles(tmp_path, 1)).uid("out")
        return env.execute_async("fragile")

    client = start(None)
    eventually(lambda: len(list((tmp_path / "out").rglob(".*"))) >= 2)  # both subtasks write
    savepoint = client.stop_with_savepoint(drain, str(tmp_path / "savepoints")).result(60)
    assert client.get_job_status().result().name == "FINISHED"
    assert (tmp_path / "failed").exists()
    stopped_at = len(lines_of(tmp_path / "out"))
    assert 0 < stopped_at < RECORDS
    start(savepoint).get_job_execution_result().result()
    assert sorted(map(int, lines_of(tmp_path / "out"))) == list(range(RECORDS))


def lines_of(folder: Path) -> list[str]:
    return [line for path in folder.rglob("part-*") for line in path.read_text().splitlines()]


@pytest.mark.wide
def test_a_savepoint_does_not_disturb_its_job_and_another_one_starts_from_it(
    counting: Program,
) -> None:
    counting.rate = RATE // 10  # so that it runs on while two savepoints are taken
    client = counting.start(2, 100)
    savepoints = [
        client.trigger_savepoint(str(counting.folder / "mine")).result(60) for _ in range(2)
    ]
    counting.finish(client)
    assert counting.written() == sorted(COUNTS.wanted())
    assert len(set(savepoints)) == 2
    assert all(
        Path(each).parent == counting.folder / "mine" and Path(each, "_metadata").exists()
        for each in savepoints
    )
    shutil.rmtree(counting.folder / "out")
    counting.savepoint = savepoints[0]
    counting.finish(counting.start(1, RECORDS))
    counts = counting.written()
    assert {key: count for key, count in counts if (key, count + 1) not in counts} == Counter(
        index % KEYS for index in range(RECORDS)
    )
    assert len(set(counts)) == len(counts) < RECORDS


def test_a_savepoint_may_be_moved_and_has_all_it_needs(counting: Program) -> None:
    counting.options["execution.checkpointing.data-inline-threshold"] = "0"
    assert counting.stop(counting.start(2, 100))
    assert counting.savepoint is not None
    files = [path.name for path in Path(counting.savepoint).iterdir()]
    assert Path(counting.savepoint).name.startswith("savepoint-")
    elsewhere = counting.folder / "elsewhere"
    shutil.move(counting.savepoint, elsewhere)
    shutil.rmtree(counting.folder / "savepoints")
    counting.savepoint = str(elsewhere)
    counting.finish(counting.start(3, RECORDS))
    assert counting.written() == sorted(COUNTS.wanted())
    assert sorted(path.name for path in elsewhere.iterdir()) == sorted(files)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_canonical_savepoint_is_a_table_for_each_state(counting: Program, backend: str) -> None:
    counting.options |= {
        "state.backend.type": backend,
        "execution.checkpointing.incremental": "true",
    }
    assert counting.stop(counting.start(2, 100), form="CANONICAL")
    tables = [
        pq.read_table(path)
        for path in Path(str(counting.savepoint)).glob("*.parquet")
        if "reduce" in path.name.lower()
    ]
    assert sorted(key for table in tables for key in table.column("key").to_pylist()) == list(
        range(KEYS)
    )
    counting.finish(counting.start(3, RECORDS))
    assert counting.written() == sorted(COUNTS.wanted())


# -- what cannot be --------------------------------------------------------------------------------


def running(options: dict[str, Any] | None = None) -> JobClient:
    env = StreamExecutionEnvironment.get_execution_environment(options or {})
    env.from_sequence(1, 10**12).filter(lambda number: False).print()
    client = env.execute_async("endless")
    eventually(lambda: client.get_job_status().result().name == "RUNNING")
    return client


def test_a_savepoint_needs_a_folder() -> None:
    client = running()
    with pytest.raises(
        ConfigurationError,
        match=r"name the folder for the savepoint, or set execution\.checkpointing\.savepoint-dir",
    ):
        client.trigger_savepoint().result(60)
    client.cancel()


def test_a_folder_that_cannot_be_written_is_named_and_the_job_goes_on(tmp_path: Path) -> None:
    Path(tmp_path, "file").touch()
    client = running()
    folder, stop = tmp_path / "file", client.stop_with_savepoint
    for future in (client.trigger_savepoint(folder), stop(False, str(folder)), stop(True, folder)):
        with pytest.raises(
            SavepointError, match=f"the savepoint cannot be written to {folder}/savepoint-"
        ):
            future.result(60)
    assert client.get_job_status().result().name == "RUNNING"
    client.cancel()


@pytest.mark.parametrize("folder", ["", 5])
def test_what_is_no_folder_is_refused(folder: Any) -> None:
    client = running()
    with pytest.raises(
        ConfigurationError, match=f"a savepoint's folder is a path or a URL, this is {folder!r}"
    ):
        client.trigger_savepoint(folder).result(60)
    client.cancel()


def test_a_job_in_batch_takes_no_savepoint(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment({"execution.runtime-mode": "BATCH"})
    env.generate(lambda index: index, count=10**6, rate=100).print()
    client = env.execute_async("batch")
    with pytest.raises(
        SavepointError,
        match="job 'batch' takes no savepoints: it runs in BATCH, where nothing is saved",
    ):
        client.trigger_savepoint(str(tmp_path)).result(60)
    client.cancel()


def test_a_job_with_a_loop_takes_no_savepoint(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    loop = env.generate(lambda index: index, count=10**6, rate=100).iterate()
    loop.close_with(loop.filter(lambda number: False))
    loop.print()
    client = env.execute_async("loop")
    with pytest.raises(
        SavepointError, match="records on their way back in the loop begun by iterate"
    ):
        client.trigger_savepoint(str(tmp_path)).result(60)
    client.cancel()


def test_a_job_that_has_ended_or_is_not_known_takes_no_savepoint(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).print()
    client = env.execute_async("short")
    client.get_job_execution_result().result()
    with pytest.raises(SavepointError, match="job 'short' has ended: it is FINISHED"):
        client.stop_with_savepoint(False, str(tmp_path)).result(60)
    job = client._job
    job.job_id = "0" * 32  # type: ignore[misc]
    with pytest.raises(FlinkpyError, match=f"there is no job {'0' * 32} here"):
        client.trigger_savepoint(str(tmp_path)).result(60)


def test_a_form_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    client = running()
    with pytest.raises(ConfigurationError, match="of type canonical or native, not pickled"):
        client.trigger_savepoint(str(tmp_path), "pickled").result(60)
    client.cancel()


def test_the_savepoint_of_another_program_is_refused(counting: Program, tmp_path: Path) -> None:
    assert counting.stop(counting.start(2, 100))
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.state-recovery.path": counting.savepoint}
    )
    env.from_sequence(1, 3).uid("other").print()
    with pytest.raises(FlinkpyError, match="has state of operators that the job does not have"):
        env.execute("another")


def test_a_folder_that_is_no_savepoint_is_refused(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path, "is no checkpoint: it has no _metadata"),
        (tmp_path / "x", "there is no checkpoint"),
    ):
        env = StreamExecutionEnvironment.get_execution_environment(
            {"execution.state-recovery.path": str(path)}
        )
        env.from_sequence(1, 3).print()
        with pytest.raises(FlinkpyError, match=reason):
            env.execute("lost")


def test_one_subtask_goes_on_in_all_splits_that_several_had(tmp_path: Path) -> None:
    """An endless generator, whose splits are strides: none waits for another to end."""

    def numbers(parallelism: int, **options: Any) -> DataStream:
        env = StreamExecutionEnvironment.get_execution_environment(options).set_parallelism(
            parallelism
        )
        return env.generate(lambda index: index, rate=2000).uid("numbers")

    stream = numbers(3)
    stream.sink_to(FileSink(tmp_path / "out")).uid("out")
    savepoint = (
        stream.get_execution_environment()
        .execute_async()
        .stop_with_savepoint(False, str(tmp_path / "savepoints"))
        .result(60)
    )
    start = {
        "execution.state-recovery.path": savepoint,
        "execution.state-recovery.ignore-unclaimed-state": True,
    }
    assert {number % 3 for number in numbers(1, **start).take(300)} == {0, 1, 2}
