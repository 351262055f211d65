"""What the JobMaster and a task send each other while the task runs: the events of source
coordinators and their readers, and the messages of checkpoints.

Both travel in one channel, each message once and all in one order
(``flinkpy.actors.rpc.delivery.courier``). So a task has the splits that were assigned to it before
a checkpoint, and none that were assigned behind, when it is told to begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from flinkpy.core.ids import OperatorId
from flinkpy.graph.checkpoint_messages import CheckpointFromTask, CheckpointToTask


@dataclass(frozen=True)
class OperatorEvent:
    """Between an operator and its coordinator in the JobMaster, who alone know what it says."""

    operator_id: OperatorId
    event: Any


MessageToTask: TypeAlias = OperatorEvent | CheckpointToTask
MessageFromTask: TypeAlias = OperatorEvent | CheckpointFromTask
