"""Functions that wait: four subtasks against one, a job beside one whose function waits, and a
savepoint of eight subtasks against one's.

All embedded, so that all subtasks share a process. Figures are seconds; the notes say what is
wanted of the ratio."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

from benchmarks.harness import Comparison, compare, quick
from flinkpy.common.job_client import JobClient
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.functions import KeyedProcessFunction, RuntimeContext
from flinkpy.datastream.state import ValueStateDescriptor
from flinkpy.state.checkpoints.file_store import NewFile
from flinkpy.state.checkpoints.local_file_store import LocalFileStore

SLEEP_S, SLEEPS = 0.02, 100
LONG_SLEEP_S = 2.0
FILE_S = 0.4  # until a file of an object store has appeared
JOB_RECORDS = 1_500_000


def environment(parallelism: int) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded", "client.progress": False}
    )
    env.set_parallelism(parallelism)
    return env


def sleeps(value: int) -> int:
    time.sleep(SLEEP_S)
    return value


def computes(value: int) -> int:
    return value + sum(range(400_000)) * 0


def of_subtasks(function: Callable[[int], int], parallelism: int) -> Callable[[], float]:
    """Seconds of a job that calls the function so many times, with that parallelism."""

    def run() -> float:
        began = time.perf_counter()
        stream = (
            environment(parallelism).from_collection(list(range(SLEEPS))).rebalance().map(function)
        )
        with stream.execute_and_collect() as results:
            if sorted(results) != list(range(SLEEPS)):
                raise AssertionError("records are missing")
        return time.perf_counter() - began

    return run


def sleeps_long(value: int) -> int:
    time.sleep(LONG_SLEEP_S)
    return value


def counted(records: int) -> float:
    """Seconds of a job that computes."""
    env = environment(1)
    stream = (
        env.from_sequence(1, records)
        .map(lambda value: (value % 100, hash(str(value))))
        .key_by(lambda pair: pair[0])
    )
    stream.reduce(lambda one, other: (one[0], one[1] ^ other[1])).filter(lambda pair: False).print()
    began = time.perf_counter()
    env.execute("computes")
    return time.perf_counter() - began


@contextmanager
def running(env: StreamExecutionEnvironment) -> Iterator[JobClient]:
    client = env.execute_async("waits")
    try:
        yield client
    finally:
        client.cancel().result()


def beside_a_sleeper(records: int) -> float:
    env = environment(1)
    env.from_sequence(1, 1_000_000).map(sleeps_long).filter(lambda value: False).print()
    with running(env):
        time.sleep(0.5)
        return counted(records)


class Remembers(KeyedProcessFunction):
    """Keeps the last value of each key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._last = runtime_context.get_state(ValueStateDescriptor("last"))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        self._last.update("x" * 100_000 + str(value))


@contextmanager
def slow_files() -> Iterator[None]:
    """Each file of checkpoints takes a while to appear, as in an object store."""
    create = LocalFileStore.create

    def slowly(store: LocalFileStore, location: str) -> NewFile:
        time.sleep(FILE_S)
        return create(store, location)

    with mock.patch.object(LocalFileStore, "create", slowly):
        yield


def savepoint(parallelism: int) -> Callable[[], float]:
    """Seconds of a savepoint of a job with keyed state in each subtask."""

    def run() -> float:
        env = environment(parallelism)
        env.from_sequence(1, 10_000_000_000).filter(lambda value: value % 1000 == 0).key_by(
            lambda value: value % 64
        ).process(Remembers()).print()
        with tempfile.TemporaryDirectory() as folder, running(env) as client:
            time.sleep(1.0)
            with slow_files():
                began = time.perf_counter()
                client.trigger_savepoint(folder).result()
                return time.perf_counter() - began

    return run


def main() -> list[Comparison]:
    rounds, records = (1, 100_000) if quick() else (3, JOB_RECORDS)
    return [
        compare(
            "4 subtasks that sleep, against 1",
            of_subtasks(sleeps, 1),
            of_subtasks(sleeps, 4),
            unit="s",
            target=3.5,
            rounds=rounds,
            note="1 subtask's time over that of 4",
        ),
        compare(
            "4 subtasks that compute, against 1",
            of_subtasks(computes, 1),
            of_subtasks(computes, 4),
            unit="s",
            rounds=rounds,
            note="1 is all that the interpreter lock allows",
        ),
        compare(
            "a job beside one that sleeps 2 s",
            lambda: beside_a_sleeper(records),
            lambda: counted(records),
            unit="s",
            rounds=rounds,
            note="over its time alone; target ≤ 1.33",
        ),
        compare(
            "a savepoint of 8 subtasks, against 1",
            savepoint(8),
            savepoint(1),
            unit="s",
            rounds=rounds,
            note="a file takes 0.4 s; target ≤ 1.5",
        ),
    ]


if __name__ == "__main__":
    main()
