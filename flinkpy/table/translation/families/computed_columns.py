"""Nodes that look at one row after the other."""

from __future__ import annotations

from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.relational.row_by_row.calc_operator import (
    CalcAtWatermarkOperator,
    CalcOperator,
    ExpandOperator,
)
from flinkpy.relational.row_by_row.limit_rows import LimitRowsOperator
from flinkpy.sql.physical.physical_nodes import Calc, Expand, Limit
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexInput, rewritten, walk
from flinkpy.table.translation.node_schemas import schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext

CURRENT_WATERMARK = "CURRENT_WATERMARK"


def calc(node: Calc, context: TranslationContext) -> ColumnStream:
    """Computed columns of the rows that a condition leaves."""
    names, schema = node.input.schema.names, schema_of(node.schema)
    time = _watermark_read(node)
    if time is None:
        program = context.program(node.projections, node.condition, names)
        return context.applied(node, CalcOperator(program, schema))
    watermark = RexInput(time, index=len(names))

    def read(rex: Rex) -> Rex:
        return rewritten(rex, lambda each: watermark if _is_watermark(each) else each)

    condition = None if node.condition is None else read(node.condition)
    projections = tuple(map(read, node.projections))
    program = context.program(projections, condition, [*names, CURRENT_WATERMARK])
    return context.applied(node, CalcAtWatermarkOperator(program, schema, arrow_of(time)))


def _watermark_read(node: Calc) -> LogicalType | None:
    """The type of the watermark that expressions read, if one does."""
    conditions = [] if node.condition is None else [node.condition]
    for each in (*node.projections, *conditions):
        for part in walk(each):
            if _is_watermark(part):
                return part.type
    return None


def _is_watermark(rex: Rex) -> bool:
    return isinstance(rex, RexCall) and rex.function == CURRENT_WATERMARK


def expand(node: Expand, context: TranslationContext) -> ColumnStream:
    """Each row as several."""
    names = node.input.schema.names
    programs = [context.program(each, None, names) for each in node.projections]
    return context.applied(node, ExpandOperator(programs, schema_of(node.schema)))


def limit(node: Limit, context: TranslationContext) -> ColumnStream:
    """The first rows that come."""
    operator = LimitRowsOperator(node.offset, node.limit, schema_of(node.schema))
    return context.applied(node, operator)


TRANSLATIONS: Family = {Calc: calc, Expand: expand, Limit: limit}
