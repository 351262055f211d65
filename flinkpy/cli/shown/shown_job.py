"""``flinkpy show JOB``: how a job stands, and how it came to that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo, SubtaskInfo, VertexInfo
from flinkpy.actors.gateways import JobMetrics
from flinkpy.cli.running_session import reach_session
from flinkpy.cli.shown.durations import duration
from flinkpy.cli.tell import tell
from flinkpy.core.ids import JobVertexId
from flinkpy.core.lifecycles import EXECUTION, CheckpointState, ExecutionState
from flinkpy.scheduler.checkpointing.checkpoint_statistics import CheckpointsReport

LONGEST = 200  # characters of an accumulator
SHOWN = 10  # attempts of one vertex, and failures


def show_job(
    target: str | None, definitions: Sequence[str], conf: Path | None, job_id: str
) -> None:
    """Prints the report on the job with that id, or the only one whose id begins with it."""
    session = reach_session(target, definitions, conf)
    found = session.find_job(job_id).job_id
    metrics = session.ask(lambda dispatcher: dispatcher.request_job_metrics(found))
    for line in job_report(
        session.ask(lambda dispatcher: dispatcher.request_execution_graph(found)), metrics
    ):
        tell(line)


def job_report(job: ExecutionGraphInfo, metrics: JobMetrics) -> Iterator[str]:
    """The lines of the report."""
    restarts = f", {job.restarts} restart{'s' if job.restarts > 1 else ''}" if job.restarts else ""
    yield (
        f"{job.job_id} {job.name!r}: {job.state.name} since "
        f"{_moment(job.entered_ms[job.state])}{restarts}"
    )
    yield (
        f"started {_moment(job.start_ms)}, {'ran' if job.end_ms else 'running'} for "
        f"{duration((job.end_ms or job.at_ms) - job.start_ms)}"
    )
    for vertex in job.vertices:
        yield from _vertex(vertex, job.at_ms)
        for name, _, text in metrics.of_vertices.get(JobVertexId(vertex.vertex_id), ()):
            yield f"  accumulator {name}: {text if len(text) <= LONGEST else f'{text[:LONGEST]}…'}"
    yield from _checkpoints(
        job.checkpoint_history,
        job.at_ms,
        {vertex.vertex_id: vertex.name for vertex in job.vertices},
    )
    if job.failures:
        yield "failures, the newest first:"
    for failure in list(reversed(job.failures))[:SHOWN]:
        where = (
            f" in {failure.subtask}"
            + ("" if failure.attempt is None else f", attempt {failure.attempt}")
            if failure.subtask
            else ""
        )
        on = f" on {failure.location.resource_id}" if failure.location is not None else ""
        ended = "" if failure.restarted else " (the job ended)"
        first, *rest = failure.message.splitlines() or [""]
        yield f"  {_moment(failure.at_ms)} {failure.error_class}{where}{on}{ended}: {first}"
        yield from (f"    {line}" for line in rest)
        for other in failure.concurrent:
            said = (other.message.splitlines() or [""])[0]
            yield (
                f"    in the same restart {other.error_class} in {other.subtask}, attempt "
                f"{other.attempt}: {said}"
            )


def _vertex(vertex: VertexInfo, at_ms: int) -> Iterator[str]:
    counts = {
        state: sum(each.state is state for each in vertex.subtasks) for state in ExecutionState
    }
    states = ", ".join(f"{count} {state.value.lower()}" for state, count in counts.items() if count)
    records = (
        f"{sum(each.records_in for each in vertex.subtasks):,} records in, "
        f"{sum(each.records_out for each in vertex.subtasks):,} out"
    )
    size = (
        f"{sum(each.bytes_in or 0 for each in vertex.subtasks):,} bytes in, "
        f"{sum(each.bytes_out or 0 for each in vertex.subtasks):,} out"
    )
    yield (
        f"{vertex.name}: {states}; {records}; {size}; busy for "
        f"{duration(sum(each.busy_ms for each in vertex.subtasks))}"
    )
    ended = [
        (subtask.index, each)
        for subtask in vertex.subtasks
        for each in (subtask, *subtask.earlier)
        if subtask.earlier or each.failure
    ]
    for index, attempt in ended[:SHOWN]:
        yield f"  subtask {index}, attempt {attempt.attempt}: {_attempt(attempt, at_ms)}"
    if len(ended) > SHOWN:
        yield f"  and {len(ended) - SHOWN} further attempts"


def _attempt(attempt: SubtaskInfo, at_ms: int) -> str:
    begin = attempt.entered_ms.get(ExecutionState.DEPLOYING)
    end = attempt.entered_ms[attempt.state] if EXECUTION.is_terminal(attempt.state) else at_ms
    where = "" if attempt.location is None else f" on {attempt.location.resource_id}"
    took = "" if begin is None else f" for {duration(end - begin)}, from {_moment(begin)}"
    why = f": {attempt.failure.splitlines()[0]}" if attempt.failure else ""
    return f"{attempt.state.name}{where}{took}{why}"


def _checkpoints(known: CheckpointsReport, at_ms: int, names: Mapping[str, str]) -> Iterator[str]:
    """The lines about a checkpoint that is under way: how long it has been, and which subtasks it
    waits for."""
    if known.completed or known.failed or known.in_progress:
        yield (
            f"checkpoints: {known.completed} complete, {known.failed} failed, "
            f"{known.in_progress} under way, {known.restored} times restored"
        )
    for each in known.history[:SHOWN]:
        kind = "savepoint" if each.options.snapshot_type.is_savepoint else "checkpoint"
        if each.state is CheckpointState.PENDING:
            took = (
                f"for {duration(max(0, at_ms - each.triggered_ms))}, {len(each.acknowledged)} "
                f"of {each.subtasks} subtasks acknowledged"
            )
        else:
            took = f"in {duration(each.duration_ms)}, {each.state_size:,} bytes"
        why = f": {each.failure}" if each.state is CheckpointState.ABORTED else ""
        yield f"  {kind} {each.checkpoint_id}: {each.state.name.lower()} {took}{why}"
        missing = (
            [(vertex, index) for vertex in each.vertices for index in vertex.missing]
            if each.state is CheckpointState.PENDING
            else []
        )
        for vertex, index in missing[:SHOWN]:
            yield f"    not yet: subtask {index} of {names.get(vertex.vertex_id, vertex.vertex_id)}"
        if len(missing) > SHOWN:
            yield f"    and {len(missing) - SHOWN} further subtasks"


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000).strftime("%Y-%m-%d %H:%M:%S")
