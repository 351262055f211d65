"""Runs the operators of a statement in one thread, over a clock that the test moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.common.types import RowKind
from flinkpy.core.elements import MAX_TIMESTAMP, ColumnBatch, Watermark
from flinkpy.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from flinkpy.graph.transformations import OneInputTransformation, PartitionTransformation
from flinkpy.operators.base import StreamOperator
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.physical.physical_nodes import LookupJoin, SinkNode, TableScan
from flinkpy.table.translation.node_schemas import schema_of
from flinkpy.table.translation.plan_translator import PlanTranslator
from flinkpy.table.translation.translation_context import TranslationRules
from tests.operators.harness import ChainHarness, linear
from tests.sql.planning import Session


@dataclass
class OneTable:
    """The statement's table: its rows are pushed by the test."""

    schema: Any = None

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        self.schema = schema_of(node.schema)
        return env.from_arrow(self.schema.empty_table())

    def lookup(self, node: LookupJoin) -> Any:
        raise AssertionError("no table is looked up")

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        raise AssertionError("the statement is a query")


@dataclass
class StatementByHand:
    """A query of STREAMING over one table, as a chain; kinds of what is given are left out."""

    session: Session
    text: str
    zone: str = "UTC"
    table: OneTable = field(default_factory=OneTable)

    def __post_init__(self) -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
        plan = self.session.plan(self.text).physical
        rules = TranslationRules(self.zone)
        translator = PlanTranslator(env, self.table, built_in_functions(), rules)
        stream = translator.translated(plan)
        assert stream is not None
        operators: list[StreamOperator] = []
        node = stream.recorded.transformation
        while isinstance(node, (OneInputTransformation, PartitionTransformation)):
            if isinstance(node, OneInputTransformation):
                operators.append(node.operator)  # type: ignore[arg-type]
            node = node.input
        self.harness = ChainHarness(linear(*reversed(operators)))

    @property
    def now(self) -> int:
        """What the clock shows, in milliseconds."""
        return self.harness.timers.now_ms()

    def push(self, kinds: Sequence[RowKind] = (), **columns: list[Any]) -> None:
        """Rows with these columns come now; what else the statement reads is null. Without
        ``kinds`` all are inserts."""
        [count] = {len(each) for each in columns.values()}
        nothing = [None] * count
        arrays = [pa.array(columns.get(f.name, nothing), f.type) for f in self.table.schema]
        data = pa.RecordBatch.from_arrays(arrays, schema=self.table.schema)
        values = np.array([each.value for each in kinds], np.int8) if kinds else None
        self.harness.chain.batch_inputs()[0](ColumnBatch(data, None, values))
        self.harness.settle()

    def wait(self, seconds: float) -> None:
        """The clock goes on."""
        self.harness.timers.advance(seconds)
        self.harness.settle()

    def end(self) -> None:
        """The input ends."""
        self.harness.control(Watermark(MAX_TIMESTAMP))

    @property
    def given(self) -> list[tuple[Any, ...]]:
        """The rows that have come out since the last look, with times as milliseconds."""
        elements, self.harness.writers[0].elements = self.harness.writers[0].elements, []
        batches = [each.data for each in elements if isinstance(each, ColumnBatch)]
        return [row for each in batches for row in zip(*map(_plain, each.columns))]


def _plain(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    values: list[Any] = column.to_pylist()
    return values
