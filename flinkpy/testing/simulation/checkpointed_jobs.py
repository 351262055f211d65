"""Makes a random job one that takes checkpoints: its tasks pass records on, from sources that read splits to sinks that
commit."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace
from typing import Any

from flinkpy.graph.job_graph import JobVertex
from flinkpy.testing.simulation.cluster_files import DIRECTORY
from flinkpy.testing.simulation.simulated_jobs import SimulatedJob, SimulatedSource, StreamBehaviour, TaskBehaviour

# Where nothing is said, a job with checkpoints restarts without end: also one whose slots can never come.
ENDS_SOME_DAY = {
    "restart-strategy.exponential-delay.max-backoff": "5 s",
    "restart-strategy.exponential-delay.attempts-before-reset-backoff": 12,
}


def with_checkpoints(job: SimulatedJob, chance: random.Random) -> SimulatedJob:
    """The same graph. A job with blocking results takes no checkpoints, and stays as it is."""
    if any(data_set.partition_type.is_blocking for vertex in job.graph.vertices for data_set in vertex.outputs):
        return job
    job.graph.configuration.update(_configuration(chance))
    read_s, declines = chance.choice((0.1, 0.5, 2.0)), chance.choice((0.0, 0.0, 0.02, 0.1))
    failures = chance.choice((0, 0, 1, 3)) if job.graph.configuration.get("restart-strategy.type") != "none" else 0
    for vertex in job.graph.vertices:
        _make_stream(vertex, StreamBehaviour(vertex.operators[0].operator_id, read_s, declines), failures, chance)
    return job


def _make_stream(vertex: JobVertex, stream: StreamBehaviour, failures: int, chance: random.Random) -> None:
    behaviour: TaskBehaviour = pickle.loads(vertex.chain)
    if not vertex.inputs and chance.random() < 0.9:
        vertex.sources = ((stream.operator_id, pickle.dumps(SimulatedSource(chance.randint(1, 12)))),)
    if chance.random() < 0.3:
        behaviour = replace(behaviour, failing=chance.randrange(vertex.parallelism), failures=failures)
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
    return {**ENDS_SOME_DAY, **{f"execution.checkpointing.{key}": value for key, value in settings.items()}}
