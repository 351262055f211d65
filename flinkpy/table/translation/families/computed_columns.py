"""Nodes that look at one row after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.common.logical_types.logical_type import LogicalType, RowField
from flinkpy.datastream.streams.recorded import ColumnStream, copy_place
from flinkpy.relational.functions.scalar_code import ScalarCode
from flinkpy.relational.row_by_row.calc_operator import (
    CalcAtWatermarkOperator,
    CalcOperator,
    ExpandOperator,
)
from flinkpy.relational.row_by_row.limit_rows import LimitRowsOperator
from flinkpy.sql.functions.user_function import UserFunction
from flinkpy.sql.logical.logical_nodes import inputs_for, row_of
from flinkpy.sql.physical.physical_nodes import Calc, Expand, Limit
from flinkpy.sql.plans.rex_text import rex_text
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexInput, rewritten, walk
from flinkpy.sql.rules.conditions import conjunction, conjuncts
from flinkpy.table.translation.calls_to_await import CallToAwait, calls_to_await
from flinkpy.table.translation.node_schemas import schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext

CURRENT_WATERMARK = "CURRENT_WATERMARK"
_STEPS = 10_000


def calc(node: Calc, context: TranslationContext) -> ColumnStream:
    """Computed columns of the rows that a condition leaves."""
    conditions = conjuncts(node.condition)
    for place, each in enumerate(conditions):
        asked = _calls_to_await([each], context)
        if asked:
            return _in_two_steps(node, conditions[:place], asked, context)
    calls = _calls_to_await(node.projections, context)
    if calls and _calls_to_await(_above(node, calls).projections, context):
        return _in_two_steps(node, conditions, calls, context)
    if calls:
        return _awaited(node, calls, context)
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


def _in_two_steps(
    node: Calc, before: list[Rex], calls: list[CallToAwait], context: TranslationContext
) -> ColumnStream:
    """The rows that pass the conditions before, with the answers of these calls; and what is left
    of the node over them."""
    above = _above(node, calls)
    rest = conjuncts(above.condition)[len(before) :]
    answers = tuple(each.answer for each in calls)
    columns = inputs_for(node.input.schema.fields)
    schema = row_of(above.input.schema.fields)
    id = -(abs(node.id) * _STEPS + len(schema.fields))  # no other step of a node has it
    below = Calc(schema, node.input, (*columns, *answers), conjunction(before), id=id)
    context.keep(below, calc(below, context))
    return calc(replace(above, input=below, condition=conjunction(rest)), context)


def _calls_to_await(expressions: Sequence[Rex], context: TranslationContext) -> list[CallToAwait]:
    return calls_to_await(expressions, lambda call: _code_to_await(call, context) is not None)


def _code_to_await(call: RexCall, context: TranslationContext) -> ScalarCode | None:
    function = context.registry.find(call.function)
    body = function.body if isinstance(function, UserFunction) else None
    return body if isinstance(body, ScalarCode) and body.awaits_functions else None


def _above(node: Calc, calls: list[CallToAwait]) -> Calc:
    """What is left of the node over its rows with the answers of these calls."""
    fields = node.input.schema.fields
    types = [each.answer.type for each in calls]
    answers = [RowField(f"answer {at}", type) for at, type in enumerate(types, len(fields))]
    below = replace(node.input, schema=row_of([*fields, *answers]))
    place = {
        each.call: RexInput(each.call.type, index=at) for at, each in enumerate(calls, len(fields))
    }
    condition = None if node.condition is None else _read_from(place, node.condition)
    projections = tuple(_read_from(place, each) for each in node.projections)
    return replace(node, input=below, projections=projections, condition=condition)


def _awaited(node: Calc, calls: list[CallToAwait], context: TranslationContext) -> ColumnStream:
    """Three operators: the arguments, the calls, and what is computed with their answers."""
    from flinkpy.relational.functions.async_calls import AsyncCall, AsyncCallsOperator

    names = node.input.schema.names
    columns: list[Rex] = list(inputs_for(node.input.schema.fields))
    awaited: list[AsyncCall] = []
    for each in calls:
        call, at = each.call, len(columns)
        columns += each.arguments
        asked = None if each.asked is None else len(columns)
        columns += [] if each.asked is None else [each.asked]
        code = _code_to_await(call, context)
        assert code is not None
        types = tuple(argument.type for argument in call.arguments)
        places = tuple(range(at, at + len(types)))
        awaited.append(AsyncCall(code, rex_text(call, names), places, types, call.type, asked))
    fields = [RowField(f"f{at}", each.type) for at, each in enumerate(columns)]
    fields[: len(names)] = node.input.schema.fields
    answers = [RowField(f"answer {at}", each.answer.type) for at, each in enumerate(calls)]
    inputs, answered = row_of(fields), row_of([*fields, *answers])
    limits = context.rules.async_limits
    program = context.program(columns, node.condition, names)
    stream = context.stream_of(node.input)
    first = stream.apply_columns("Calc", CalcOperator(program, schema_of(inputs)))
    copy_place(stream.transformation, first.transformation)
    operator = AsyncCallsOperator(awaited, limits, schema_of(answered))
    second = first.apply_columns("AsyncCalc", operator)
    copy_place(stream.transformation, second.transformation)
    if context.rules.gives_uids:
        second.transformation.uid = f"{node.id}_AsyncCalc"  # it has state: calls under way
    place = {
        each.call: RexInput(each.call.type, index=at) for at, each in enumerate(calls, len(fields))
    }
    projections = [_read_from(place, each) for each in node.projections]
    last = context.program(projections, None, [each.name for each in answered])
    return context.behind(node, second, CalcOperator(last, schema_of(node.schema)))


def _read_from(place: Mapping[RexCall, RexInput], rex: Rex) -> Rex:
    """From above: the argument of a call that was made may be such a call, too."""
    if isinstance(rex, RexCall) and rex in place:
        return place[rex]
    if not rex.operands:
        return rex
    return rex.with_operands(tuple(_read_from(place, each) for each in rex.operands))


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
