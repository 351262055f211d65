"""What a worker does about its memory, with tasks that run: sources rest, and the task that grew
most fails with a list of who has the memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import MemoryLimitExceededError
from flinkpy.core.ids import ResourceId
from flinkpy.metrics.definitions import STATE_BYTES
from flinkpy.operators.base import InputStatus
from flinkpy.runtime.loop.slot_loop import SlotLoop
from flinkpy.runtime.memory.memory_levels import MemoryAction, MemoryLevel, MemoryPressure
from flinkpy.runtime.memory.memory_report import MemoryReport
from flinkpy.runtime.memory.memory_watch import EACH_S, MemoryMeter, MemoryWatch
from flinkpy.runtime.memory.slots_memory import CONTAINER, ProcessLimit, SlotsMemory, WorkerSlots
from flinkpy.runtime.memory_relief import MemoryOwners, MemoryRelief, limit_exceeded
from flinkpy.runtime.task import Task, TaskPlace
from tests.runtime.harness import JournalOperator, JournalSource, LoopHarness, attempt, descriptor

MB = 1 << 20
LIMIT = 100 * MB


class Busy(JournalSource):
    """Always has more, and counts how often it is asked."""

    asked = 0

    def emit_next(self) -> InputStatus:
        self.asked += 1
        return InputStatus.MORE_AVAILABLE


class Keeps(JournalOperator):
    """Tells of so much state."""

    size = 0
    freed = 0

    def measures(self, now_ms: int) -> dict[str, float]:
        return {STATE_BYTES: self.size}

    def free_memory(self) -> None:
        self.freed += 1


class World:
    """Two tasks of a worker, each a source and an operator with state, and the worker's watch."""

    def __init__(self) -> None:
        self.harness = LoopHarness()
        self.slots = SlotsMemory(WorkerSlots(2, 40 * MB, limit=ProcessLimit(LIMIT)))
        self.tasks: list[Task] = []
        for vertex in ("small", "large"):
            one = descriptor(vertex, Busy("in", []), Keeps(f"keeps of {vertex}"))
            place = TaskPlace(memory=self.slots.of_slot(0, one.managed_memory))
            self.tasks.append(self.harness.submit(one, place))
        self.harness.run_until(
            lambda: all(
                "RUNNING" in self.harness.reporter.of(attempt(v)) for v in ("small", "large")
            )
        )
        self.owners = MemoryOwners(
            lambda: [each for each in self.tasks if each not in self.harness.ended],
            self.slots,
            lambda: 0,
            ManualClock(),
        )
        self.relief = MemoryRelief(ResourceId("worker-3"), self.owners)

    def keeps(self, at: int) -> Any:
        task = self.tasks[at].stream_task
        assert task is not None
        assert task.chain is not None
        return task.chain.operators[-1]

    def look(self, now_s: float, level: MemoryLevel, *sizes: int) -> None:
        for at, size in enumerate(sizes):
            self.keeps(at).size = size * MB
        for _ in range(2):  # asked, and the answers read
            self.relief.looked(now_s, level)
            self.turn()

    def turn(self) -> None:
        for _ in range(20):
            self.harness.loop.run_once(may_wait=False)

    def reads(self) -> int:
        """How often its first source is asked for records in twenty rounds."""
        task = self.tasks[0].stream_task
        assert task is not None
        assert task.chain is not None
        source = task.chain.head
        assert isinstance(source, Busy)
        before = source.asked
        self.turn()
        return source.asked - before


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    for task in made.tasks:
        task.cancel()
    made.harness.close()


def test_sources_rest_until_there_is_memory_again(world: World) -> None:
    told: list[bool] = []
    world.relief.on_change = lambda: told.append(world.slots.sources_rest.is_on)
    assert world.reads() > 10
    world.relief.relieve(MemoryAction.REST_SOURCES, 91 * MB)
    world.turn()
    assert world.reads() == 0
    report = world.owners.report(91 * MB)
    assert report.sources_rest
    assert report.summary().startswith("91% of 100 MB")
    world.relief.relieve(MemoryAction.WAKE_SOURCES, 84 * MB)
    world.turn()
    assert world.reads() > 10
    assert told == [True, False]


def test_the_task_that_grew_most_fails_and_says_who_has_the_memory(world: World) -> None:
    """Not the one that has most: it had that while there was room."""
    world.look(0.0, MemoryLevel.FREE, 5, 50)
    world.look(20.0, MemoryLevel.FREE, 5, 50)
    world.look(40.0, MemoryLevel.FAILING, 35, 55)
    world.look(50.0, MemoryLevel.FAILING)
    world.relief.relieve(MemoryAction.FAIL_LARGEST, 98 * MB)
    world.turn()
    assert world.harness.reporter.of(attempt("small"))[-1] == "FAILED"
    assert world.harness.reporter.of(attempt("large"))[-1] == "RUNNING"
    error = world.harness.reporter.error_of(attempt("small"))
    assert isinstance(error, MemoryLimitExceededError)
    told = str(error).splitlines()
    assert told[0].startswith(
        "worker-3 has 98% of the 100 MB that taskmanager.memory.process.size gives it, so "
        "small (1/1)#0, which grew by 30 MB, ends before"
    )
    owners = [line.strip() for line in told if "state in memory" in line]
    assert owners == [
        "keeps of large (1/1): state in memory, 55 MB (state.backend.type: rocksdb)",
        "keeps of small (1/1): state in memory, 35 MB (state.backend.type: rocksdb)",
    ]


def test_operators_free_memory_in_their_own_threads(world: World) -> None:
    world.relief.relieve(MemoryAction.SHRINK, 81 * MB)
    assert world.keeps(0).freed == 0
    world.turn()
    assert [world.keeps(at).freed for at in range(2)] == [1, 1]
    world.relief.relieve(MemoryAction.COLLECT_GARBAGE, 81 * MB)
    world.relief.relieve(MemoryAction.GROW, 71 * MB)
    world.turn()
    assert [world.keeps(at).freed for at in range(2)] == [2, 2]


def test_a_watch_looks_four_times_a_second_and_acts_in_its_thread() -> None:
    done: list[tuple[float, Any]] = []
    used = iter([50, 85, 91, 98, 98, 50])

    class Relief:
        def looked(self, now_s: float, level: MemoryLevel) -> None:
            done.append((now_s, level.name))

        def relieve(self, action: MemoryAction, used: int) -> None:
            done.append((used, action.name))
            if action is MemoryAction.FAIL_LARGEST:
                raise OSError("the next look comes all the same")

    clock = ManualClock()
    loop = SlotLoop("watch", clock)
    watch = MemoryWatch(loop, lambda: next(used), MemoryPressure(100, 60), Relief())
    watch.start()
    for _ in range(6):
        loop.run_once(may_wait=False)
        clock.advance(EACH_S)
    watch.stop()
    loop.run_once(may_wait=False)
    loop.stop()
    assert done == [
        (0.0, "FREE"),
        (85, "COLLECT_GARBAGE"),
        (0.25, "SHRINKING"),
        (91, "REST_SOURCES"),
        (0.5, "RESTING"),
        (98, "FAIL_LARGEST"),  # and raises
        (1.0, "FAILING"),
        (50, "GROW"),
        (50, "WAKE_SOURCES"),
        (1.25, "FREE"),
    ]


def test_a_meter_counts_objects_but_not_files_that_are_mapped_later(tmp_path: Any) -> None:
    import mmap

    meter = MemoryMeter()
    before = meter()
    held = b"x" * (40 * MB)
    grown = meter() - before
    assert 30 * MB < grown < 60 * MB
    path = tmp_path / "rows"
    path.write_bytes(held)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[at] for at in range(0, len(mapped), 4096)) > 0
        assert meter() - before < grown + 10 * MB


def test_the_lesser_of_what_options_and_the_container_allow_is_the_limit() -> None:
    assert ProcessLimit.least(None, None) is None
    assert ProcessLimit.least(5, None) == ProcessLimit(5)
    assert ProcessLimit.least(5, 9) == ProcessLimit(5)
    assert ProcessLimit.least(9, 5) == ProcessLimit(5, CONTAINER)
    assert ProcessLimit.least(None, 5) == ProcessLimit(5, CONTAINER)


def test_who_is_limited_by_its_container_says_so() -> None:
    report = MemoryReport(0, 98, 100, 0, 0, limited_by=CONTAINER)
    told = limit_exceeded("worker-3", "count (1/1)", 0, report)
    assert "98% of the 100 bytes that the container's memory limit gives it" in told
    assert "Raise the container's memory limit, use more" in told
