"""A worker that was killed for memory is told as such, with what it had last told of it."""

from __future__ import annotations

import pytest

from flinkpy.actors.killed_for_memory import why_lost
from flinkpy.runtime.memory.memory_report import MemoryReport, OwnedMemory

MB = 1 << 20
# as Ray tells
DIED = (
    "process taskexecutor-1 died: The actor died unexpectedly before finishing this task. The actor "
    "is dead because its worker process has died. Worker exit type: "
)
OF_THE_NODE = f"{DIED}NODE_OUT_OF_MEMORY Worker exit detail: Task was killed due to the node running low on memory."
WITHOUT_A_WORD = (
    f"{DIED}SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code "
    "2. End of file. Some common causes include: (1) the process was killed by the OOM killer due "
    "to high memory usage, (2) ray stop --force was called, or (3) the worker crashed unexpectedly"
)
SILENT = "it sent no heartbeat in time"
OWNER = OwnedMemory("count (1/2)", "state in memory", 300 * MB, "state.backend.type: rocksdb")


def report(used: int, limit: int | None = 600 * MB) -> MemoryReport:
    return MemoryReport(0, used * MB, limit, 0, 0, (OWNER,))


@pytest.mark.parametrize(
    ("reason", "memory", "parts"),
    [
        (OF_THE_NODE, None, ["the machine had no memory left", "killed for memory ("]),
        (OF_THE_NODE, report(100, None), ["It had 100 MB; taskmanager.memory.process.size would"]),
        (
            WITHOUT_A_WORD,
            report(570),
            [
                "killed for memory, as it seems. It had 95% of the 600 MB of taskmanager.memory",
                "\n  count (1/2): state in memory, 300 MB (state.backend.type: rocksdb)\n",
            ],
        ),
        (SILENT, report(590), ["killed for memory, as it seems", f"({SILENT})"]),
    ],
)
def test_a_kill_for_memory_is_told_with_the_last_figures(
    reason: str, memory: MemoryReport | None, parts: list[str]
) -> None:
    told = why_lost(reason, memory)
    assert all(part in told for part in parts), told
    assert reason in told


@pytest.mark.parametrize("memory", [None, report(470), report(10_000, None)])
def test_an_end_that_memory_does_not_explain_stays_as_it_was_told(
    memory: MemoryReport | None,
) -> None:
    for reason in (WITHOUT_A_WORD, SILENT, "it was started anew"):
        assert why_lost(reason, memory) == reason
