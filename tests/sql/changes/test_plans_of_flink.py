"""Which rows change, beside what Flink 2.3 says of the same statements."""

from __future__ import annotations

from flinkpy.sql.changes.modify_kinds import ModifyKinds
from flinkpy.sql.changes.refused_changes import Refusals
from flinkpy.sql.changes.update_kinds import with_update_kinds
from flinkpy.sql.logical.logical_nodes import LogicalNode
from flinkpy.sql.physical.physical_nodes import PhysicalNode, SinkNode
from flinkpy.sql.physical.streaming_options import StreamingOptions
from flinkpy.sql.physical.streaming_planner import StreamingPlanner
from flinkpy.sql.plans.physical_text import physical_line, physical_text
from flinkpy.sql.rules.optimizer import optimized
from flinkpy.sql.rules.rule_phases import RuleContext
from flinkpy.sql.sql_errors import SqlError
from tests.sql.changes.changing_tables import ChangingSession, changing_session
from tests.sql.changes.flink_plans import FlinkPlan, flink_plans, outline, plan_of


def test_rows_change_as_in_flink() -> None:
    differences = []
    for asked in flink_plans():
        found = _outline_of_ours(asked)
        wanted = [asked.problem] if asked.is_error else outline(asked.plan)
        if asked.is_error and found and found[0].startswith(asked.problem):
            found = wanted
        if (found == wanted) == bool(asked.differs):
            differences.append("\n  ".join([asked.statement, *wanted, "ours:", *found]))
    assert not differences, "\n".join(differences)


def _outline_of_ours(asked: FlinkPlan) -> list[str]:
    try:
        return outline(ours(asked))
    except SqlError as error:
        return [error.problem]


def ours(asked: FlinkPlan) -> str:
    """Our plan. Flink explains a query whose rows go to nobody without the rows before updates,
    where they can be left out; our plan is the one that runs."""
    plan = plan_of(asked)
    if isinstance(plan.physical, SinkNode):
        return physical_text(plan.physical, with_kinds=True)
    return physical_text(
        _without_reader(changing_session(asked.options), plan.logical), with_kinds=True
    )


def _without_reader(session: ChangingSession, logical: LogicalNode) -> PhysicalNode:
    duplicates = session.options.get("table.exec.source.cdc-events-duplicate") == "true"
    rules = RuleContext(session.context.registry, is_batch=False)
    planner = StreamingPlanner(StreamingOptions(has_duplicates=duplicates))
    kinds = ModifyKinds(Refusals(physical_line)).applied(planner.plan(optimized(logical, rules)))
    made = with_update_kinds(kinds, False) or with_update_kinds(kinds, True)
    assert made is not None
    return made
