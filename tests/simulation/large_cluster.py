"""A large simulated cluster: TaskExecutors of ten slots, and a job that takes all of them and
checkpoints. What it costs: the processor's time, messages by kind, memory.

Tasks have no records. When the sources are told to begin a checkpoint, each task takes its part
within ``TAKES_S``, as if the barriers had come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from flinkpy.actors.rpc.delivery.envelope import Message, RpcInvocation
from flinkpy.actors.rpc.simulated.simulated_service import SimulatedRpcService
from flinkpy.core.ids import ExecutionAttemptId, JobId
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.core.options.engine import SlotConfig
from flinkpy.graph.checkpoint_messages import BeginCheckpoint, SnapshotTaken
from flinkpy.graph.checkpoints import SubtaskSnapshot
from flinkpy.graph.job_graph import DistributionPattern, JobGraph, JobVertex
from flinkpy.runtime.task_messages import MessageToTask
from flinkpy.scheduler.scheduler import Scheduler
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.testing.simulation import SimulatedCluster, TaskBehaviour
from flinkpy.testing.simulation.cluster_files import DIRECTORY
from flinkpy.testing.simulation.simulated_jobs import JobBuilder
from flinkpy.testing.simulation.simulated_task_runner import SimulatedTaskRunner
from flinkpy.testing.simulation.watched_runner import WatchedRunner

SLOTS = 10
TAKES_S = 0.05
INTERVAL_S = 10.0
JOB = JobId("wide")


class Barriers:
    """Passes barriers on from whoever begins to all tasks, once for each checkpoint."""

    def __init__(self) -> None:
        self.runners: list[AcknowledgingRunner] = []
        self.begun: dict[int, float] = {}  # when

    def begin(self, checkpoint_id: int, now: float) -> None:
        if checkpoint_id not in self.begun:
            self.begun[checkpoint_id] = now
            for runner in self.runners:
                runner.take_part(checkpoint_id)


class AcknowledgingRunner(SimulatedTaskRunner):
    """Its tasks acknowledge each checkpoint."""

    def __init__(self, service: SimulatedRpcService, barriers: Barriers) -> None:
        super().__init__(service)
        self._barriers = barriers
        barriers.runners.append(self)

    def deliver_message(self, attempt_id: ExecutionAttemptId, message: MessageToTask) -> None:
        if isinstance(message, BeginCheckpoint):
            self._barriers.begin(message.checkpoint_id, self._service.clock.monotonic())

    def take_part(self, checkpoint_id: int) -> None:
        for task in list(self._tasks.values()):
            taken = partial(self._take, task.attempt_id, checkpoint_id)
            self._service.schedule(TAKES_S * self._chance.random(), taken)

    def _take(self, attempt_id: ExecutionAttemptId, checkpoint_id: int) -> None:
        task = self._tasks.get(attempt_id)
        if task is not None and task.lifecycle.state is ExecutionState.RUNNING:
            task.reporter.send_message(attempt_id, SnapshotTaken(checkpoint_id, SubtaskSnapshot()))

    def process_gone(self) -> None:
        if self in self._barriers.runners:
            self._barriers.runners.remove(self)


class AcknowledgingMachines:
    def __init__(self, barriers: Barriers) -> None:
        self._barriers = barriers

    def runner_of(
        self, process: SimulatedRpcService, stores: Callable[[str], FileStore]
    ) -> WatchedRunner:
        return AcknowledgingRunner(process, self._barriers)


def wide_job(vertices: int, subtasks: int, regions: int) -> JobGraph:
    """Connected all to all within each of its regions, each vertex in a sharing group of its own,
    so that every subtask needs a slot."""
    builder = JobBuilder(
        JOB,
        configuration={
            "execution.checkpointing.interval": timedelta(seconds=INTERVAL_S),
            "execution.checkpointing.dir": DIRECTORY,
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.delay": "1 s",
        },
    )
    last: JobVertex | None = None
    for number in range(vertices):
        begins = last is None or number % (vertices // regions) == 0
        inputs = [] if begins or last is None else [(last, DistributionPattern.ALL_TO_ALL)]
        last = builder.vertex(
            subtasks // vertices, inputs, TaskBehaviour(run_s=None), group=f"group-{number}"
        )
    return builder.build()


@dataclass
class LargeCluster:
    """With a job under way. ``messages`` counts calls between processes, by method."""

    cluster: SimulatedCluster
    subtasks: int
    messages: Counter[str]
    barriers: Barriers

    @property
    def scheduler(self) -> Scheduler:
        return self.cluster.job_masters[JOB].scheduler

    def all_run(self) -> bool:
        return self.scheduler.graph.count(ExecutionState.RUNNING) == self.subtasks

    @property
    def checkpoint_id(self) -> int:
        """Of the last that is complete."""
        latest = self.scheduler.checkpoints.completed.latest
        return 0 if latest is None else latest.checkpoint_id

    def attempts(self) -> Counter[int]:
        """How many subtasks are in which attempt."""
        return Counter(
            vertex.execution.attempt_id.attempt for vertex in self.scheduler.graph.vertices
        )

    def next_checkpoint(self) -> float:
        """How long it takes from its first barrier until it is complete."""
        known = self.checkpoint_id
        self.run_until(lambda: self.checkpoint_id > known, 3 * INTERVAL_S)
        return self.cluster.network.now - self.barriers.begun[self.checkpoint_id]

    def run_until(self, condition: Callable[[], bool], seconds: float) -> None:
        assert self.cluster.network.run_until(condition, seconds)

    def run_for(self, seconds: float) -> Counter[str]:
        """The messages of that time."""
        before = Counter(self.messages)
        self.cluster.network.run_until(lambda: False, seconds)
        return self.messages - before


@contextmanager
def large_cluster(executors: int, vertices: int = 10, regions: int = 1) -> Iterator[LargeCluster]:
    """The job is submitted, and nothing has happened yet."""
    subtasks, barriers = executors * SLOTS, Barriers()
    cluster = SimulatedCluster(
        slot_config=SlotConfig(SLOTS, idle_timeout=timedelta(seconds=30)),
        max_slots=subtasks + 10 * SLOTS,
        machines=AcknowledgingMachines(barriers),
    )
    messages: Counter[str] = Counter()

    def count(source: str, target: str, message: Message) -> bool:
        if isinstance(message, RpcInvocation) and source != target:
            messages[message.method] += 1
        return False

    cluster.network.swallow = count
    client = cluster.result(cluster.client())
    cluster.result(client.submit_job(wide_job(vertices, subtasks, regions)))
    yield LargeCluster(cluster, subtasks, messages, barriers)
