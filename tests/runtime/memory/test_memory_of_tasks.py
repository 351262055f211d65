"""Operators reserve managed memory of their slot, and a task that ends has given it back."""

from __future__ import annotations

import logging

import pytest

from flinkpy.core.elements import Batch
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.runtime.memory.memory_manager import MemoryManager
from flinkpy.runtime.memory.task_memory import SlotMemory
from flinkpy.runtime.task import TaskPlace
from tests.memory_leaks import LEAKS
from tests.runtime.harness import JournalOperator, JournalSource, LoopHarness, attempt, descriptor

MB = 1 << 20


class Reserving(JournalOperator):
    """Reserves 3 MB for each batch; gives back all but ``leaves`` as it closes."""

    def __init__(self, name: str, *, leaves: int = 0, fail_on: int | None = None) -> None:
        super().__init__(name, fail_on=fail_on)
        self.memory_weights = {MemoryKind.OPERATOR: 1}
        self.leaves = leaves
        self.reserved = 0

    def process_batch(self, batch: Batch) -> None:
        if self.context.memory.reserve(3 * MB):
            self.reserved += 3 * MB
        super().process_batch(batch)

    def close(self) -> None:
        self.context.memory.release(max(0, self.reserved - self.leaves))
        super().close()


def run(*operators: Reserving, size: int = 10 * MB) -> tuple[LoopHarness, MemoryManager]:
    harness, manager = LoopHarness(), MemoryManager(size)
    source = JournalSource("in", [[n] for n in range(4)])
    harness.submit(descriptor("p", source, *operators), TaskPlace(memory=SlotMemory(manager)))
    harness.run_until(lambda: bool(harness.ended))
    harness.close()
    return harness, manager


@pytest.mark.parametrize("fail_on", [None, 2])
def test_a_task_gives_back_what_its_operators_reserve(fail_on: int | None) -> None:
    harness, manager = run(Reserving("sort", fail_on=fail_on))
    assert harness.reporter.of(attempt("p"))[-1] == ("FINISHED" if fail_on is None else "FAILED")
    assert manager.statistics().reserved == 0


def test_who_gives_nothing_back_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        harness, manager = run(Reserving("sort"), Reserving("hash", leaves=2 * MB))
    assert harness.reporter.of(attempt("p"))[-1] == "FINISHED"
    assert manager.statistics().reserved == 0
    assert [str(leak) for leak in LEAKS] == [
        f"hash ended with {2 * MB} bytes of OPERATOR memory reserved"
    ]
    assert "p (1/1)#0: hash ended with" in caplog.text
    LEAKS.clear()


def test_a_task_whose_operators_cannot_work_with_their_share_fails_as_it_is_deployed() -> None:
    harness, _ = run(Reserving("sort"), Reserving("hash"), size=MB)
    assert harness.reporter.of(attempt("p"))[-1] == "FAILED"
    error = str(harness.reporter.error_of(attempt("p")))
    assert "hash has 512 KB of managed memory" in error
    assert "taskmanager.memory.managed.size" in error
