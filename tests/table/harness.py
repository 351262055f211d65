"""Runs one operator alone: what goes in, what comes out."""

from __future__ import annotations

from typing import Any

from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import Batch, ControlElement
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.operators.base import OneInputOperator
from flinkpy.operators.context import OperatorContext, Output, TaskInfo
from tests.operators.harness import do_all


class Gathered(Output):
    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def emit(self, batch: Batch) -> None:
        assert len(batch) > 0
        self.batches.append(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        raise AssertionError("no side output expected")

    def emit_control(self, element: ControlElement) -> None:
        raise AssertionError("no control element expected")


def context_of(name: str = "test") -> OperatorContext:
    attempt = ExecutionAttemptId(JobId("job"), JobVertexId("vertex"), 0, 0)
    return OperatorContext(
        OperatorId("operator"),
        name,
        None,
        TaskInfo("job", name, attempt, 1, 128),
        ManualClock(),
        None,  # type: ignore[arg-type]
        lambda action: action(),
        lambda event: None,
    )


def run(operator: OneInputOperator, batches: list[Any]) -> list[Batch]:
    """The operator's output for these batches, over its whole life."""
    output = Gathered()
    operator.setup(context_of(), output)
    operator.initialize_state(None)
    operator.open()
    for batch in batches:
        do_all(operator.process_batch(batch))
    operator.finish()
    operator.close()
    return output.batches
