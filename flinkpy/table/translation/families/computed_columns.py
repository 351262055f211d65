"""Nodes that look at one row after the other."""

from __future__ import annotations

from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.relational.row_by_row.calc_operator import CalcOperator, ExpandOperator
from flinkpy.relational.row_by_row.limit_rows import LimitRowsOperator
from flinkpy.sql.physical.physical_nodes import Calc, Expand, Limit
from flinkpy.table.translation.node_schemas import schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext


def calc(node: Calc, context: TranslationContext) -> ColumnStream:
    """Computed columns of the rows that a condition leaves."""
    program = context.program(node.projections, node.condition, node.input.schema.names)
    return context.applied(node, CalcOperator(program, schema_of(node.schema)))


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
