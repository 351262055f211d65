"""The flat program of the expressions of a Calc, for any operator that computes columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from flinkpy.columns.sql.calc_program import CalcProgram, ProgramBuilder
from flinkpy.columns.sql.user_code import UserCode
from flinkpy.common.logical_types.allowed_casts import cast_can_fail
from flinkpy.common.logical_types.logical_type import TypeFamily
from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.sql.functions.function_port import Function, FunctionRegistry
from flinkpy.sql.functions.user_function import UserFunction, shown_name
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexInput, RexLiteral

_KNOWN = frozenset({"CASE", "CAST", "TRY_CAST", "FIELD", "REINTERPRET"})
_DEPTH_OF_TEXT = 4


def program_of(
    projections: Sequence[Rex],
    condition: Rex | None,
    registry: FunctionRegistry,
    *,
    names: Sequence[str] = (),
    zone: str = "UTC",
    clock: Clock = SYSTEM_CLOCK,
) -> CalcProgram:
    """The program that computes the projections for the rows where the condition is true. ``names``
    are those of the input's columns, for errors. CURRENT_DATE and its like are of the ``clock``."""
    builder = ProgramBuilder(zone, clock)
    numbers: dict[int, int] = {}  # by identity: to hash a deep tree would recurse
    trees = [*projections, *([] if condition is None else [condition])]
    for tree in trees:
        _add(tree, builder, registry, numbers, names)
    outputs = [numbers[id(each)] for each in projections]
    return builder.program(outputs, None if condition is None else numbers[id(condition)])


def _add(
    tree: Rex,
    builder: ProgramBuilder,
    registry: FunctionRegistry,
    numbers: dict[int, int],
    names: Sequence[str],
) -> None:
    pending = [tree]
    while pending:
        rex = pending[-1]
        missing = [each for each in rex.operands if id(each) not in numbers]
        if missing:
            pending.extend(reversed(missing))
            continue
        pending.pop()
        if id(rex) in numbers:
            continue
        if isinstance(rex, RexInput):
            numbers[id(rex)] = builder.input(rex.index, rex.type)
        elif isinstance(rex, RexLiteral):
            numbers[id(rex)] = builder.constant(rex.value, rex.type)
        elif isinstance(rex, RexCall):
            can_fail, is_deterministic, code = _traits(rex, registry.find)
            numbers[id(rex)] = builder.call(
                rex.function,
                [numbers[id(each)] for each in rex.arguments],
                rex.type,
                options=rex.options,
                can_fail=can_fail,
                is_deterministic=is_deterministic,
                text=rex_text(rex, names),
                code=code,
            )
        else:
            raise TypeError(f"a program has no {type(rex).__name__}")


def _traits(
    rex: RexCall, find: Callable[[str], Function | None]
) -> tuple[bool, bool, UserCode | None]:
    """Whether the call itself can fail, whether it is deterministic, and the function itself if it
    is one of the program."""
    if rex.function in _KNOWN:
        is_cast = rex.function == "CAST"
        return is_cast and cast_can_fail(rex.arguments[0].type, rex.type), True, None
    function = find(rex.function)
    if function is None:
        raise LookupError(f"there is no function {rex.function}")
    code = cast("UserCode", function.body) if isinstance(function, UserFunction) else None
    can_fail = function.can_fail and not _always_divides(rex)
    return can_fail, function.deterministic, code


def _always_divides(rex: RexCall) -> bool:
    """Whether it is a division that has a result for each row: floats have infinity, and a constant
    that is not 0 divides all."""
    if rex.function not in ("/", "%"):
        return False
    divisor = rex.arguments[1]
    is_constant = isinstance(divisor, RexLiteral) and divisor.value != 0
    return is_constant or rex.type.is_a(TypeFamily.APPROXIMATE_NUMERIC)


def rex_text(rex: Rex, names: Sequence[str], depth: int = _DEPTH_OF_TEXT) -> str:
    """The expression as SQL writes it; what lies too deep is left out."""
    if isinstance(rex, RexInput):
        return names[rex.index] if rex.index < len(names) else f"${rex.index}"
    if not isinstance(rex, RexCall):
        return str(rex)
    if depth == 0:
        return "..."
    shown = [rex_text(each, names, depth - 1) for each in rex.arguments]
    if rex.function in ("CAST", "TRY_CAST"):
        return f"{rex.function}({shown[0]} AS {rex.type.text()})"
    name = shown_name(rex.function)
    if len(shown) == 2 and name == rex.function and not name[:1].isalpha():
        return f"({shown[0]} {name} {shown[1]})"
    return f"{name}({', '.join(shown)})"
