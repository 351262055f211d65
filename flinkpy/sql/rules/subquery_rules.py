"""Subqueries become joins: EXISTS and IN semi-joins, their negations anti-joins, and a query that
stands for a value a column of an outer join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flinkpy.common.logical_types.logical_type import BigIntType, BooleanType
from flinkpy.sql.logical.logical_nodes import (
    LogicalAggregate,
    LogicalApply,
    LogicalFilter,
    LogicalJoin,
    LogicalNode,
    LogicalProject,
    LogicalSort,
    LogicalValues,
    aggregate,
    filtered,
    input_of,
    inputs_for,
    join,
    project,
)
from flinkpy.sql.logical.logical_rex import RexSubquery
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.sql.rex.rex_nodes import (
    AggregateCall,
    Rex,
    RexCall,
    RexInput,
    RexLiteral,
    rewritten,
    shifted,
    walk,
)
from flinkpy.sql.rules.conditions import (
    FALSE,
    TRUE,
    comparison,
    conjunction,
    conjuncts,
    is_call,
    replaced_inputs,
    test_of,
)
from flinkpy.sql.rules.decorrelation import Pulled, over_both, pulled
from flinkpy.sql.rules.rule_phases import Phase, RuleContext
from flinkpy.sql.sql_errors import ValidationError

_BIG = BigIntType(is_nullable=False)
_BOOLEAN = BooleanType(is_nullable=False)


def subqueries_in_filter(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """WHERE and HAVING."""
    if not isinstance(node, LogicalFilter) or not _has_subquery(node.condition):
        return None
    plan = node.input
    rest: list[Rex] = []
    for each in conjuncts(node.condition):
        joined = _as_semi_join(plan, each, context)
        if joined is None:
            rest.append(each)
        else:
            plan = joined
    return _values_joined(filtered(plan, conjunction(rest)), node, context)


def _values_joined(plan: LogicalNode, node: LogicalFilter, context: RuleContext) -> LogicalNode:
    """What remains: values and tests within larger expressions."""
    if not isinstance(plan, LogicalFilter) or not _has_subquery(plan.condition):
        return plan
    work = _Columns(plan.input, context)
    condition = work.replaced(plan.condition)
    made = filtered(work.plan, condition)
    columns = [input_of(made, index) for index in range(node.width)]
    return project(made, columns, node.schema.names)


def subqueries_in_project(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """The SELECT list."""
    if not isinstance(node, LogicalProject) or not any(map(_has_subquery, node.projections)):
        return None
    work = _Columns(node.input, context)
    columns = [work.replaced(each) for each in node.projections]
    return project(work.plan, columns, node.schema.names)


def subqueries_in_join(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """ON of an inner join is a WHERE."""
    if not isinstance(node, LogicalJoin) or node.condition is None:
        return None
    if not _has_subquery(node.condition):
        return None
    if node.kind is not JoinKind.INNER:
        raise ValidationError(
            f"A subquery in ON of a {node.kind.value} JOIN is not supported; join the subquery's "
            "result first",
            span=node.condition.span,
        )
    return filtered(replace(node, condition=None), node.condition)


def apply_as_join(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """LATERAL (SELECT ...)."""
    if not isinstance(node, LogicalApply):
        return None
    right = _expanded(node.right, context)
    if not _is_one_row(right):
        found = pulled(right)
        width = node.left.width
        conditions = [over_both(each, node.outer, width) for each in found.conditions]
        conditions += conjuncts(node.condition)
        made: LogicalNode = join(node.left, found.plan, node.kind, conjunction(conditions))
        columns: list[Rex] = [input_of(made, index) for index in range(node.width)]
        return project(made, columns, node.schema.names)
    if node.condition is not None and node.kind is not JoinKind.INNER:
        raise ValidationError(
            "LEFT JOIN LATERAL of a query that aggregates to one row takes ON TRUE; filter in the "
            "query instead",
            span=node.condition.span,
        )
    work = _Columns(node.left, context)
    columns = [*inputs_for(node.left.schema.fields), *work.row_of(right, node.outer)]
    made = project(work.plan, columns, node.schema.names)
    return filtered(made, node.condition)


def _expanded(plan: LogicalNode, context: RuleContext) -> LogicalNode:
    """The query of a subquery, without subqueries of its own."""
    return Phase("subqueries", SUBQUERY_RULES).applied(plan, context)


def _has_subquery(rex: Rex) -> bool:
    return any(isinstance(each, RexSubquery) for each in walk(rex))


# -- tests that are a condition of their own -------------------------------------------------------


def _as_semi_join(plan: LogicalNode, condition: Rex, context: RuleContext) -> LogicalNode | None:
    negated = is_call(condition, "NOT")
    test = condition.operands[0] if negated else condition
    if not isinstance(test, RexSubquery) or any(map(_has_subquery, test.operands)):
        return None
    kind = JoinKind.ANTI if negated else JoinKind.SEMI
    test = replace(test, plan=_expanded(test.query, context))
    if test.kind == "EXISTS":
        return _exists(plan, test, kind)
    if test.kind == "IN":
        return _in(plan, test, kind)
    return None


def _exists(plan: LogicalNode, test: RexSubquery, kind: JoinKind) -> LogicalNode:
    query = _without_columns(test.query)
    if _is_one_row(query):
        return filtered(plan, FALSE if kind is JoinKind.ANTI else TRUE)
    found = pulled(query, only_whether=True)
    conditions = [over_both(each, test.outer, plan.width) for each in found.conditions]
    right = found.plan
    if not conditions:
        right = LogicalSort(right.schema, right, (), 0, 1)
    return join(plan, right, kind, conjunction(conditions))


def _without_columns(query: LogicalNode) -> LogicalNode:
    """What matters for EXISTS: whether there are rows."""
    while isinstance(query, (LogicalProject, LogicalSort)):
        if isinstance(query, LogicalSort) and (query.offset or query.limit == 0):
            break
        query = query.input
    return query


def _in(plan: LogicalNode, test: RexSubquery, kind: JoinKind) -> LogicalNode:
    found = pulled(test.query, only_whether=True)
    outer = [over_both(each, test.outer, plan.width) for each in found.conditions]
    equal = [
        comparison(value, shifted(column, plan.width))
        for value, column in zip(test.tested, inputs_for(found.plan.schema.fields))
    ]
    is_unknown = kind is JoinKind.ANTI and any(each.type.is_nullable for each in equal)
    if is_unknown and (outer or len(equal) > 1):
        return _not_in_correlated(plan, found, outer, equal)
    return join(plan, found.plan, kind, conjunction([*equal, *outer]), null_aware=is_unknown)


def _not_in_correlated(
    plan: LogicalNode, found: Pulled, outer: Sequence[Rex], equal: Sequence[Rex]
) -> LogicalNode:
    """A row goes out if no row of the query is equal or may be: a null on either side may be."""
    maybe: list[Rex] = []
    for each in equal:
        unknown = [test_of("IS NULL", side) for side in each.operands if side.type.is_nullable]
        maybe.append(_any([each, *unknown]))
    return join(plan, found.plan, JoinKind.ANTI, conjunction([*outer, *maybe]))


def _any(parts: Sequence[Rex]) -> Rex:
    if len(parts) == 1:
        return parts[0]
    return RexCall(
        BooleanType(is_nullable=any(each.type.is_nullable for each in parts)),
        function="OR",
        arguments=tuple(parts),
    )


# -- values and tests within expressions -----------------------------------------------------------


@dataclass
class _Columns:
    """A relation that gets a column for each subquery of its expressions."""

    plan: LogicalNode
    context: RuleContext

    def replaced(self, rex: Rex) -> Rex:
        """The expression over these columns."""
        return rewritten(rex, lambda each: self._column(each) if _is_query(each) else each)

    def _column(self, rex: Rex) -> Rex:
        assert isinstance(rex, RexSubquery)
        rex = replace(rex, plan=_expanded(rex.query, self.context))
        if rex.kind == "SCALAR":
            return self._scalar(rex)
        if rex.kind == "EXISTS":
            return self._exists(rex)
        if rex.kind == "IN":
            return self._in(rex)
        return self._quantified(rex)

    def _scalar(self, rex: RexSubquery) -> Rex:
        query = rex.query
        if not _is_one_row(query):
            call = AggregateCall("SINGLE_VALUE", (0,), rex.type.with_nullable(True))
            query = aggregate(query, (), (call,), query.schema.names[:1])
        return self.row_of(query, rex.outer)[0]

    def row_of(self, query: LogicalNode, outer: Sequence[Rex]) -> list[Rex]:
        """The columns of a query that has one row for each row."""
        empty = _row_of_nothing(query)
        first = self._joined(query, outer, has_marker=empty is not None)
        values: list[Rex] = [input_of(self.plan, first + place) for place in range(query.width)]
        if empty is None:
            return values
        there = test_of("IS NOT NULL", input_of(self.plan, self.plan.width - 1))
        return [
            RexCall(value.type, function="CASE", arguments=(there, value, otherwise))
            for value, otherwise in zip(values, empty)
        ]

    def _joined(self, query: LogicalNode, outer: Sequence[Rex], has_marker: bool) -> int:
        """Joins the query; the number of its first column. A marker is true where the query has a
        row."""
        found = pulled(query)
        right = found.plan
        if has_marker:
            columns: list[Rex] = [*inputs_for(right.schema.fields), TRUE]
            right = project(right, columns, [*right.schema.names, "$there"])
        width = self.plan.width
        conditions = [over_both(each, outer, width) for each in found.conditions]
        self.plan = join(self.plan, right, JoinKind.LEFT, conjunction(conditions))
        return width

    def _exists(self, rex: RexSubquery) -> Rex:
        query = _without_columns(rex.query)
        if _is_one_row(query):
            return TRUE
        found = pulled(query)
        if not found.conditions:
            one = LogicalSort(found.plan.schema, found.plan, (), 0, 1)
            count = aggregate(one, (), (AggregateCall("COUNT", (), _BIG),), ("$count",))
            first = self._joined(count, (), has_marker=False)
            some = comparison(input_of(self.plan, first), RexLiteral(_BIG, value=0), ">")
            return test_of("IS TRUE", some)  # in a stream there is no count before the first row
        return self._marked(found, rex.outer, ())

    def _marked(self, found: Pulled, outer: Sequence[Rex], tested: Sequence[Rex]) -> Rex:
        """Whether a row of the query meets the conditions: its rows are made distinct in what is
        compared, so that each row meets at most one."""
        compared = []
        for each in found.conditions:
            if not is_call(each, "=") or not any(
                isinstance(side, RexInput) for side in each.operands
            ):
                raise ValidationError(
                    "This correlated subquery is not supported within a larger expression; make "
                    "it a condition of its own (with AND), or compare by '=' only",
                    span=each.span,
                )
            compared += [side.index for side in each.operands if isinstance(side, RexInput)]
        kept = list(dict.fromkeys([*range(len(tested)), *compared]))
        columns: list[Rex] = [input_of(found.plan, index) for index in kept]
        names = [found.plan.schema.names[index] for index in kept]
        keys = aggregate(project(found.plan, columns, names), range(len(kept)), (), ())
        right = project(keys, [*inputs_for(keys.schema.fields), TRUE], [*names, "$there"])
        width = self.plan.width
        places: list[Rex] = [
            RexInput(field.type, index=kept.index(index) if index in kept else 0)
            for index, field in enumerate(found.plan.schema.fields)
        ]
        conditions = [
            over_both(replaced_inputs(each, places), outer, width) for each in found.conditions
        ]
        conditions += [
            comparison(value, RexInput(right.schema.fields[place].type, index=width + place))
            for place, value in enumerate(tested)
        ]
        self.plan = join(self.plan, right, JoinKind.LEFT, conjunction(conditions))
        return test_of("IS NOT NULL", input_of(self.plan, self.plan.width - 1))

    def _in(self, rex: RexSubquery) -> Rex:
        found = pulled(rex.query)
        is_found = self._marked(found, rex.outer, rex.tested)
        if not rex.type.is_nullable:
            return is_found
        if found.conditions or len(rex.tested) > 1:
            raise ValidationError(
                "IN with a correlated subquery, or of several columns, whose values may be null is "
                "not supported within a larger expression; make it a condition of its own",
                span=rex.span,
            )
        calls = (AggregateCall("COUNT", (), _BIG), AggregateCall("COUNT", (0,), _BIG))
        counts = aggregate(found.plan, (), calls, ("$rows", "$values"))
        first = self._joined(counts, (), has_marker=False)
        rows, values = (input_of(self.plan, first + place) for place in (0, 1))
        none = _any([test_of("IS NULL", rows), comparison(rows, RexLiteral(_BIG, value=0))])
        unknown = _any([test_of("IS NULL", rex.tested[0]), comparison(values, rows, "<")])
        null = RexLiteral(BooleanType(), value=None)
        return RexCall(
            BooleanType(),
            function="CASE",
            arguments=(is_found, TRUE, none, FALSE, unknown, null, FALSE),
        )

    def _quantified(self, rex: RexSubquery) -> Rex:
        """``x < ALL`` is a comparison with the least value, and so on; of nothing, ALL is true and
        ANY false; a null among the values leaves the answer open."""
        operator, quantifier = rex.kind.split()
        is_all = quantifier == "ALL"
        if operator in ("=", "<>"):
            raise ValidationError(
                f"{rex.kind} is not supported; write IN or NOT IN, or join", span=rex.span
            )
        least = (operator in ("<", "<=")) == is_all
        type = rex.query.schema.fields[0].type.with_nullable(True)
        calls = (
            AggregateCall("MIN" if least else "MAX", (0,), type),
            AggregateCall("COUNT", (), _BIG),
            AggregateCall("COUNT", (0,), _BIG),
        )
        query = aggregate(rex.query, (), calls, ("$extreme", "$rows", "$values"))
        first = self._joined(query, rex.outer, has_marker=False)
        extreme, rows, values = (input_of(self.plan, first + place) for place in range(3))
        zero = RexLiteral(_BIG, value=0)
        of_nothing, decided = (TRUE, FALSE) if is_all else (FALSE, TRUE)
        none = _any([test_of("IS NULL", rows), comparison(rows, zero)])
        holds = comparison(rex.tested[0], extreme, operator)
        is_decided = test_of("IS NOT TRUE", holds) if is_all else test_of("IS TRUE", holds)
        known = conjunction(
            [test_of("IS NOT NULL", rex.tested[0]), test_of("IS NOT NULL", extreme), is_decided]
        )
        assert known is not None
        unknown = _any([test_of("IS NULL", rex.tested[0]), comparison(values, rows, "<")])
        null = RexLiteral(BooleanType(), value=None)
        return RexCall(
            BooleanType(),
            function="CASE",
            arguments=(none, of_nothing, known, decided, unknown, null, of_nothing),
        )


def _is_query(rex: Rex) -> bool:
    return isinstance(rex, RexSubquery)


def _is_one_row(query: LogicalNode) -> bool:
    """Whether it has one row, whatever is in its tables."""
    while isinstance(query, LogicalProject):
        query = query.input
    if isinstance(query, LogicalSort) and query.limit is None and not query.offset:
        return _is_one_row(query.input)
    if isinstance(query, LogicalAggregate):
        return not query.keys and query.grouping_sets is None
    return isinstance(query, LogicalValues) and len(query.rows) == 1


def _row_of_nothing(query: LogicalNode) -> list[Rex] | None:
    """What a query of one row gives where it has none, if that is more than nulls: COUNT is 0 where
    no row meets the outer one, and in a stream before the first row."""
    node = query
    path: list[LogicalProject] = []
    while isinstance(node, (LogicalProject, LogicalSort)):
        if isinstance(node, LogicalProject):
            path.append(node)
        node = node.input
    if not isinstance(node, LogicalAggregate) or not any(
        each.function in ("COUNT", "SUM0") for each in node.calls
    ):
        return None
    columns: list[Rex] = [
        RexLiteral(_BIG, value=0)
        if each.function in ("COUNT", "SUM0")
        else RexLiteral(each.type.with_nullable(True), value=None)
        for each in node.calls
    ]
    for each in reversed(path):
        columns = [replaced_inputs(rex, columns) for rex in each.projections]
    return columns


SUBQUERY_RULES = (subqueries_in_filter, subqueries_in_project, subqueries_in_join, apply_as_join)
