"""Runs the job on Ray, disturbed, and says what was wrong in the end: in the output, and in what
was left behind."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from benchmarks.kills.journal import Journal
from benchmarks.kills.kafka_topics import KafkaTopics
from benchmarks.kills.program import Input, build, differences, is_committing, unfinished, written
from benchmarks.kills.strikes import Processes
from flinkpy.common.job_client import JobClient
from flinkpy.core.errors import FlinkpyError
from flinkpy.datastream import StreamExecutionEnvironment

PARALLELISM, SPARES = 2, 1
ENDS_WITHIN_S, GONE_WITHIN_S = 120.0, 30.0


@dataclass(frozen=True)
class Disturbed:
    """A job that runs, and its processes. It writes into the folder."""

    folder: Path
    job: JobClient
    processes: Processes
    journal: Journal

    def has_ended(self) -> bool:
        return self.job.get_job_status().result().is_globally_terminal_state()

    def is_committing(self) -> bool:
        return is_committing(self.folder)

    def await_end(self) -> None:
        """Raises JobExecutionError if the job fails, RpcTimeoutError if it does not end."""
        self.job.get_job_execution_result().result(ENDS_WITHIN_S)


def options_of(cluster_id: str, folder: Path) -> dict[str, Any]:
    """The pause before a restart does not grow, as it would by default with failures that follow
    each other closely."""
    return {
        "execution.target": "ray-session",
        "cluster.id": cluster_id,
        "high-availability.type": "filesystem",
        "high-availability.storageDir": str(folder / "ha"),
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "50 ms",
        "restart-strategy.fixed-delay.attempts": 1_000_000,
        "slotmanager.number-of-slots.max": PARALLELISM + SPARES,
        "slotmanager.redundant-taskmanager-num": SPARES,
        "resourcemanager.taskmanager-timeout": "10 min",
        "io.tmp.dirs": str(folder / "tmp"),
        "client.progress": False,
    }


def undisturbed(
    records: Input, folder: Path, options: dict[str, Any], kafka: KafkaTopics | None = None
) -> None:
    """The same job in this process, to its end. Of the options it takes those of its state."""
    kept = {name: value for name, value in options.items() if name.startswith("state.")}
    env = StreamExecutionEnvironment.get_execution_environment(
        {**kept, "execution.target": "embedded"}
    )
    env.set_parallelism(PARALLELISM)
    build(env, records.undisturbed, folder, kafka)
    env.execute("undisturbed")


@contextmanager
def disturbed(
    records: Input, folder: Path, options: dict[str, Any], kafka: KafkaTopics | None = None
) -> Iterator[Disturbed]:
    """The job while it runs. At the end of the block it is cancelled if it runs still, and its
    session is stopped."""
    from flinkpy.cluster.ray.ray_sessions import stop_session

    (folder / "tmp").mkdir(parents=True)
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(PARALLELISM)
    build(env, records, folder, kafka)
    processes = Processes(options["cluster.id"])
    job = env.execute_async("disturbed")
    try:
        yield Disturbed(folder, job, processes, Journal(str(folder / "journal")))
    finally:
        try:
            processes.living()
            stop_session(options)
        except FlinkpyError as error:
            print(f"the session could not be stopped: {error}", file=sys.stderr)


def wrong_output(folder: Path, expected: Path) -> list[str]:
    """How the output differs from that of the undisturbed run."""
    return differences(written(folder), written(expected))


def left_behind(folder: Path, processes: Processes) -> list[str]:
    """What a job that has ended well, and its session, have left: files, processes, actors. Ray
    needs a moment to end them."""

    def look() -> list[str]:
        files = [
            str(path)
            for part in ("ha", "checkpoints", "tmp")
            for path in (folder / part).rglob("*")
        ]
        return [*unfinished(folder), *files, *processes.left(), *processes.living()]

    wait_until(lambda: not look(), GONE_WITHIN_S)
    return look()


def wait_until(condition: Callable[[], bool], within_s: float, look_s: float = 0.05) -> bool:
    """Whether it has come about."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        Event().wait(look_s)
    return True
