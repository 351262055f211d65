"""From a physical plan to streams of columns: each node becomes the transformation of an operator
of ``flinkpy.relational``, each exchange a partitioning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.datastream import DataStream
from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.sql.functions.function_port import FunctionRegistry
from flinkpy.sql.physical.physical_nodes import PhysicalNode, SinkNode
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.factory_port import TableFactories
from flinkpy.table.translation.node_families import translation_of
from flinkpy.table.translation.rows_for_sinks import rows_for_sink
from flinkpy.table.translation.translation_context import TranslationContext, TranslationRules

if TYPE_CHECKING:
    from flinkpy.datastream import StreamExecutionEnvironment


class PlanTranslator:
    """Translates the plans of one program. A node that several read becomes one stream."""

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        factories: TableFactories,
        registry: FunctionRegistry,
        rules: TranslationRules | None = None,
    ) -> None:
        self._context = TranslationContext(env, factories, registry, rules or TranslationRules())

    def translated(self, plan: PhysicalNode) -> DataStream | None:
        """The stream of the plan's rows; None if they go into a table."""
        if isinstance(plan, SinkNode):
            self.write(plan)
            return None
        return self.stream(plan)

    def stream(self, node: PhysicalNode) -> DataStream:
        """The stream of a node's rows, as columns."""
        return DataStream(self._context.env, self._of(node))

    def write(self, node: SinkNode) -> None:
        """Writes the rows of a sink's input into its table. Of several plans that read the same
        columns of a table in STREAMING, it is read once: so another INSERT beside it leaves the
        state of a job where it is."""
        context = self._context
        rules = context.rules
        rows = rows_for_sink(self._of(node.input), node, rules.sinks, gives_uids=rules.gives_uids)
        context.factories.sink(DataStream(context.env, rows), node)
        context.share_scans()

    def _of(self, node: PhysicalNode) -> ColumnStream:
        """The stream of a node, behind those of its inputs."""
        context = self._context
        if not context.is_translated(node):
            translate = translation_of(type(node))
            if translate is None:
                raise ValidationError(f"{type(node).__name__} cannot run yet")
            for input in node.inputs:
                self._of(input)
            context.keep(node, translate(node, context))
        return context.stream_of(node)
