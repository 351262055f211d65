"""``flinkpy checkpoints``: what a checkpoint or savepoint on disk holds, whether it is intact, and
the same in another form."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timezone

from flinkpy.cli.tell import tell
from flinkpy.core.elements import SavepointFormatType
from flinkpy.state.descriptors import StateKind
from flinkpy.state.inspection.checkpoint_contents import (
    CheckpointContents,
    OperatorContents,
    StateContents,
    contents_of,
    folder_at,
)


def inspect(path: str, as_json: bool, entries: int, state: str | None) -> int:
    """Prints what the checkpoint holds. Returns the exit code: 1 if some of its state is
    damaged."""
    contents = contents_of(path, entries, state)
    if as_json:
        tell(json.dumps({**asdict(contents), "damaged": contents.damaged}, indent=2))
    else:
        for line in checkpoint_lines(contents):
            tell(line)
        for sentence in contents.damaged:
            tell(sentence, err=True)
    return 1 if contents.damaged else 0


def convert(path: str, target: str, format_type: str) -> None:
    """Writes the checkpoint anew in the form of this name. The program's modules are looked for in
    the working folder, too."""
    sys.path.insert(0, os.getcwd())
    from flinkpy.state.canonical.rewriting import rewrite

    written = rewrite(folder_at(path), target, SavepointFormatType[format_type.upper()])
    tell(
        f"wrote checkpoint {written.checkpoint_id} to {written.location}: "
        f"{in_bytes(written.size)} of state"
    )


def checkpoint_lines(contents: CheckpointContents) -> Iterator[str]:
    """The checkpoint as text: a heading, and for each operator a line and a table of its states."""
    taken = datetime.fromtimestamp(contents.timestamp_ms / 1000, timezone.utc).strftime(
        "%Y-%m-%d %H:%M:%S UTC"
    )
    yield (
        f"checkpoint {contents.checkpoint_id} of job {contents.job_id}, taken {taken}, "
        f"{in_bytes(contents.size)} of state"
    )
    yield contents.location
    if contents.others:
        yield f"the newest of its job; the folder also has {', '.join(map(str, contents.others))}"
    for operator in contents.operators:
        yield ""
        yield _operator_line(operator)
        yield from _state_table(operator)
    if contents.in_flight.channels:
        yield ""
        yield (
            f"in flight when its barriers overtook: {in_bytes(contents.in_flight.size)} in "
            f"{contents.in_flight.channels} channels"
        )
    if not contents.damaged:
        yield ""
        yield "all checksums match"


def _operator_line(operator: OperatorContents) -> str:
    finished = (
        f", finished subtasks: {', '.join(map(str, operator.finished))}"
        if operator.finished
        else ""
    )
    enumerator = (
        f", {in_bytes(operator.coordinator_size)} of its enumerator"
        if operator.coordinator_size is not None
        else ""
    )
    return (
        f"{operator.name}  (id {operator.id}, parallelism {operator.parallelism} of at most "
        f"{operator.max_parallelism}{finished}), "
        f"{in_bytes(operator.size)}{enumerator}"
    )


def _state_table(operator: OperatorContents) -> Iterator[str]:
    rows = [
        (each.name, _kind(each), f"{each.entries:,}", in_bytes(each.size))
        for each in operator.states
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    for state, (name, kind, count, size) in zip(operator.states, rows):
        yield (
            f"  {name.ljust(widths[0])}  {kind.ljust(widths[1])}  {count.rjust(widths[2])} "
            f"{state.unit}  {size.rjust(widths[3])}"
        )
        yield from (f"      {entry}" for entry in state.first)


def _kind(state: StateContents) -> str:
    declared = (
        f" of {state.type}"
        if state.type.startswith("Types.")
        else " of the engine"
        if state.type == StateKind.ENGINE.value
        else ""
    )
    return f"{state.kind}{declared}{', expiring' if state.expires else ''}"


def in_bytes(count: int) -> str:
    """A number of bytes for people.

    >>> in_bytes(831), in_bytes(20_480), in_bytes(5 << 20)
    ('831 bytes', '20.0 KB', '5.0 MB')
    """
    units: Sequence[tuple[str, int]] = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))
    return next(
        (f"{count / size:.1f} {unit}" for unit, size in units if count >= size), f"{count} bytes"
    )
