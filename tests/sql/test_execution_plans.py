"""The section of EXPLAIN that says what a job runs: what several operators read is shown once, and
aggregates of BATCH have the phases that a session asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flinkpy.sql.parsing import parse_statement
from flinkpy.sql.plans.planner import Planner
from flinkpy.sql.syntax.statements import QueryStatement
from tests.sql.planning import Session, session_of

SESSION = session_of("CREATE TABLE t (k BIGINT, v BIGINT) WITH ('connector' = 'values')", True)


def shown(session: Session, text: str, **options: str) -> str:
    statement = parse_statement(text)
    assert isinstance(statement, QueryStatement)
    context = replace(session.context, options=options)
    plan = Planner(context, is_batch=True).query(statement.query)
    return plan.explain().partition("== Optimized Execution Plan ==\n")[2]


def test_a_part_that_two_operators_read_is_shown_where_the_first_one_reads_it() -> None:
    """As in Flink; ids are given in the order in which second readers are met."""
    sums = "SELECT k, SUM(v) AS s FROM t GROUP BY k"
    plan = shown(SESSION, f"WITH x AS ({sums}) SELECT * FROM x a JOIN x b ON a.k = b.s")
    lines = [line.strip(" :+-") for line in plan.splitlines()]
    assert lines[-1] == "Reused(reference_id=[1])"
    [marked] = [line for line in lines if "(reuse_id=[1])" in line]
    assert marked.startswith(("HashAggregate(", "Calc("))
    assert sum(line.startswith("TableSourceScan") for line in lines) == 1


@pytest.mark.parametrize(
    ("strategy", "names"),
    [
        ("ONE_PHASE", ["HashAggregate", "Exchange", "TableSourceScan"]),
        ("TWO_PHASE", ["HashAggregate", "Exchange", "LocalHashAggregate", "TableSourceScan"]),
    ],
)
def test_aggregates_have_the_phases_that_a_session_asks_for(
    strategy: str, names: list[str]
) -> None:
    options = {"table.optimizer.agg-phase-strategy": strategy}
    plan = shown(SESSION, "SELECT k, SUM(v) FROM t GROUP BY k", **options)
    found = [line.strip(" :+-").partition("(")[0] for line in plan.splitlines()]
    assert [name for name in found if name in names] == names
    assert ("LocalHashAggregate" in found) is (strategy == "TWO_PHASE")
    whole = shown(SESSION, "SELECT COUNT(DISTINCT v) FROM t", **options)
    assert "LocalHashAggregate" not in whole
