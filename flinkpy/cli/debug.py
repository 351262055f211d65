"""``flinkpy debug``: replays a job from a checkpoint in this process, with Python's debugger at one
operator's function.

The program runs up to its first ``execute``. Its graph is changed: the operator is put under the
debugger, and sinks drop what they get. Then the job runs embedded, restored from the checkpoint,
takes no checkpoints of its own and is not restarted."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from flinkpy.cli.run import gather, guarded, recovery, run_until_execute
from flinkpy.cli.script import find_script
from flinkpy.cli.tell import tell
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.core.options.checkpointing import CHECKPOINT_INTERVAL, RECOVERY_CLAIM
from flinkpy.core.options.engine import (
    PARALLELISM,
    RESTART_STRATEGY,
    SHOW_PROGRESS,
    TARGET,
    RuntimeMode,
)
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.graph.operator_port import Operator
from flinkpy.graph.stream_graph import NodeKind, StreamGraph, StreamNode
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.debugging.debugged_operator import Stops, debugged
from flinkpy.operators.debugging.debugger import DebuggingEnded


def debug_job(
    checkpoint: str,
    script: str,
    arguments: Sequence[str],
    *,
    operator: str,
    stops: Stops,
    parallelism: int | None,
    definitions: Sequence[str],
    allow_non_restored_state: bool,
    pyflink: bool,
    conf: Path | None,
    verbose: bool,
) -> int:
    """Replays the job; returns the exit code: 1 if the job fails, 0 if it ends, or if the user
    leaves the debugger."""

    def run(path: Path) -> None:
        from flinkpy.state.inspection.checkpoint_contents import manifest_at

        found = manifest_at(checkpoint).checkpoint
        as_it_was = max((each.parallelism for each in found.operators.values()), default=1)
        given = [*definitions, *recovery(found.location, allow_non_restored_state)]
        settings = gather(conf, given, parallelism, "embedded", pyflink=pyflink)
        settings.setdefault(PARALLELISM.key, as_it_was)
        outcome: list[BaseException | None] = []

        def replay(graph: StreamGraph, values: Mapping[str, Any]) -> None:
            try:
                prepare(graph, found, operator, stops)
                tell(
                    f"{graph.name!r} from checkpoint {found.checkpoint_id}; leave the "
                    "debugger with q"
                )
                run_to_end(graph, values)
                outcome.append(None)
            except BaseException as error:  # told behind the program, which may catch exceptions
                outcome.append(error)

        run_until_execute(path, arguments, settings, replay)
        if not outcome:
            raise ProgramError(f"{script} never called execute(), so there is no job to replay")
        if outcome[0] is not None and not _has_left(outcome[0]):
            raise outcome[0]

    return guarded(partial(find_script, script), run, verbose)


def prepare(
    graph: StreamGraph, checkpoint: CompletedCheckpoint, operator: str, stops: Stops
) -> None:
    """Puts the operator of that name or uid under the debugger, and has sinks drop what they get.
    Raises ProgramError for a job that cannot be replayed from the checkpoint, and if there is not
    one such operator."""
    if graph.runtime_mode is RuntimeMode.BATCH:
        raise ProgramError(
            "a job in BATCH takes no checkpoints, so there is nothing to replay: set "
            "execution.runtime-mode to STREAMING"
        )
    _check_program(graph, checkpoint)
    chosen = _find(graph, operator)
    if stops.subtask is not None and not 0 <= stops.subtask < chosen.parallelism:
        has = (
            "one subtask, 0"
            if chosen.parallelism == 1
            else f"the subtasks 0 to {chosen.parallelism - 1}"
        )
        raise ProgramError(f"{chosen.label} has {has}, and no {stops.subtask}")
    for node in graph.nodes.values():
        _check_source(node)
        if hasattr(node.operator, "sink"):
            node.operator = _dropping(node.operator)
    assert isinstance(chosen.operator, StreamOperator)
    chosen.operator = debugged(chosen.operator, stops, chosen.label)


def run_to_end(graph: StreamGraph, values: Mapping[str, Any]) -> None:
    """Runs the job in this process."""
    from flinkpy.cluster.launch import submit
    from flinkpy.core.ids import IdFactory
    from flinkpy.graph.job_graph_generator import build_job_graph

    settings = {
        **values,
        TARGET.key: "embedded",
        RESTART_STRATEGY.key: "none",
        SHOW_PROGRESS.key: False,
        RECOVERY_CLAIM.key: "NO_CLAIM",
    }
    settings.pop(CHECKPOINT_INTERVAL.key, None)
    submit(build_job_graph(graph, IdFactory().job_id(), settings), settings).result()


def _check_program(graph: StreamGraph, checkpoint: CompletedCheckpoint) -> None:
    from flinkpy.graph.hashes import operator_ids

    if checkpoint.operators and not set(operator_ids(graph).values()) & set(checkpoint.operators):
        had = ", ".join(sorted({repr(each.name) for each in checkpoint.operators.values()}))
        raise ProgramError(
            f"{checkpoint.location} is a checkpoint of another program: it is of {had}, and "
            "none of these is in this program"
        )


def _find(graph: StreamGraph, operator: str) -> StreamNode:
    nodes = [
        node
        for node in graph.nodes.values()
        if node.kind is not NodeKind.SOURCE and not hasattr(node.operator, "sink")
    ]
    found = [node for node in nodes if operator in (node.uid, node.name)]
    if len(found) > 1:
        raise ProgramError(
            f"the program has {len(found)} operators of the name {operator!r}: give the one "
            "you mean a uid or a name of its own"
        )
    if not found:
        names = list(
            dict.fromkeys(name for node in nodes for name in (node.name, node.uid) if name)
        )
        near = difflib.get_close_matches(operator, names, n=1)
        raise ProgramError(
            f"the program has no operator {operator!r}; "
            + (f"did you mean {near[0]!r}? It has " if near else "it has ")
            + f"{', '.join(map(repr, names)) or 'none with a function'}"
        )
    return found[0]


def _check_source(node: StreamNode) -> None:
    """Refuses a source that does not begin where it was at the checkpoint."""
    from flinkpy.operators.function_contexts.checkpointed import CheckpointedFunction

    function = getattr(node.operator, "function", None) if node.source is None else None
    begins_anew = (
        node.kind is NodeKind.SOURCE
        and function is not None
        and not isinstance(function, CheckpointedFunction)
    )
    if begins_anew or not getattr(node.source, "can_replay", True):
        raise ProgramError(
            f"{node.label} cannot be replayed: it does not give again what came after the "
            "checkpoint. Read from files, or from "
            "another source with positions (the page on checkpoints has a list)"
        )


def _dropping(operator: Operator) -> Operator:
    """The sink's operator, with a sink that drops everything. Its id stays, so that the state of
    the real sink is not missed."""
    from flinkpy.connectors.discarding_sink import DiscardingSink

    made: Callable[[DiscardingSink], Operator] = type(operator)
    return made(DiscardingSink())


def _has_left(error: BaseException) -> bool:
    return isinstance(
        error.cause if isinstance(error, JobExecutionError) else error, DebuggingEnded
    )
