"""Rows beside what a table has for their keys."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.core.options.schema import parse_duration
from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.relational.functions.async_limits import AsyncLimits
from flinkpy.relational.lookups.lookup_join import AsyncLookupJoinOperator, LookupJoinOperator
from flinkpy.relational.lookups.lookup_port import AskedTable
from flinkpy.relational.lookups.rows_beside import LookupSpec
from flinkpy.sql.logical.logical_nodes import inputs_for
from flinkpy.sql.physical.physical_nodes import LookupJoin
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.translation.node_schemas import schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext


def lookup_join(node: LookupJoin, context: TranslationContext) -> ColumnStream:
    """The operator of the join, which waits for each batch or for several."""
    table = context.factories.lookup(node)
    schema = schema_of(node.schema)
    spec = _spec(node, context)
    limits = _limits(node, context.rules.lookup_limits)
    if isinstance(table, AskedTable) and table.is_async:
        return context.applied(node, AsyncLookupJoinOperator(spec, table, limits, schema))
    keys = tuple(node.columns.names[column] for column, _ in node.keys)
    return context.applied(node, LookupJoinOperator(spec, table, keys, schema))


def _spec(node: LookupJoin, context: TranslationContext) -> LookupSpec:
    left, found, columns = node.input.schema, node.found, node.columns
    chosen = None
    if node.projections is not None or node.filter is not None:
        projections = inputs_for(columns.fields) if node.projections is None else node.projections
        chosen = context.program(projections, node.filter, columns.names)
    condition = None
    if node.condition is not None:
        condition = context.program((), node.condition, (*left.names, *found.names))
    keys = context.program([value for _, value in node.keys], None, left.names)
    return LookupSpec(keys, schema_of(left), schema_of(found), node.keeps_left, chosen, condition)


def _limits(node: LookupJoin, limits: AsyncLimits) -> AsyncLimits:
    """Those of the session, or of a LOOKUP hint. Raises ValidationError for what it cannot say."""
    for key, text in node.options:
        option = key.lower()
        try:
            if option == "capacity":
                limits = replace(limits, most_at_once=_positive(text))
            elif option == "timeout":
                limits = replace(limits, timeout=parse_duration(text))
            elif option not in ("async", "output-mode", "shuffle"):
                raise ValueError(
                    "the options of LOOKUP are table, async, output-mode, capacity, timeout and "
                    "shuffle; how often a call is repeated is 'lookup.max-retries' of the table"
                )
        except ValueError as error:
            raise ValidationError(
                f"Invalid LOOKUP hint options: '{key}'='{text}': {error}"
            ) from None
    return limits


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise ValueError("it is a number from 1 on")
    return int(text)


TRANSLATIONS: Family = {LookupJoin: lookup_join}
