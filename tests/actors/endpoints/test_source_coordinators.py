"""What the JobMaster tells the coordinators of a job's sources about their readers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from flinkpy.actors.job_master.source_coordinators import SourceCoordinators
from flinkpy.connectors.memory.ranges import NumberSequenceSource
from flinkpy.connectors.source_api.source import ReaderRegistered
from flinkpy.connectors.source_api.watermark_alignment import WatermarkAllowed, WatermarkReported
from flinkpy.core.futures import Future
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.core.program.code import dumps
from flinkpy.runtime.task_messages import OperatorEvent

OPERATOR, VERTEX = OperatorId("operator"), JobVertexId("vertex")


def attempt(subtask: int, number: int = 0) -> ExecutionAttemptId:
    return ExecutionAttemptId(JobId("job"), VERTEX, subtask, number)


def coordinators(sent: list[tuple[int, Any]], failures: list[BaseException]) -> SourceCoordinators:
    """Of one source with two readers, which are there."""
    vertex = SimpleNamespace(
        id=VERTEX,
        sources=((OPERATOR, dumps(NumberSequenceSource(1, 2))),),
        out_of_band=(),
        operators=(),
        parallelism=2,
        name="numbers",
    )
    graph: Any = SimpleNamespace(vertices=[vertex])
    endpoint: Any = SimpleNamespace(
        run_in_background=lambda action: Future(), schedule_run_async=lambda delay_s, action: None
    )
    made = SourceCoordinators(
        graph,
        endpoint,
        lambda attempt_id, message: sent.append((attempt_id.subtask_index, message.event)),
        failures.append,
    )
    made.start()
    for subtask in range(2):
        made.attempts_deployed([attempt(subtask)])
        made.handle_event(attempt(subtask), OperatorEvent(OPERATOR, ReaderRegistered("host")))
    sent.clear()
    return made


@pytest.mark.parametrize(
    "ended", [attempt(0), attempt(0, 7)], ids=["the reader", "an attempt that is not spoken to"]
)
def test_a_reader_that_has_ended_holds_nobody_back_even_if_its_last_word_was_lost(
    ended: ExecutionAttemptId,
) -> None:
    sent: list[tuple[int, Any]] = []
    failures: list[BaseException] = []
    made = coordinators(sent, failures)
    made.handle_event(
        attempt(0), OperatorEvent(OPERATOR, WatermarkReported("group", 0, 100, False))
    )
    made.handle_event(
        attempt(1), OperatorEvent(OPERATOR, WatermarkReported("group", 500, 100, True))
    )
    assert sent == []
    made.attempt_ended(ended)
    assert sent == ([(1, WatermarkAllowed(600))] if ended == attempt(0) else [])
    made.attempt_ended(ended)
    assert failures == []
    made.close()
