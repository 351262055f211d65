"""Rows beside what a table function, or UNNEST, gives for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.columns.sql.calc_program import CalcProgram
from flinkpy.common.logical_types.logical_type import MultisetType
from flinkpy.datastream.streams.recorded import ColumnStream, copy_place
from flinkpy.relational.functions.table_function_rows import TableCode, TableFunctionOperator
from flinkpy.relational.row_by_row.calc_operator import CalcOperator
from flinkpy.relational.row_by_row.unnest_rows import UnnestOperator
from flinkpy.sql.functions.user_function import UserFunction
from flinkpy.sql.physical.physical_nodes import Correlate
from flinkpy.sql.rex.rex_nodes import RexInput
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.translation.node_schemas import schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext

if TYPE_CHECKING:
    from flinkpy.graph.operator_port import ColumnarOperator


def correlate(node: Correlate, context: TranslationContext) -> ColumnStream:
    """The operator of the function, and a Calc behind it if there is a condition."""
    schema = schema_of(node.schema)
    if node.condition is None or (node.keeps_left and node.function == "UNNEST"):
        return context.applied(node, _operator(node, context))
    if node.keeps_left:
        raise ValidationError("a LEFT JOIN with a table function takes ON TRUE only, as in Flink")
    unnested = context.applied(node, _operator(node, context))
    columns = [RexInput(f.type, at) for at, f in enumerate(node.schema)]
    calc = context.program(columns, node.condition, node.schema.names)
    stream = unnested.apply_columns("Calc", CalcOperator(calc, schema))
    copy_place(unnested.transformation, stream.transformation)
    return stream


def _operator(node: Correlate, context: TranslationContext) -> ColumnarOperator:
    schema = schema_of(node.schema)
    program = context.program(node.arguments, None, node.input.schema.names)
    if node.function == "UNNEST":
        [collection] = node.arguments
        return UnnestOperator(
            program,
            schema,
            is_multiset=isinstance(collection.type, MultisetType),
            keeps_left=node.keeps_left,
            gives_ordinality=bool(dict(node.options).get("WITH ORDINALITY")),
            kept=node.kept,
            condition=_condition(node, context) if node.keeps_left else None,
        )
    function = context.registry.find(node.function)
    assert isinstance(function, UserFunction), "other table functions are of users"
    return TableFunctionOperator(
        program,
        TableCode(function.body, tuple(each.type for each in node.arguments), node.result),
        schema,
        keeps_left=node.keeps_left,
        kept=node.kept,
    )


def _condition(node: Correlate, context: TranslationContext) -> CalcProgram | None:
    if node.condition is None:
        return None
    return context.program([], node.condition, node.schema.names)


TRANSLATIONS: Family = {Correlate: correlate}
