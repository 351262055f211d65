"""Embedded jobs whose tasks move between threads all the time, while they take checkpoints, fail,
restart, are cancelled and end: the results are those of a plain loop."""

from __future__ import annotations

import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.functions import KeyedProcessFunction, MapFunction, RuntimeContext
from flinkpy.datastream.state import ValueStateDescriptor
from flinkpy.runtime import task
from flinkpy.runtime.loop import step_pace, task_home
from tests.waiting import PATIENCE_S, eventually

RECORDS, KEYS = 1500, 7
FAILED = threading.Event()


@pytest.fixture(autouse=True)
def restless(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two calm steps move a task in, and a millisecond moves it out; threads change in the middle
    of everything."""
    monkeypatch.setattr(step_pace, "CALM_STEPS", 2)
    monkeypatch.setattr(step_pace, "NOTABLE_S", 0.001)
    monkeypatch.setattr(step_pace, "LONG_S", 0.002)
    monkeypatch.setattr(task_home, "TURN_S", 0.0001)
    monkeypatch.setattr(task, "NOTABLE_S", 0.001)
    FAILED.clear()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)
    stop_embedded()


class Naps(MapFunction):
    """Is opened, so it keeps its thread; naps now and then, and fails once at a record if it is
    to."""

    def __init__(self, seed: int, fails_at: int | None) -> None:
        self._seed, self._fails_at = seed, fails_at

    def open(self, runtime_context: RuntimeContext) -> None:
        self._chance = random.Random(self._seed + runtime_context.get_index_of_this_subtask())
        self._thread = threading.get_ident()

    def map(self, value: int) -> int:
        assert threading.get_ident() == self._thread
        if value == self._fails_at and not FAILED.is_set():
            FAILED.set()
            raise ValueError("once")
        if self._chance.random() < 0.01:
            threading.Event().wait(0.003)
        return value


class Sums(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._state = runtime_context.get_state(ValueStateDescriptor("sum"))

    def process_element(
        self, value: int, ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[int, int, int]]:
        count, total = self._state.value() or (0, 0)
        self._state.update((count + 1, total + value))
        yield value % KEYS, count + 1, total + value


def naps_now_and_then(value: int) -> int:
    if value % 97 == 0:
        threading.Event().wait(0.003)
    return value


def naps_always(value: int) -> int:
    threading.Event().wait(0.004)
    return value


def options(seed: int, folder: Path, **more: Any) -> dict[str, Any]:
    chance = random.Random(seed)
    return {
        "execution.target": "embedded",
        "client.progress": False,
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(folder),
        "execution.checkpointing.unaligned.enabled": chance.random() < 0.5,
        "execution.checkpointing.aligned-checkpoint-timeout": chance.choice(["0 ms", "5 ms"]),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 3,
        "restart-strategy.fixed-delay.delay": "0 ms",
        "taskmanager.numberOfTaskSlots": chance.choice([1, 4]),
        "taskmanager.network.batch.max-records": chance.choice([3, 50, 4096]),
        **more,
    }


def program(
    seed: int,
    folder: Path,
    more: dict[str, Any] | None = None,
    *,
    fails_at: int | None = None,
    nap: Callable[[int], int] = naps_now_and_then,
) -> Any:
    chance = random.Random(seed)
    env = StreamExecutionEnvironment.get_execution_environment(
        options(seed, folder, **(more or {}))
    )
    env.set_parallelism(chance.choice([1, 2, 3]))
    naps = Naps(seed, fails_at)
    numbers = (
        env.from_collection(list(range(RECORDS)))
        .map(nap)
        .rebalance()
        .map(naps)
        .set_parallelism(chance.choice([1, 3]))
    )
    return (
        numbers.rescale().map(naps_now_and_then).key_by(lambda value: value % KEYS).process(Sums())
    )


def check(results: list[tuple[int, int, int]]) -> None:
    """Each key has counted each of its records once, and has summed them all up."""
    wanted = Counter(value % KEYS for value in range(RECORDS))
    assert Counter(key for key, _, _ in results) == wanted
    for key, count in wanted.items():
        assert [each for found, each, _ in results if found == key] == list(range(1, count + 1))
        assert max(total for found, _, total in results if found == key) == sum(
            range(key, RECORDS, KEYS)
        )


@pytest.mark.parametrize("seed", range(4))
def test_a_job_whose_tasks_move_gives_what_a_loop_gives(seed: int, tmp_path: Path) -> None:
    with program(seed, tmp_path).execute_and_collect() as results:
        check(list(results))


@pytest.mark.parametrize("seed", range(10, 14))
def test_so_it_does_when_it_fails_and_restarts_from_a_checkpoint(seed: int, tmp_path: Path) -> None:
    with program(
        seed, tmp_path, fails_at=random.Random(seed).randrange(RECORDS)
    ).execute_and_collect() as results:
        check(list(results))
    assert FAILED.is_set()


@pytest.mark.parametrize("seed", range(20, 23))
def test_and_when_it_is_cancelled_it_ends(seed: int, tmp_path: Path) -> None:
    with program(seed, tmp_path).execute_and_collect() as results:
        for _, _ in zip(results, range(random.Random(seed).randrange(200))):
            pass
    eventually(lambda: not [each for each in threading.enumerate() if "Sums" in each.name])


@pytest.mark.parametrize("seed", range(30, 32))
def test_in_batch_too(seed: int, tmp_path: Path) -> None:
    with program(
        seed, tmp_path, {"execution.runtime-mode": "BATCH"}
    ).execute_and_collect() as results:
        check(list(results))


@pytest.mark.parametrize("seed", range(40, 43))
def test_a_job_that_stops_with_a_savepoint_goes_on_from_there(seed: int, tmp_path: Path) -> None:
    # Small batches, so that the source has not ended when the savepoint is asked for
    stream = program(
        seed,
        tmp_path / "checkpoints",
        {"taskmanager.network.batch.max-records": 3},
        nap=naps_always,
    )
    stream.filter(lambda result: False).print()
    client = stream.get_execution_environment().execute_async("moves")
    threading.Event().wait(random.Random(seed).random() * 0.1)
    savepoint = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(PATIENCE_S)
    rest = program(
        seed,
        tmp_path / "others",
        {"execution.savepoint.path": savepoint, "execution.savepoint.ignore-unclaimed-state": True},
    )
    with rest.execute_and_collect() as results:
        found = list(results)
    assert len(found) > 0
    for key in {key for key, _, _ in found}:
        last = max(each for each in found if each[0] == key)
        assert last[1:] == (len(range(key, RECORDS, KEYS)), sum(range(key, RECORDS, KEYS)))
