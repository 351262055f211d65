"""EXPLAIN: the plan of a statement as text, and of the job that it would run."""

from __future__ import annotations

from collections.abc import Collection

from flinkpy.sql.plans.planner import Plan
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax import statements as sql
from flinkpy.table.session.submitted_plans import apart
from flinkpy.table.session.table_session import TableSession

JOB_PLAN = "JSON_EXECUTION_PLAN"


def explanation(
    session: TableSession, statement: sql.Statement, details: Collection[str] = ()
) -> str:
    """The sections of a query, an INSERT or a statement set. Raises ValidationError for another
    statement."""
    plans = plans_of(session, statement)
    text = "\n".join(plan.explain(details) for plan in plans)
    return f"{text}\n{_job_plan(session, plans)}" if JOB_PLAN in details else text


def plans_of(session: TableSession, statement: sql.Statement) -> list[Plan]:
    """The plans of one job."""
    if isinstance(statement, sql.QueryStatement):
        return [session.plan_of_query(statement.query)]
    if isinstance(statement, sql.CreateTable) and statement.query is not None:
        return [session.plan_of_query(statement.query)]
    if isinstance(statement, sql.Insert):
        return [session.plan_of_insert(statement)]
    if isinstance(statement, sql.StatementSetBlock):
        return [session.plan_of_insert(each) for each in statement.inserts]
    raise ValidationError(
        "EXPLAIN takes a query, an INSERT or a statement set", span=statement.span
    )


def _job_plan(session: TableSession, plans: Collection[Plan]) -> str:
    """The operators of the job as JSON, with their parallelism."""
    from flinkpy.connectors.discarding_sink import DiscardingSink

    with apart(session.env.program) as job:
        for plan in plans:
            stream = session.translated(plan)
            if stream is not None:
                stream.sink_to(DiscardingSink()).name("collect")
        job.separate()
        return f"== Physical Execution Plan ==\n{session.env.get_execution_plan()}\n"
