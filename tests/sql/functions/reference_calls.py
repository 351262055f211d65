"""The measured calls of the reference, such as ``INT + DECIMAL(10,2) -> DECIMAL(13, 2)``: a column
is written as its type. A small binder resolves them with the registry alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from flinkpy.columns.sql.call_site import VARYING
from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import (
    LocalZonedTimestampType,
    LogicalType,
    NullType,
    RowType,
    TimeAttribute,
    TimestampType,
)
from flinkpy.common.logical_types.type_merging import computed
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.functions.function_port import Argument
from flinkpy.sql.parsing import parse_expression, parse_type
from flinkpy.sql.syntax.query_tree import (
    ArrayConstructor,
    CaseCall,
    CastCall,
    ElementAccess,
    FieldAccess,
    FunctionCall,
    Identifier,
    MapConstructor,
    RowConstructor,
    SqlExpression,
    SqlLiteral,
    StarItem,
)

REFERENCE = Path(__file__).parents[1] / "reference" / "flink_sql_functions.tsv"
VALUES = REFERENCE.with_name("flink_sql_values.tsv")
OPERATORS = REFERENCE.with_name("flink_sql_operators.tsv")

_NAMED: dict[str, LogicalType] = {
    "rt": TimestampType(3, TimeAttribute.ROWTIME),
    "rl": LocalZonedTimestampType(3, TimeAttribute.ROWTIME),
    "i": DataTypes.INT(),
}
_COLUMN = re.compile(
    r"'[^']*'"
    r"|\b(?:AS|RETURNING) [A-Z]+(?:<[^<>]*>)?"
    r"|\b((?:ARRAY|MAP|ROW)<[^<>]*>"
    r"|(?:DECIMAL|CHAR|VARCHAR|TIMESTAMP|TIMESTAMP_LTZ)\([\d,]+\)"
    r"|(?:TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|BOOLEAN|STRING|BYTES|DATE|TIME)\b(?! '|\())"
)


@dataclass(frozen=True)
class ReferenceRow:
    """A function of the reference, and its measured calls with their types."""

    names: tuple[str, ...]
    python_names: tuple[str, ...]
    nulls: str
    calls: tuple[tuple[str, str], ...]


def reference_rows() -> Iterator[ReferenceRow]:
    """The rows of the reference."""
    header, *lines = REFERENCE.read_text().splitlines()
    for line in lines:
        row = dict(zip(header.split("\t"), line.split("\t")))
        measured = [each for each in row["measured_result_types"].split("; ") if each]
        calls = tuple(each.split(" -> ") for each in measured)
        yield ReferenceRow(
            tuple(row["sql_name"].split(", ")),
            tuple(each for each in row["python_name"].split(", ") if each),
            row["nulls"],
            tuple((call, type) for call, type in calls),
        )


@dataclass
class _Columns:
    types: dict[str, LogicalType] = field(default_factory=lambda: dict(_NAMED))

    def replaced(self, found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        name = f"c{len(self.types)}"
        self.types[name] = parse_type(found[1])
        return name


def type_of_call(text: str) -> LogicalType:
    """The type that the registry gives for a call of the reference."""
    columns = _Columns()
    return _argument(parse_expression(_COLUMN.sub(columns.replaced, text)), columns.types).type


def operator_calls() -> Iterator[tuple[str, str, LogicalType]]:
    """Measured calls over columns of every type: the call, Flink's type and that of the registry."""
    header, *lines = OPERATORS.read_text().splitlines()
    row = parse_type(f"ROW<{header.removeprefix('# ')}>")
    assert isinstance(row, RowType)
    columns = {each.name: each.type for each in row.fields}
    for line in lines:
        text, type = line.split("\t")
        yield text, type, _argument(parse_expression(text), columns).type


def _argument(node: SqlExpression, columns: Mapping[str, LogicalType]) -> Argument:
    if isinstance(node, SqlLiteral):
        is_null = isinstance(node.type, NullType)
        return Argument(node.type if is_null else computed(node.type).not_null(), node.value)
    if isinstance(node, FunctionCall) and node.name == "- (unary)":
        number = _argument(node.arguments[0], columns)
        if isinstance(number.constant, (int, Decimal)):
            return Argument(number.type, -number.constant)
    return Argument(_type(node, columns))


def _type(node: SqlExpression, columns: Mapping[str, LogicalType]) -> LogicalType:
    if isinstance(node, Identifier):
        type = columns[node.parts[0]]
        for name in node.parts[1:]:
            type = _field(type, name)
        return type
    if isinstance(node, FieldAccess):
        return _field(_type(node.value, columns), node.name)
    name, operands, options = _as_call(node)
    arguments = [_argument(each, columns) for each in operands if not isinstance(each, StarItem)]
    return called(name, arguments, options)


def called(
    name: str, arguments: list[Argument], options: Mapping[str, object] | None = None
) -> LogicalType:
    """The type of a call."""
    function = built_in_functions().find(name)
    assert function is not None, name
    return function.bind(arguments, options or {}).result


def varying(*types: LogicalType) -> list[Argument]:
    """Arguments that are no constants."""
    return [Argument(each, VARYING) for each in types]


def _field(type: LogicalType, name: str) -> LogicalType:
    assert isinstance(type, RowType)
    return called("FIELD", varying(type), {"index": type.names.index(name)})


def _as_call(node: SqlExpression) -> tuple[str, tuple[SqlExpression, ...], Mapping[str, object]]:
    if isinstance(node, FunctionCall):
        return node.name, node.arguments, dict(node.options)
    if isinstance(node, CastCall):
        return "TRY_CAST" if node.is_try else "CAST", (node.value,), {"type": node.type}
    if isinstance(node, CaseCall):
        return "CASE", tuple(_parts_of_case(node)), {}
    if isinstance(node, ElementAccess):
        return "ITEM", (node.value, node.index), {}
    if isinstance(node, ArrayConstructor):
        return "ARRAY", node.elements, {}
    if isinstance(node, MapConstructor):
        return "MAP", tuple(part for entry in node.entries for part in entry), {}
    assert isinstance(node, RowConstructor), node
    return "ROW", node.values, {}


def _parts_of_case(node: CaseCall) -> Iterator[SqlExpression]:
    for when, then in node.branches:
        yield when if node.operand is None else FunctionCall("=", (node.operand, when))
        yield then
    yield node.otherwise or SqlLiteral(None, NullType())
