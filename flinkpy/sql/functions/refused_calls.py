"""The error of a call whose arguments do not fit: what the function takes, what it was given, and
the cast that would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.sql.functions.argument_kinds import Kind
from flinkpy.sql.functions.function_port import Argument
from flinkpy.sql.sql_errors import ValidationError


class CallShape(Protocol):
    """A way to call a function. ``str`` shows its arguments."""

    def takes(self, count: int) -> bool: ...

    def kind_at(self, index: int) -> Kind: ...


def refused_call(
    name: str, shapes: Sequence[CallShape], arguments: Sequence[Argument]
) -> ValidationError:
    """The error for a call that no shape takes."""
    taken = " or ".join(map(str, shapes))
    given = ", ".join(_shown(each.type) for each in arguments)
    counted = [each for each in shapes if each.takes(len(arguments))]
    problem = f"{name} takes {taken}, not ({given})"
    return ValidationError(problem + _way_out(counted, arguments))


def _way_out(shapes: Sequence[CallShape], arguments: Sequence[Argument]) -> str:
    if not shapes:
        return ""
    misfits = [_misfits(each, arguments) for each in shapes]
    fewest = min(misfits, key=len)
    if not fewest:
        return "; the arguments fit one by one, but have no type in common: cast them to one"
    parts = []
    for index, kind in fewest:
        target = kind.proposal(arguments[index])
        if kind.is_constant:
            parts.append(f"argument {index + 1} must be {kind.text}")
        elif target is not None:
            parts.append(f"write CAST(... AS {target}) for argument {index + 1}")
    return f"; {', '.join(parts)}" if parts else ""


def _misfits(shape: CallShape, arguments: Sequence[Argument]) -> list[tuple[int, Kind]]:
    kinds = [shape.kind_at(index) for index in range(len(arguments))]
    return [
        (index, kind)
        for index, (kind, each) in enumerate(zip(kinds, arguments))
        if kind.fitted(each) is None
    ]


def _shown(type: LogicalType) -> str:
    return str(type.nullable())
