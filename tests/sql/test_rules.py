"""Each rule of the optimizer by the plan before and after it."""

import pytest

from flinkpy.sql.parsing import parse_statement
from flinkpy.sql.plans.logical_text import logical_text
from flinkpy.sql.plans.physical_text import physical_text
from flinkpy.sql.plans.planner import Planner
from flinkpy.sql.rules.optimizer import optimized
from flinkpy.sql.rules.rule_phases import RuleContext
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.statements import QueryStatement
from tests.sql.planning import Session, table

_SESSION = Session(
    {
        "t": table("a INT, b BIGINT, c DOUBLE, s STRING, l ARRAY<INT>"),
        "u": table("a INT, e STRING, x BIGINT"),
        "big": table("a INT, b BIGINT, k INT"),
        "tiny": table("k INT, name STRING"),
    },
    rows={"t": 1_000, "u": 1_000, "big": 1_000_000, "tiny": 10},
)


def plans(query: str) -> tuple[str, str]:
    """The logical plan before and after the rules, without the names of the catalog."""
    statement = parse_statement(query)
    assert isinstance(statement, QueryStatement)
    bound = Planner(_SESSION.context, is_batch=True).binder.query(statement.query)
    after = optimized(bound, RuleContext(_SESSION.context.registry))
    return shown(logical_text(bound)), shown(logical_text(after))


def shown(text: str) -> str:
    text = text.replace("[default_catalog, default_database, ", "[")
    return "\n".join(line.lstrip(" :+-") for line in text.splitlines())


_RULES = {  # a query, a line of its plan, and what stands in the plan after the rules
    "constants are folded": (
        "SELECT a FROM t WHERE a > 1 + 2 * 3",
        "LogicalFilter(condition=[(a > (1 + (2 * 3)))])",
        "LogicalFilter(condition=[(a > 7)])",
    ),
    "a condition that is true goes": (
        "SELECT a FROM t WHERE 1 < 2",
        "LogicalFilter(condition=[(1 < 2)])",
        "LogicalTableScan(table=[[t]], fields=[a])",
    ),
    "a condition that is never true reads nothing": (
        "SELECT a FROM t WHERE a = 1 AND 1 > 2",
        "LogicalFilter(condition=[((a = 1) AND (1 > 2))])",
        "LogicalValues(tuples=[[]])",
    ),
    "common parts of alternatives stand in front": (
        "SELECT a FROM t WHERE (a = 1 AND b = 2) OR (a = 1 AND b = 3)",
        "LogicalFilter(condition=[(((a = 1) AND (b = 2)) OR ((a = 1) AND (b = 3)))])",
        "LogicalFilter(condition=[((a = 1) AND ((b = 2) OR (b = 3)))])",
    ),
    "a filter goes through a projection": (
        "SELECT * FROM (SELECT a + 1 AS n FROM t) AS q WHERE n > 5",
        "LogicalFilter(condition=[(n > 5)])",
        "LogicalFilter(condition=[((a + 1) > 5)])",
    ),
    "alternatives over both sides filter each of them": (
        "SELECT t.a FROM t JOIN u ON t.a = u.a AND (t.b = 1 AND u.x = 2 OR t.b = 3 AND u.x = 4)",
        "LogicalTableScan(table=[[u]], fields=[a, e, x])",
        "LogicalTableScan(table=[[u]], fields=[a, x], filter=[((x = 2) OR (x = 4))])",
    ),
    "a filter goes to the side of a join that it reads": (
        "SELECT t.a FROM t JOIN u ON t.a = u.a WHERE u.x = 3 AND t.b = 4",
        "LogicalFilter(condition=[((x = 3) AND (b = 4))])",
        "LogicalFilter(condition=[(x = 3)])",
    ),
    "a comma with a condition is a join": (
        "SELECT t.a FROM t, u WHERE t.a = u.a",
        "LogicalJoin(condition=[true], joinType=[inner])",
        "LogicalJoin(condition=[(a = a)], joinType=[inner])",
    ),
    "an outer join whose nulls are filtered is an inner one": (
        "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a WHERE u.x > 3",
        "LogicalJoin(condition=[(a = a)], joinType=[left])",
        "LogicalJoin(condition=[(a = a)], joinType=[inner])",
    ),
    "an outer join stays where nulls are asked for": (
        "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a WHERE u.x IS NULL",
        "LogicalJoin(condition=[(a = a)], joinType=[left])",
        "LogicalJoin(condition=[(a = a)], joinType=[left])",
    ),
    "a filter over keys goes before the aggregate": (
        "SELECT a, COUNT(*) FROM t GROUP BY a HAVING a > 3 AND COUNT(*) > 1",
        "LogicalFilter(condition=[((a > 3) AND (EXPR$0 > 1))])",
        "LogicalFilter(condition=[(a > 3)])",
    ),
    "a filter goes into all branches of a union": (
        "SELECT * FROM (SELECT a FROM t UNION ALL SELECT a FROM u) AS q WHERE a = 1",
        "LogicalFilter(condition=[(a = 1)])",
        "LogicalTableScan(table=[[u]], fields=[a], filter=[(a = 1)])",
    ),
    "a filter over the partition goes before OVER": (
        "SELECT a, b FROM t QUALIFY SUM(b) OVER (PARTITION BY a) > 3 AND a = 2",
        "LogicalFilter(condition=[((w0 > 3) AND (a = 2))])",
        "LogicalFilter(condition=[(a = 2)])",
    ),
    "EXISTS is a semi-join": (
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
        "LogicalFilter(condition=[EXISTS(query)])",
        "LogicalJoin(condition=[(a = a)], joinType=[semi])",
    ),
    "NOT IN is an anti-join that knows nulls": (
        "SELECT a FROM t WHERE a NOT IN (SELECT a FROM u)",
        "LogicalFilter(condition=[NOT(IN(a, query))])",
        "LogicalJoin(condition=[(a = a)], joinType=[anti], nullAware=[true])",
    ),
    "a correlated value has a group for each outer value": (
        "SELECT a, (SELECT MAX(x) FROM u WHERE u.a = t.a) FROM t",
        "LogicalProject(select=[a, SCALAR(query) AS EXPR$1])",
        "LogicalAggregate(group=[$c1], calls=[MAX(x) AS EXPR$0])",
    ),
    "a correlated COUNT is 0 where nothing is counted": (
        "SELECT (SELECT COUNT(*) FROM u WHERE u.a = t.a) FROM t",
        "LogicalProject(select=[SCALAR(query) AS EXPR$0])",
        "LogicalProject(select=[CASE($there IS NOT NULL, EXPR$0, 0) AS EXPR$0])",
    ),
    "a value of several rows is an error of the row": (
        "SELECT a FROM t WHERE b = (SELECT x FROM u)",
        "LogicalFilter(condition=[(b = SCALAR(query))])",
        "LogicalAggregate(group=[], calls=[SINGLE_VALUE(x) AS x])",
    ),
    "the first rows of LATERAL are a rank": (
        "SELECT t.a, q.x FROM t, LATERAL (SELECT x FROM u WHERE u.a = t.a ORDER BY x LIMIT 2) AS q",
        "LogicalCorrelate(outer=[a], joinType=[inner])",
        "LogicalRank(function=[ROW_NUMBER], range=[1, 2], partitionBy=[$c1], orderBy=[x ASC])",
    ),
    "a filter on ROW_NUMBER is a rank": (
        "SELECT a FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) <= 3",
        "LogicalFilter(condition=[(w0 <= 3)])",
        "LogicalRank(function=[ROW_NUMBER], range=[1, 3], partitionBy=[a], orderBy=[b DESC])",
    ),
    "UNION is a group of each row": (
        "SELECT a FROM t UNION SELECT a FROM u",
        "LogicalUnion(all=[false])",
        "LogicalAggregate(group=[a], calls=[])",
    ),
    "EXCEPT is an anti-join in which nulls are equal": (
        "SELECT a FROM t EXCEPT SELECT a FROM u",
        "LogicalMinus(all=[false])",
        "LogicalJoin(condition=[(a IS NOT DISTINCT FROM a)], joinType=[anti])",
    ),
    "keys that are computed become columns": (
        "SELECT t.a FROM t JOIN u ON t.a + 1 = u.a * 2",
        "LogicalJoin(condition=[((a + 1) = (a * 2))], joinType=[inner])",
        "LogicalJoin(condition=[($k0 = $k0)], joinType=[inner])",
    ),
    "a scan gives no more rows than are wanted": (
        "SELECT a + 1 AS n FROM t LIMIT 3 OFFSET 2",
        "LogicalSort(offset=[2], fetch=[3])",
        "LogicalTableScan(table=[[t]], fields=[a], limit=[5])",
    ),
    "a scan reads the columns and rows that are wanted": (
        "SELECT COUNT(*) FROM t WHERE b > 3",
        "LogicalTableScan(table=[[t]], fields=[a, b, c, s, l])",
        "LogicalTableScan(table=[[t]], fields=[b], filter=[(b > 3)])",
    ),
}


@pytest.mark.parametrize("rule", _RULES)
def test_a_rule_rewrites_the_plan(rule: str) -> None:
    query, before, after = _RULES[rule]
    bound, rewritten = plans(query)
    assert before in bound
    assert after in rewritten


def physical(query: str) -> str:
    return shown(physical_text(_SESSION.plan(query).physical))


def test_the_smaller_relations_are_joined_first_and_nothing_is_crossed() -> None:
    text = physical(
        "SELECT t.b FROM t, big, tiny WHERE big.a = t.a AND big.k = tiny.k AND tiny.name = 'x'"
    )
    assert "NestedLoopJoin" not in text
    assert text.index("(a = a)") < text.index("(k = k)")  # the join with `tiny` is below


def test_the_smaller_side_is_built() -> None:
    assert "build=[left]" in physical("SELECT big.b FROM tiny JOIN big ON tiny.k = big.k")
    assert "build=[right]" in physical("SELECT big.b FROM big JOIN tiny ON tiny.k = big.k")


def test_aggregates_of_few_groups_have_two_phases_unless_they_are_distinct() -> None:
    assert "LocalHashAggregate(groupBy=[s]" in physical("SELECT s, SUM(b) FROM t GROUP BY s")
    assert "Local" not in physical("SELECT s, COUNT(DISTINCT b) FROM t GROUP BY s")
    assert "Local" not in physical("SELECT a, SUM(b) FROM big GROUP BY a")  # a million groups


def test_the_first_rows_are_sorted_where_they_are() -> None:
    text = physical("SELECT a FROM t ORDER BY a LIMIT 3")
    assert text.count("SortLimit(orderBy=[a ASC], fetch=[3])") == 2


def test_grouping_sets_repeat_rows_once_for_each_set() -> None:
    assert "Expand(projects=[3]" in physical("SELECT a, s, COUNT(*) FROM t GROUP BY ROLLUP (a, s)")


def test_a_subquery_that_cannot_be_a_join_says_which_form_can() -> None:
    with pytest.raises(ValidationError, match="compare columns of the subquery"):
        _SESSION.plan("SELECT (SELECT COUNT(*) FROM u WHERE u.a < t.a) FROM t")


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {' + '.join(['a'] * 2_000)} AS n FROM t",
        f"SELECT a FROM t WHERE {' OR '.join(f'(a = {i} AND b = {i})' for i in range(500))}",
        " UNION ALL ".join(["SELECT a FROM t"] * 200),
        f"SELECT a FROM {'(SELECT a FROM ' * 40}t{') AS q' * 40}",
    ],
    ids=["sum", "alternatives", "union", "nested"],
)
def test_long_statements_meet_no_limit(query: str) -> None:
    assert "TableSourceScan" in _SESSION.plan(query).explain()
