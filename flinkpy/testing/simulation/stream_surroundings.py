"""What simulated tasks that take part in checkpoints find around them: channels, files, time, and
the one who watches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flinkpy.actors.rpc.simulated.simulated_service import SimulatedRpcService
from flinkpy.graph.deployment import TaskDeploymentDescriptor
from flinkpy.runtime.task_messages import MessageFromTask
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage
from flinkpy.testing.simulation.checkpoint_oracle import CheckpointOracle
from flinkpy.testing.simulation.cluster_files import ClusterFiles
from flinkpy.testing.simulation.data_plane import DataPlane
from flinkpy.testing.simulation.simulated_jobs import TaskBehaviour
from flinkpy.testing.simulation.stream_tasks import StreamTaskModel

WRITING_S = 0.3  # how long a task takes at most to save its state


@dataclass(frozen=True)
class Streams:
    """What all of a cluster's tasks share."""

    plane: DataPlane
    files: ClusterFiles
    oracle: CheckpointOracle

    def model_of(
        self,
        descriptor: TaskDeploymentDescriptor,
        behaviour: TaskBehaviour,
        outside: TaskSurroundings,
    ) -> StreamTaskModel:
        """Reads the task's state. Raises what the store raises."""
        storage = CheckpointStorage.of(
            descriptor.configuration, descriptor.attempt_id.job_id, self.files.store_of
        )
        return StreamTaskModel(descriptor, behaviour, storage, outside)


class TaskSurroundings:
    """The surroundings of one task. Its timers end with it; its thread for files ends with the
    process."""

    def __init__(
        self,
        streams: Streams,
        service: SimulatedRpcService,
        is_running: Callable[[], bool],
        say: Callable[[MessageFromTask], None],
        finish: Callable[[], None],
    ) -> None:
        self.plane = streams.plane
        self.oracle = streams.oracle
        self.clock = service.clock
        self._service = service
        self._is_running = is_running
        self._say = say
        self._finish = finish

    def chance(self) -> float:
        return self._service.network.random.random()

    def later(self, delay_s: float, action: Callable[[], None]) -> None:
        self._service.schedule(delay_s, lambda: self._if_running(action))

    def _if_running(self, action: Callable[[], None]) -> None:
        if self._is_running():
            action()

    def run_io(self, action: Callable[[], None]) -> None:
        self._service.schedule(WRITING_S * self.chance(), action)

    def say(self, message: MessageFromTask) -> None:
        self._say(message)

    def finish(self) -> None:
        self._finish()
