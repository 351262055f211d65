"""From an optimal plan to one that runs as a stream: its operators, and the kinds of rows that each
gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flinkpy.sql.changes.changes_of_plans import ChangeOptions, with_changes
from flinkpy.sql.changes.lasting_values import values_that_do_not_last
from flinkpy.sql.logical.logical_nodes import LogicalNode
from flinkpy.sql.physical.mini_batches import with_mini_batches
from flinkpy.sql.physical.physical_nodes import PhysicalNode
from flinkpy.sql.physical.physical_planner import collected
from flinkpy.sql.physical.streaming_options import StreamingOptions
from flinkpy.sql.physical.streaming_planner import StreamingPlanner
from flinkpy.sql.plans.physical_text import physical_line
from flinkpy.sql.rules.rule_phases import RuleContext
from flinkpy.sql.sql_errors import ValidationError


@dataclass(frozen=True)
class StreamingPlan:
    """``warnings`` say what may make its results wrong."""

    root: PhysicalNode
    warnings: tuple[str, ...]


def streaming_plan(
    optimal: LogicalNode, options: Mapping[str, str], rules: RuleContext, is_query: bool
) -> StreamingPlan:
    """The plan of a query, whose rows are collected, or of an INSERT. Raises ValidationError for
    what a stream cannot do, and for a warning if the session's options say so."""
    streaming = StreamingOptions.of(options)
    physical = StreamingPlanner(streaming).plan(optimal)
    if streaming.mini_batch is not None:
        physical = with_mini_batches(physical, streaming.mini_batch)
    if is_query:
        physical = collected(physical)
    materialize = options.get("table.exec.sink.upsert-materialize", "auto").lower()
    physical = with_changes(physical, ChangeOptions(materialize), physical_line)
    problems = values_that_do_not_last(physical, rules.is_deterministic)
    strategy = options.get("table.optimizer.non-deterministic-update.strategy", "ignore")
    if problems and strategy.lower() == "try_resolve":
        raise ValidationError(problems[0])
    return StreamingPlan(physical, tuple(problems))
