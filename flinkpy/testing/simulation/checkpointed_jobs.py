"""Makes a random job one that takes checkpoints: its tasks pass records on, from sources that read
splits to sinks that commit. And one of which a user asks for savepoints, who perhaps stops it with
one and has another job go on from there."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from flinkpy.actors.gateways import DispatcherGateway, SavepointRequest, SavepointStatus
from flinkpy.core.elements import SnapshotType
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.futures import Future
from flinkpy.core.ids import JobId
from flinkpy.core.options.checkpointing import RECOVERY_PATH
from flinkpy.graph.job_graph import JobVertex
from flinkpy.testing.simulation.cluster_files import DIRECTORY, SAVEPOINTS
from flinkpy.testing.simulation.simulated_jobs import (
    SavepointAt,
    SimulatedJob,
    SimulatedSource,
    StreamBehaviour,
    TaskBehaviour,
)

# Where nothing is said, a job with checkpoints restarts without end: also one whose slots can never
# come.
ENDS_SOME_DAY = {
    "restart-strategy.exponential-delay.max-backoff": "5 s",
    "restart-strategy.exponential-delay.attempts-before-reset-backoff": 12,
}


def with_checkpoints(job: SimulatedJob, chance: random.Random) -> SimulatedJob:
    """The same graph. A job with blocking results takes no checkpoints, and stays as it is."""
    if any(
        data_set.partition_type.is_blocking
        for vertex in job.graph.vertices
        for data_set in vertex.outputs
    ):
        return job
    job.graph.configuration.update(_configuration(chance))
    read_s, declines = chance.choice((0.1, 0.5, 2.0)), chance.choice((0.0, 0.0, 0.02, 0.1))
    failures = (
        chance.choice((0, 0, 1, 3))
        if job.graph.configuration.get("restart-strategy.type") != "none"
        else 0
    )
    for vertex in job.graph.vertices:
        _make_stream(
            vertex,
            StreamBehaviour(vertex.operators[0].operator_id, read_s, declines),
            failures,
            chance,
        )
    return job


def _make_stream(
    vertex: JobVertex, stream: StreamBehaviour, failures: int, chance: random.Random
) -> None:
    behaviour: TaskBehaviour = pickle.loads(vertex.chain)
    if not vertex.inputs and chance.random() < 0.9:
        vertex.sources = (
            (stream.operator_id, pickle.dumps(SimulatedSource(chance.randint(1, 12)))),
        )
    if chance.random() < 0.3:
        behaviour = replace(
            behaviour, failing=chance.randrange(vertex.parallelism), failures=failures
        )
    vertex.chain = replace(
        behaviour,
        reads_splits=vertex.sources[0][0] if vertex.sources else None,
        stream=replace(stream, fails_after_s=8 * chance.random()),
    ).dumps()


def _configuration(chance: random.Random) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "interval": f"{chance.choice((100, 300, 1000))} ms",
        "timeout": f"{chance.choice((4, 10, 600))} s",
        "min-pause": f"{chance.choice((0, 0, 200))} ms",
        "max-concurrent-checkpoints": chance.choice((1, 1, 3)),
        "tolerable-failed-checkpoints": chance.choice((0, 2, 1000)),
        "num-retained": chance.choice((1, 1, 3)),
        "externalized-checkpoint-retention": chance.choice(
            (
                "NO_EXTERNALIZED_CHECKPOINTS",
                "NO_EXTERNALIZED_CHECKPOINTS",
                "DELETE_ON_CANCELLATION",
                "RETAIN_ON_CANCELLATION",
            )
        ),
    }
    if chance.random() < 0.7:
        settings |= {"dir": DIRECTORY, "data-inline-threshold": chance.choice((0, 64, 20 << 10))}
    return {
        **ENDS_SOME_DAY,
        **{f"execution.checkpointing.{key}": value for key, value in settings.items()},
    }


# -- savepoints ------------------------------------------------------------------------------------

KINDS = (
    SnapshotType.SAVEPOINT,
    SnapshotType.SAVEPOINT,
    SnapshotType.CHECKPOINT,
    SnapshotType.SUSPEND,
    SnapshotType.TERMINATE,
)
Call = Callable[
    [
        Callable[[DispatcherGateway], Future[Any]],
        Callable[[Any], None],
        Callable[[FlinkpyError], None],
    ],
    None,
]


@dataclass
class SavepointUser:
    """Asks until the answer is there. ``call(ask, then, refused)`` repeats a call until it is
    answered, ``later`` is a timer; ``on_location`` and ``on_refusal`` are told how it went."""

    job: SimulatedJob
    asked: SavepointAt
    call: Call
    later: Callable[[float, Callable[[], None]], object]
    on_location: Callable[[SavepointAt, str], None]
    on_refusal: Callable[[SavepointAt, FlinkpyError], None]

    def start(self) -> None:
        self.later(self.asked.after_s, self._ask)

    def _ask(self) -> None:
        request = SavepointRequest(
            self.asked.trigger_id, self.asked.kind, SAVEPOINTS, self.asked.form
        )
        job_id = self.job.graph.job_id
        self.call(
            lambda dispatcher: dispatcher.request_savepoint(job_id, request, 1.0),
            self._told,
            self._refused,
        )

    def _told(self, status: SavepointStatus) -> None:
        if not status.is_over:
            self._ask()
        elif status.error is None:
            self.on_location(self.asked, status.location or "")
        else:
            assert isinstance(status.error, FlinkpyError)
            self._refused(status.error)

    def _refused(self, error: FlinkpyError) -> None:
        self.on_refusal(self.asked, error)


def with_savepoints(job: SimulatedJob, chance: random.Random) -> SimulatedJob:
    """The same job, of which savepoints are asked for, if it takes checkpoints."""
    if "execution.checkpointing.interval" not in job.graph.configuration:
        return job
    times = [
        chance.choice((0.5, 2.0, 8.0)) * chance.random()
        for _ in range(chance.choice((0, 1, 1, 2, 3)))
    ]
    savepoints = tuple(
        SavepointAt(after_s, chance.choice(KINDS), f"{chance.getrandbits(64):016x}")
        for after_s in sorted(times)
    )
    return replace(job, savepoints=savepoints)


def going_on(job: SimulatedJob, savepoint: str) -> SimulatedJob:
    """Another job that starts from the savepoint at once."""
    job_id = JobId(f"{int(job.graph.job_id, 16) ^ 1:032x}")
    configuration = {**job.graph.configuration, RECOVERY_PATH.key: savepoint}
    return replace(
        job,
        graph=replace(job.graph, job_id=job_id, configuration=configuration),
        submit_at_s=0.0,
        savepoints=(),
    )
