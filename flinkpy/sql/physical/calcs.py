"""Calc: projections and filters above each other become one operator."""

from __future__ import annotations

from collections.abc import Sequence

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.sql.physical.physical_nodes import Calc, PhysicalNode
from flinkpy.sql.rex.rex_nodes import Rex, RexInput, inputs_of, walk
from flinkpy.sql.rules.conditions import conjunction, conjuncts, replaced_inputs

_LARGE = 40  # parts of an expression that are not written twice


def calc(
    input: PhysicalNode, projections: Sequence[Rex] | None, condition: Rex | None, schema: RowType
) -> PhysicalNode:
    """These columns of the rows for which the condition is true, in one operator with a Calc
    below."""
    columns = tuple(inputs(input.schema)) if projections is None else tuple(projections)
    if isinstance(input, Calc) and _may_merge(input, columns, condition):
        columns = tuple(replaced_inputs(each, input.projections) for each in columns)
        if condition is not None:
            condition = replaced_inputs(condition, input.projections)
        condition = conjunction([*conjuncts(input.condition), *conjuncts(condition)])
        input = input.input
    if condition is None and is_identity(columns, input.schema, schema):
        return input
    return Calc(schema, input, columns, condition)


def _may_merge(below: Calc, columns: Sequence[Rex], condition: Rex | None) -> bool:
    """Whether nothing large, and nothing that differs each time, would be computed twice."""
    uses: dict[int, int] = {}
    for each in (*columns, *conjuncts(condition)):
        for part in walk(each):
            if isinstance(part, RexInput):
                uses[part.index] = uses.get(part.index, 0) + 1
    return all(
        isinstance(below.projections[index], RexInput)
        or count == 1
        or sum(1 for _ in walk(below.projections[index])) <= _LARGE
        for index, count in uses.items()
    )


def inputs(schema: RowType) -> list[Rex]:
    """The columns as they are."""
    return [RexInput(each.type, index=index) for index, each in enumerate(schema.fields)]


def is_identity(columns: Sequence[Rex], input: RowType, schema: RowType) -> bool:
    """Whether the columns are the input's, in order and under the same names."""
    return (
        len(columns) == len(input.fields)
        and all(isinstance(each, RexInput) and each.index == i for i, each in enumerate(columns))
        and input.names == schema.names
    )


def columns_read(columns: Sequence[Rex]) -> frozenset[int]:
    """The columns that any of them reads."""
    return frozenset[int]().union(*map(inputs_of, columns))
