"""The program that plans become part of: the streams of the nodes that were translated, and how the
operator of a node is put behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.core.clock import SYSTEM_CLOCK, StoppedClock
from flinkpy.core.options.engine import RUNTIME_MODE, RuntimeMode
from flinkpy.core.options.schema import read
from flinkpy.datastream.streams.recorded import ColumnStream, apply_two_columns, copy_place
from flinkpy.graph.partitioning import KeySpec
from flinkpy.relational.functions.async_limits import AsyncLimits
from flinkpy.sql.functions.function_port import FunctionRegistry
from flinkpy.sql.physical.physical_nodes import (
    Exchange,
    OneInputNode,
    PhysicalNode,
    TableScan,
    TwoInputNode,
)
from flinkpy.sql.rex.rex_nodes import Rex
from flinkpy.sql.rex.rex_programs import program_of
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.factory_port import TableFactories
from flinkpy.table.translation.operator_names import operator_name
from flinkpy.table.translation.rows_for_sinks import SinkRules

if TYPE_CHECKING:
    from flinkpy.columns.sql.calc_program import CalcProgram
    from flinkpy.datastream import StreamExecutionEnvironment
    from flinkpy.graph.operator_port import ColumnarJoin, ColumnarOperator


@dataclass(frozen=True)
class TranslationRules:
    """What the options of a session say of its plans. ``idle_timeout`` is that of splits which give
    no rows. With ``gives_uids`` operators have the uids of their nodes, as a compiled plan wants
    them."""

    zone: str = "UTC"
    sinks: SinkRules = field(default_factory=SinkRules)
    idle_timeout: timedelta | None = None
    gives_uids: bool = False
    async_limits: AsyncLimits = field(default_factory=AsyncLimits)
    lookup_limits: AsyncLimits = field(default_factory=lambda: AsyncLimits(most_at_once=100))


class TranslationContext:
    """What the translation of a node gets: streams of its inputs, and what its program knows."""

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        factories: TableFactories,
        registry: FunctionRegistry,
        rules: TranslationRules,
    ) -> None:
        self.env = env
        self.factories = factories
        self.registry = registry
        self.rules = rules
        self.is_batch = read(env.program.values, RUNTIME_MODE) is RuntimeMode.BATCH
        # all rows of a query in BATCH have the same CURRENT_DATE
        self._clock = StoppedClock(SYSTEM_CLOCK.time_ms()) if self.is_batch else SYSTEM_CLOCK
        # by id(node), which is kept so that no other gets its id
        self._streams: dict[int, tuple[PhysicalNode, ColumnStream]] = {}
        self._scans: list[tuple[TableScan, ColumnStream]] = []  # of plans before

    # -- streams of nodes --------------------------------------------------------------------------

    def is_translated(self, node: PhysicalNode) -> bool:
        """Whether the node has a stream: several others may read it."""
        return id(node) in self._streams

    def keep(self, node: PhysicalNode, stream: ColumnStream) -> None:
        """Keeps the stream of a node's rows."""
        self._streams[id(node)] = node, stream

    def stream_of(self, node: PhysicalNode) -> ColumnStream:
        """The stream of a node that was translated, as the inputs of a node are before it."""
        return self._streams[id(node)][1]

    def share_scans(self) -> None:
        """From now on, who reads the same columns of a table as a plan before reads its stream. Not
        in BATCH: two joins that each read first what the other reads last would wait for each
        other."""
        if not self.is_batch:
            known = self._streams.values()
            self._scans = [(node, of) for node, of in known if isinstance(node, TableScan)]

    def shared_scan(self, node: TableScan) -> ColumnStream | None:
        """The stream of a plan before that reads the same columns."""
        for scan, before in self._scans:
            if replace(scan, id=node.id) == node:
                return before
        return None

    # -- operators ---------------------------------------------------------------------------------

    def program(
        self, projections: Sequence[Rex], condition: Rex | None, names: Sequence[str]
    ) -> CalcProgram:
        """The expressions as an operator runs them; ``names`` are those of its input's columns."""
        return program_of(
            projections,
            condition,
            self.registry,
            names=names,
            zone=self.rules.zone,
            clock=self._clock,
        )

    def applied(
        self, node: OneInputNode, operator: ColumnarOperator, key: KeySpec | None = None
    ) -> ColumnStream:
        """The operator of a node behind its input."""
        from flinkpy.relational.relational_operator import BlockingOperator

        input = self.stream_of(node.input)
        if isinstance(operator, BlockingOperator) and not self.is_batch:
            raise ValidationError(
                f"{operator_name(node)} cannot run in STREAMING yet; set 'execution.runtime-mode' "
                "to BATCH if all inputs end"
            )
        stream = input.apply_columns(operator_name(node), operator, key=key)
        return self._placed(node, stream)

    def behind(
        self, node: OneInputNode, stream: ColumnStream, operator: ColumnarOperator
    ) -> ColumnStream:
        """The last operator of a node that has several, behind the others."""
        made = stream.apply_columns(operator_name(node), operator)
        return self._placed(node, made)

    def applied_to_two(
        self,
        node: TwoInputNode,
        operator: ColumnarJoin,
        left: KeySpec | None = None,
        right: KeySpec | None = None,
    ) -> ColumnStream:
        """The operator of a node behind its two inputs."""
        inputs = self.stream_of(node.left), self.stream_of(node.right)
        stream = apply_two_columns(operator_name(node), operator, *inputs, left, right)
        return self._placed(node, stream)

    def _placed(self, node: PhysicalNode, stream: ColumnStream) -> ColumnStream:
        """Says how parallel the operator runs: behind an exchange without keys alone, behind
        another one as the program sets it, and else as its input."""
        exchanges = [each for each in node.inputs if isinstance(each, Exchange)]
        if any(not each.keys and not each.is_broadcast for each in exchanges):
            stream.make_non_parallel()
        elif not exchanges:
            copy_place(stream.transformation.inputs[0], stream.transformation)
        if self.rules.gives_uids:
            stream.transformation.uid = f"{node.id}_{type(node).__name__}"
        return stream


Translation: TypeAlias = Callable[[Any, TranslationContext], ColumnStream]
"""Translates a node of its class; the inputs of the node are translated."""

Family: TypeAlias = Mapping[type[PhysicalNode], Translation]
