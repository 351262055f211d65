"""The error of a call whose arguments do not fit: what the function takes, what it was given, and
the cast that would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from flinkpy.common.logical_types.allowed_casts import explicit_cast_allowed
from flinkpy.common.logical_types.logical_type import TypeFamily
from flinkpy.common.logical_types.type_merging import common_type
from flinkpy.sql.functions.argument_kinds import Kind
from flinkpy.sql.functions.function_port import Argument
from flinkpy.sql.sql_errors import ValidationError


class CallShape(Protocol):
    """A way to call a function."""

    @property
    def texts(self) -> tuple[str, ...]:
        """What stands at each place."""

    def takes(self, count: int) -> bool: ...

    def kind_at(self, index: int) -> Kind: ...


def refused_call(
    name: str, shapes: Sequence[CallShape], arguments: Sequence[Argument]
) -> ValidationError:
    """The error for a call that no shape takes."""
    counted = [each for each in shapes if each.takes(len(arguments))]
    forms = _nearest_shapes(counted, arguments) if len(counted) > _MOST_FORMS else counted
    taken = " or ".join(dict.fromkeys(call_text(name, each.texts) for each in forms or shapes))
    given = call_text(name, [str(each.type.nullable()) for each in arguments])
    if not counted and not arguments:
        return ValidationError(f"{name} needs arguments: it is called as {taken}")
    if not counted:
        return ValidationError(
            f"{name} does not take {_counted(len(arguments))}: it is called as {taken}, not as "
            f"{given}"
        )
    return ValidationError(
        f"{name} is called as {taken}, not as {given}{_way_out(counted, arguments)}"
    )


_MOST_FORMS = 3


def _nearest_shapes(
    shapes: Sequence[CallShape], arguments: Sequence[Argument]
) -> Sequence[CallShape]:
    """Those that the fewest arguments do not fit."""
    misfits = [len(_misfits(each, arguments)) for each in shapes]
    return [each for each, count in zip(shapes, misfits) if count == min(misfits)]


# Words that stand between operands, and what stands between those behind them.
_BETWEEN_OPERANDS = {
    "AND": " AND ",
    "OR": " OR ",
    "LIKE": " ESCAPE ",
    "SIMILAR TO": " ESCAPE ",
    "BETWEEN": " AND ",
}


def call_text(name: str, arguments: Sequence[str]) -> str:
    """A call as it is written: operators stand between their operands.

    >>> call_text("NOT BETWEEN", ["a", "b", "c"]), call_text("UPPER", ["a"])
    ('a NOT BETWEEN b AND c', 'UPPER(a)')
    """
    if not arguments:
        return f"{name}()"
    word = name.removesuffix(" (unary)")
    positive = word.removeprefix("NOT ")
    first, rest = arguments[:1], arguments[1:]
    if name == "ITEM":
        return f"{first[0]}[{', '.join(rest)}]"
    if positive == "IN":
        return f"{first[0]} {word} ({', '.join(rest)})"
    if positive in _BETWEEN_OPERANDS:
        return f"{first[0]} {word} {_BETWEEN_OPERANDS[positive].join(rest)}"
    if word.isidentifier():
        return f"{name}({', '.join(arguments)})"
    if rest:
        return f"{first[0]} {word} {', '.join(rest)}"
    return f"{first[0]} {word}" if word.startswith("IS ") else f"{word} {first[0]}"


def _counted(count: int) -> str:
    return f"{count} argument{'' if count == 1 else 's'}"


def _way_out(shapes: Sequence[CallShape], arguments: Sequence[Argument]) -> str:
    """The fewest casts that make the call fit a shape."""
    fewest = min((_misfits(each, arguments) for each in shapes), key=len)
    if not fewest:
        is_uniform = (
            len({shape.kind_at(at).text for shape in shapes for at in range(len(arguments))}) == 1
        )
        advice = _to_one_type(arguments) if is_uniform else ""
        return f"; the arguments have no type in common: {advice or 'CAST them to one'}"
    parts = [_advice(index, kind, arguments[index]) for index, kind in fewest]
    given = [each for each in parts if each]
    return f"; {' and '.join(given)}" if given else ""


def _to_one_type(arguments: Sequence[Argument]) -> str:
    """The cast of one argument to the type of the others. Text is cast to what is none."""
    types = [each.type for each in arguments]
    wanted = next((each for each in types if not each.is_a(TypeFamily.CHARACTER_STRING)), types[0])
    for index, each in enumerate(types):
        if common_type([each, wanted]) is None and explicit_cast_allowed(each, wanted):
            return _cast(str(wanted.nullable()), index)
    return ""


def _advice(index: int, kind: Kind, argument: Argument) -> str:
    if kind.is_constant:
        return f"argument {index + 1} must be a literal"
    target = kind.proposal(argument)
    return "" if target is None else _cast(target, index)


def _cast(target: str, index: int) -> str:
    return f"write CAST(... AS {target}) for argument {index + 1}"


def _misfits(shape: CallShape, arguments: Sequence[Argument]) -> list[tuple[int, Kind]]:
    kinds = [shape.kind_at(index) for index in range(len(arguments))]
    pairs = enumerate(zip(kinds, arguments))
    return [(index, kind) for index, (kind, each) in pairs if kind.fitted(each) is None]
