"""Submits the recorded program as a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from flinkpy.common.execution_config import ExecutionConfig
from flinkpy.common.foreign_options import tell_without_effect
from flinkpy.common.job_client import JobClient, execution_result
from flinkpy.common.job_execution_result import JobExecutionResult
from flinkpy.common.time import to_milliseconds
from flinkpy.core.options import compatibility as kept_options
from flinkpy.core.options import engine as options
from flinkpy.core.options.checkpointing import (
    CHECKPOINT_DIRECTORY,
    CHECKPOINT_INTERVAL,
    CHECKPOINT_UNALIGNED,
    RECOVERY_PATH,
    SAVEPOINT_DIRECTORY,
)
from flinkpy.core.options.schema import read
from flinkpy.core.program.launch_context import ProgramAborted, note_used, plan_listener
from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.streams.recorded_program import RecordedProgram
from flinkpy.graph.operator_port import Operator, PhaseRule
from flinkpy.graph.transformations import IterationHeadTransformation, Transformation
from flinkpy.state.checkpoints.locations import absolute

if TYPE_CHECKING:
    from flinkpy.cluster.client import ClusterJob
    from flinkpy.datastream.env.program_phases import InFlight
    from flinkpy.graph.job_graph import JobGraph
    from flinkpy.graph.stream_graph import StreamGraph

DEFAULT_JOB_NAME = "flinkpy job"


def execute(program: RecordedProgram, job_name: str | None) -> JobExecutionResult:
    """Submits the program and waits for the job to end; if the program was started detached, until
    the job has initialised."""
    job = submit(program, job_name, waits=not read(program.values, options.ATTACHED))
    try:
        result = _result(program, job)
    except BaseException as error:
        program.listeners.executed(None, error)
        raise
    program.listeners.executed(result, None)
    return result


def _result(program: RecordedProgram, job: ClusterJob) -> JobExecutionResult:
    if not read(program.values, options.ATTACHED):
        return JobExecutionResult(job.job_id, job.name, -1, {})
    from flinkpy.cluster.display.diverted_notice import tell_diverted

    result = job.result()
    tell_diverted(job.name, result.accumulators)
    return execution_result(result, job.name)


def submit(program: RecordedProgram, job_name: str | None, *, waits: bool = False) -> ClusterJob:
    """Submits what was recorded since the last submission. With ``waits``, a job that fails before
    its first task is scheduled raises its JobExecutionError."""
    if job_name is not None and not isinstance(job_name, str):
        raise refuse(f"a job's name is text, this is {job_name!r:.80}")
    graph = stream_graph(program, job_name)
    if not read(program.values, kept_options.AUTO_GENERATED_UIDS):
        _refuse_without_uid(graph)
    listener = plan_listener()
    if listener is not None:
        listener(graph, dict(program.values))
        raise ProgramAborted("only the plan was wanted")
    from flinkpy.cluster.launch import submit as submit_job

    tell_without_effect(program.values)
    try:
        job = submit_job(_job_graph(program, graph), program.values)
        if waits:
            job.wait_until_initialised()
    except BaseException as error:
        program.listeners.submitted(None, error)
        raise
    program.listeners.submitted(JobClient(job), None)
    return job


def job_graph(
    program: RecordedProgram, job_name: str | None, in_flight: Callable[[], InFlight] | None = None
) -> JobGraph:
    """What ``submit`` would submit; the program is empty afterwards."""
    return _job_graph(program, stream_graph(program, job_name, in_flight))


def _job_graph(program: RecordedProgram, graph: StreamGraph) -> JobGraph:
    from flinkpy.core.ids import IdFactory
    from flinkpy.graph.job_graph_generator import build_job_graph

    values, no_savepoints = _with_checkpoints(program, graph), _why_no_savepoints(program, graph)
    # as in Flink, also when it cannot be submitted: in a notebook the next cell is another program
    program.transformations.clear()
    with located():
        job_graph = build_job_graph(graph, IdFactory().job_id(), values)
    job_graph.no_savepoints = no_savepoints
    return job_graph


def stream_graph(
    program: RecordedProgram, job_name: str | None, in_flight: Callable[[], InFlight] | None = None
) -> StreamGraph:
    """The graph of what was recorded since the last submission. ``in_flight`` gives what the
    checkpoint that it starts from has in flight; otherwise the checkpoint is looked at."""
    from flinkpy.datastream.env.program_phases import found_in_flight, kept_phases, split_operator
    from flinkpy.datastream.env.pushed_filters import push_filters
    from flinkpy.graph.stream_graph import build_stream_graph

    note_used()
    if not program.transformations:
        raise refuse(
            "no operators were defined since the last execute(): a program needs a source and "
            "something that reads it"
        )
    values = program.values

    def build(phases: PhaseRule) -> StreamGraph:
        return build_stream_graph(
            list(program.transformations),
            parallelism=ExecutionConfig(values).get_parallelism(),
            max_parallelism=read(values, options.MAX_PARALLELISM),
            chaining=bool(read(values, options.OPERATOR_CHAINING)),
            buffer_timeout_ms=to_milliseconds(read(values, options.BUFFER_TIMEOUT)),
            runtime_mode=read(values, options.RUNTIME_MODE),
            batch_form=_batch_form,
            phases=phases,
            last_results=_last_results,
            name=job_name or read(values, options.PIPELINE_NAME) or DEFAULT_JOB_NAME,
        )

    rule = PhaseRule(partial(split_operator, values), read(values, options.AGGREGATE_PHASES))
    with located():
        kept = kept_phases(rule, build, in_flight or partial(found_in_flight, values))
        graph = build(replace(rule, kept=kept))
    push_filters(graph)
    return graph


def own_host(program: RecordedProgram) -> str:
    """The address at which workers reach this program."""
    from flinkpy.cluster.launch import choose_target
    from flinkpy.network.wire.outward_address import outward_address

    return outward_address() if choose_target(program.values) is options.Target.RAY else "127.0.0.1"


def _refuse_without_uid(graph: StreamGraph) -> None:
    nameless = [
        node
        for node in graph.nodes.values()
        if node.uid is None and node.uid_hash is None and not node.is_local_phase
    ]
    if nameless:
        raise refuse(
            f"{nameless[0].label} has no uid, and disable_auto_generated_uids() asks for one: "
            "call uid(...) on it"
        )


def _with_checkpoints(program: RecordedProgram, graph: StreamGraph) -> dict[str, Any]:
    """The job's options, with checkpoints if it wants them and can have them."""
    values = dict(program.values)
    path = read(values, RECOVERY_PATH)
    if path is not None:
        if graph.runtime_mode is options.RuntimeMode.BATCH:
            raise refuse(
                f"a job in BATCH cannot start from a checkpoint: leave {RECOVERY_PATH.key} "
                "out, or set execution.runtime-mode to STREAMING"
            )
        values[RECOVERY_PATH.key] = absolute(path)
    # a batch job needs none: a task that failed reads the results before it again
    if graph.runtime_mode is options.RuntimeMode.BATCH:
        values.pop(CHECKPOINT_INTERVAL.key, None)
    for option in (CHECKPOINT_DIRECTORY, SAVEPOINT_DIRECTORY):
        directory = read(values, option)
        if directory is not None:
            # of this process, and not of the one that reads the option
            values[option.key] = absolute(directory)
    if read(values, CHECKPOINT_INTERVAL) is None:
        return values
    loop = _first_loop(program.transformations)
    if loop is not None:  # refused, as in Flink
        raise refuse(
            f"checkpoints are not possible with the loop begun by iterate() at {loop}: "
            "records on their way back would be part of "
            "none, and lost after a failure. Leave enable_checkpointing() out"
        )
    _refuse_overtaking_a_global_committer(graph, values)
    return values


def _refuse_overtaking_a_global_committer(graph: StreamGraph, values: dict[str, Any]) -> None:
    """A barrier that overtakes committables would leave some of a checkpoint to the next one."""
    from flinkpy.operators.sinks.global_commits import GlobalCommitterOperator

    if not read(values, CHECKPOINT_UNALIGNED):
        return
    for node in graph.nodes.values():
        if isinstance(node.operator, GlobalCommitterOperator):
            raise refuse(
                f"{node.label} commits all of a checkpoint together, and unaligned checkpoints "
                f"would tear it apart: set {CHECKPOINT_UNALIGNED.key} to false"
            )


def _why_no_savepoints(program: RecordedProgram, graph: StreamGraph) -> str:
    """Why the job can take no savepoints; empty if it can."""
    if graph.runtime_mode is options.RuntimeMode.BATCH:
        return "it runs in BATCH, where nothing is saved; set execution.runtime-mode to STREAMING"
    loop = _first_loop(program.transformations)
    return (
        ""
        if loop is None
        else f"records on their way back in the loop begun by iterate() at {loop} would be lost"
    )


def _first_loop(transformations: Iterable[Transformation]) -> str | None:
    """Where the program begins a loop."""
    return next(
        (
            each.where or "a place that is not known"
            for each in transformations
            if isinstance(each, IterationHeadTransformation)
        ),
        None,
    )


def _batch_form(operator: Operator) -> Operator:
    from flinkpy.operators.batch.batch_forms import batch_form

    formed: Operator = batch_form(operator)
    return formed


def _last_results(operator: Operator) -> Operator:
    from flinkpy.operators.base import OneInputOperator
    from flinkpy.operators.results.last_results import LastResultsOperator

    assert isinstance(operator, OneInputOperator)
    return LastResultsOperator(operator)
