"""The expressions of which Flink was asked the value, bound, and computed in both ways: by the
plain-Python meaning and by the kernels of a compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from flinkpy.columns.sql.arrays_of_values import values_of_array
from flinkpy.columns.sql.calc_compiler import CompiledCalc
from flinkpy.columns.sql.call_site import VARYING, CallSite
from flinkpy.columns.sql.sql_meanings.casts.texts_of_values import text_of
from flinkpy.columns.sql.sql_meanings.sql_meaning_table import SQL_MEANINGS
from flinkpy.common.logical_types.logical_type import BigIntType, RowField, VarBinaryType
from flinkpy.sql.binding.binding_context import BindingContext
from flinkpy.sql.binding.expression_binder import ExpressionBinder
from flinkpy.sql.binding.scope import Relation, Scope
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.parsing import parse_expression
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexInput, RexLiteral
from flinkpy.sql.rex.rex_programs import program_of

VALUES = Path(__file__).parents[1] / "reference" / "flink_sql_values.tsv"
ZONE = "UTC"


@dataclass(frozen=True)
class ReferenceValue:
    """An expression and the value that Flink gave, as a text."""

    expression: str
    value: str
    how: str

    @property
    def at_run_time(self) -> bool:
        return self.how.startswith("at run time")


def reference_values() -> list[ReferenceValue]:
    """All rows of the table."""
    # not by csv, which takes no NUL character before Python 3.11
    names, *lines = (line.split("\t") for line in VALUES.read_text(encoding="utf-8").split("\n"))
    rows = [dict(zip(names, each)) for each in lines if each != [""]]
    return [ReferenceValue(row["expression"], row["value_as_string"], row["how"]) for row in rows]


class _NoNames:
    """A session in which nothing was created."""

    def find_function(self, parts: Sequence[str]) -> None:
        return None

    def function_names(self) -> Sequence[str]:
        return ()


def bound(text: str) -> Rex:
    """The typed expression, over a column ``o`` of BIGINT."""
    context = BindingContext(_NoNames(), built_in_functions(), None, None)  # type: ignore[arg-type]
    relation = Relation(("t",), (RowField("o", BigIntType().not_null()),))
    binder = ExpressionBinder(context, Scope((relation,)), None)  # type: ignore[arg-type]
    return binder.bind(parse_expression(text))


def meaning_of(rex: Rex, row: Sequence[Any]) -> Any:
    """The value by the meanings, one call after the other; a branch only where it is chosen."""
    if isinstance(rex, RexInput):
        return row[rex.index]
    if isinstance(rex, RexLiteral):
        return rex.value
    assert isinstance(rex, RexCall)
    site = CallSite(
        tuple(each.type for each in rex.arguments),
        rex.type,
        tuple(each.value if isinstance(each, RexLiteral) else VARYING for each in rex.arguments),
        dict(rex.options),
        ZONE,
    )
    if rex.function == "CASE":
        for condition, value in zip(rex.arguments[::2], rex.arguments[1::2]):
            if meaning_of(condition, row):
                return meaning_of(value, row)
        return meaning_of(rex.arguments[-1], row)
    if rex.function == "AND":
        found: bool | None = True
        for each in rex.arguments:
            value = meaning_of(each, row)
            if value is False:
                return False
            found = None if value is None else found
        return found
    meaning = SQL_MEANINGS[rex.function](site)
    return meaning(*(meaning_of(each, row) for each in rex.arguments))


def kernel_of(rex: Rex, column: pa.Array) -> list[Any]:
    """The values by a program over a column ``o``."""
    program = program_of([rex], None, built_in_functions(), names=["o"], zone=ZONE)
    found = CompiledCalc(program, ["value"])(pa.record_batch([column], names=["o"]))
    return values_of_array(found.column(0), rex.type)


def functions_in(rex: Rex) -> set[str]:
    """The names of all functions of an expression."""
    found, pending = set(), [rex]
    while pending:
        each = pending.pop()
        if isinstance(each, RexCall):
            found.add(each.function)
        pending.extend(each.operands)
    return found


def shown(value: Any, rex: Rex) -> str:
    """The value as Flink's SQL client writes it."""
    if value is None:
        return "NULL"
    if isinstance(rex.type, VarBinaryType):
        return bytes(value).decode("utf-8", "replace")
    write = text_of(rex.type, ZONE)
    assert write is not None
    return write(value)
