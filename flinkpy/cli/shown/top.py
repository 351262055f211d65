"""``flinkpy top``: what the jobs of a session are busy with, the busiest vertex first, anew every
second or two."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import click

from flinkpy.actors.gateways import ClusterOverview, VertexDetails
from flinkpy.actors.killed_for_memory import NEARLY_FULL
from flinkpy.cli.running_session import reach_session
from flinkpy.cli.tell import tell
from flinkpy.cluster.client import ClusterClient
from flinkpy.cluster.display.job_picture import JobPicture, JobPictures
from flinkpy.cluster.display.operator_lines import operator_lines
from flinkpy.cluster.display.terminal_size import terminal_size
from flinkpy.cluster.display.vertex_rates import human
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.ids import JobId, ResourceId
from flinkpy.core.lifecycles import JOB, ExecutionState
from flinkpy.runtime.memory.memory_report import MemoryReport

HEADING = ("BUSY", "BACK-PRESSURED", "IDLE", "IN/s", "OUT/s", "TASKS", "JOB", "VERTEX")


def show_top(
    target: str | None,
    definitions: Sequence[str],
    conf: Path | None,
    interval_s: float,
    count: int | None,
) -> None:
    """Draws ``count`` pictures, or until Ctrl-C; on a terminal each in the place of the last one,
    else one below the other."""
    session, is_terminal = reach_session(target, definitions, conf), sys.stdout.isatty()
    for number, lines in enumerate(pictures(session)):
        if is_terminal:
            size = terminal_size()
            click.clear()
            lines = [line[: size.columns] for line in lines[: size.lines - 1]]
        tell("\n".join(lines))
        if number + 1 == count:
            return
        threading.Event().wait(interval_s)


def pictures(session: ClusterClient) -> Iterator[list[str]]:
    """A picture whenever one is wanted, with the rates since the last one; in the first those since
    the jobs' start."""
    known: dict[JobId, JobPictures] = {}
    while True:
        running = [job.job_id for job in session.list_jobs() if not JOB.is_terminal(job.state)]
        details = [session.job(job_id).details() for job_id in running]
        known = {job_id: known.get(job_id) or JobPictures() for job_id in running}
        now_ms = SYSTEM_CLOCK.time_ms()
        yield picture(
            session.overview(),
            [known[job.overview.job_id].picture(job, now_ms) for job in details],
            now_ms,
        )


def picture(cluster: ClusterOverview, jobs: Sequence[JobPicture], now_ms: int) -> list[str]:
    """A line for the cluster, one for each TaskExecutor whose memory fills up, and a table of all
    vertices, the busiest first. The shares of time are each those of the subtask with the most.
    Below a vertex stand its operators that have state, or rows that change."""
    at = datetime.fromtimestamp(now_ms / 1000).strftime("%H:%M:%S")
    head = (
        f"{at}  {cluster.task_executors} TaskExecutors, {cluster.slots_free} of "
        f"{cluster.slots_total} slots free, "
        f"{len(jobs)} running job{'' if len(jobs) == 1 else 's'}"
    )
    if not jobs:
        return [head]
    told = {name: memory for job in jobs for name, memory in job.details.fullest}
    vertices = [(vertex, job) for job in jobs for vertex in job.details.vertices]
    vertices.sort(
        key=lambda each: (-each[0].busy_ms_per_second, -each[0].back_pressured_ms_per_second)
    )
    rows = [HEADING, *(_row(vertex, job) for vertex, job in vertices)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADING))]
    lines = [
        "  ".join(
            [
                *(text.rjust(width) for text, width in zip(row[:5], widths)),
                *(text.ljust(width) for text, width in zip(row[5:7], widths[5:])),
                row[7],
            ]
        )
        for row in rows
    ]
    indent = " " * (sum(widths[:5]) + 2 * 5)
    shown = [head, *_memory(told), "", lines[0]]
    for line, (vertex, _) in zip(lines[1:], vertices):
        shown += [line, *(indent + each for each in operator_lines(vertex))]
    return shown


def _memory(told: Mapping[ResourceId, MemoryReport]) -> Iterator[str]:
    """The fullest TaskExecutor, and all that are nearly full."""
    fullest = sorted(told.items(), key=lambda each: (-each[1].share, -each[1].used))
    for number, (name, memory) in enumerate(fullest):
        if number == 0 or memory.share >= NEARLY_FULL:
            rest = "; its sources rest" if memory.sources_rest else ""
            yield f"memory of {name}: {memory.summary()}{rest}"


def _row(vertex: VertexDetails, job: JobPicture) -> tuple[str, ...]:
    overview, (rate_in, rate_out) = job.details.overview, job.rates[vertex.vertex_id]
    shares = (
        vertex.busy_ms_per_second,
        vertex.back_pressured_ms_per_second,
        vertex.idle_ms_per_second,
    )
    tasks = f"{vertex.states.get(ExecutionState.RUNNING, 0)}/{vertex.parallelism}"
    return (
        *(f"{share // 10} %" for share in shares),
        human(rate_in),
        human(rate_out),
        tasks,
        f"{overview.name} {overview.job_id[:8]}",
        vertex.name,
    )
