"""Planning as a whole: a query or an INSERT in, its plans out. Nothing here knows a clock, a
cluster or an array."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from flinkpy.sql.binding.binder import Binder
from flinkpy.sql.binding.binding_context import BindingContext
from flinkpy.sql.logical.logical_nodes import LogicalNode, LogicalSink
from flinkpy.sql.physical.batch_phases import with_phases
from flinkpy.sql.physical.physical_nodes import PhysicalNode
from flinkpy.sql.physical.physical_planner import batch_plan, collected
from flinkpy.sql.plans.node_ids import numbered
from flinkpy.sql.plans.shared_parts import with_shared_parts
from flinkpy.sql.rules.optimizer import optimized
from flinkpy.sql.rules.rule_phases import RuleContext
from flinkpy.sql.syntax.query_tree import Query
from flinkpy.sql.syntax.statements import Insert


@dataclass(frozen=True)
class Plan:
    """A statement, as it was bound and as it will run. ``warnings`` say what may make its results
    wrong."""

    logical: LogicalNode
    physical: PhysicalNode
    warnings: tuple[str, ...] = ()

    def explain(self, details: Collection[str] = ()) -> str:
        """Flink's three sections. Of the details, ESTIMATED_COST adds how many rows each relation
        may have, CHANGELOG_MODE the kinds of rows that each operator gives, and PLAN_ADVICE what
        would make the plan better."""
        from flinkpy.sql.plans.logical_text import logical_text
        from flinkpy.sql.plans.physical_text import execution_text, physical_text
        from flinkpy.sql.plans.plan_advice import advice_text

        advice = "PLAN_ADVICE" in details
        tree = logical_text(self.logical, with_rows="ESTIMATED_COST" in details)
        physical = physical_text(self.physical, with_kinds="CHANGELOG_MODE" in details)
        title = "Optimized Physical Plan With Advice" if advice else "Optimized Physical Plan"
        advised = f"\n\n{advice_text(self.physical, self.warnings)}" if advice else ""
        return (
            f"== Abstract Syntax Tree ==\n{tree}\n\n"
            f"== {title} ==\n{physical}{advised}\n\n"
            f"== Optimized Execution Plan ==\n{execution_text(self.physical)}\n"
        )


class Planner:
    """Plans statements. ``is_batch``: the session's runtime mode is BATCH."""

    def __init__(self, context: BindingContext, is_batch: bool = False) -> None:
        self._binder = Binder(context)
        self._rules = RuleContext(
            context.registry, is_batch, context.options.get("table.local-time-zone", "UTC")
        )
        self._options = options = context.options
        self._phases = options.get("table.optimizer.agg-phase-strategy", "auto").lower()

    def query(self, query: Query) -> Plan:
        """The plan of a query whose rows go to whoever asks: its root is a CollectNode."""
        return self._planned(self._binder.query(query))

    def insert(self, insert: Insert) -> Plan:
        """The plan of an INSERT: its root is a SinkNode."""
        return self._planned(self._binder.insert(insert))

    def logical(self, plan: LogicalNode) -> Plan:
        """The plan of a relation that was made otherwise."""
        return self._planned(plan)

    @property
    def binder(self) -> Binder:
        """Binds expressions and queries without planning them."""
        return self._binder

    def _planned(self, logical: LogicalNode) -> Plan:
        optimal = optimized(logical, self._rules)
        is_query = not isinstance(logical, LogicalSink)
        if self._rules.is_batch:
            physical = with_phases(batch_plan(optimal), self._phases)
            physical = with_shared_parts(physical, self._rules)
            return Plan(logical, numbered(collected(physical) if is_query else physical))
        from flinkpy.sql.plans.streaming_plans import streaming_plan

        planned = streaming_plan(optimal, self._options, self._rules, is_query)
        return Plan(logical, numbered(planned.root), planned.warnings)
