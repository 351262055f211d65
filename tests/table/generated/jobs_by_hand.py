"""Runs the operators of a query's plan in one thread, one subtask each, over a clock that the test
moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from flinkpy.core.elements import ColumnBatch
from flinkpy.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from flinkpy.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    Transformation,
    TwoInputTransformation,
)
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.physical.physical_nodes import LookupJoin, SinkNode, TableScan
from flinkpy.sql.plans.planner import Planner
from flinkpy.table.translation.node_schemas import schema_of
from flinkpy.table.translation.plan_translator import PlanTranslator
from tests.operators.harness import ChainHarness, linear
from tests.sql.planning import Session, parsed_query

Row = tuple[Any, ...]
Change = tuple[int, Row]  # 0 comes, 1 and 2 are an update, 3 goes
INSERT = 0


@dataclass
class PushedTables:
    """The tables of a query, whose rows the test pushes; one may be read several times."""

    scans: list[tuple[str, pa.Schema, Transformation]] = field(default_factory=list)

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        schema = schema_of(node.schema)
        stream = env.from_arrow(schema.empty_table())
        self.scans.append((node.path.name, schema, stream.recorded.transformation))
        return stream

    def lookup(self, node: LookupJoin) -> Any:
        raise AssertionError("no table is looked up")

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        raise AssertionError("the statement is a query")


@dataclass
class _Part:
    """An operator, and who reads it: parts, and through which input."""

    harness: ChainHarness | None = None
    readers: list[tuple[_Part, int]] = field(default_factory=list)
    given: list[Change] = field(default_factory=list)

    def push(self, batch: ColumnBatch, index: int) -> None:
        assert self.harness is not None
        self.harness.chain.batch_inputs()[index](batch)
        self.harness.settle()
        writer = self.harness.writers[0]
        elements, writer.elements = writer.elements, []
        for each in elements:
            if isinstance(each, ColumnBatch):
                self.emit(each)

    def emit(self, batch: ColumnBatch) -> None:
        for reader, index in self.readers:
            reader.push(batch, index)
        if not self.readers:
            kinds = [INSERT] * len(batch) if batch.kinds is None else batch.kinds.tolist()
            self.given += zip(kinds, zip(*(each.to_pylist() for each in batch.data.columns)))


class JobByHand:
    """A query of STREAMING; its tables take rows of Python values."""

    def __init__(self, session: Session, text: str, options: Mapping[str, str]) -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
        planner = Planner(replace(session.context, options=options), is_batch=False)
        plan = planner.query(parsed_query(text)).physical
        self._tables = PushedTables()
        stream = PlanTranslator(env, self._tables, built_in_functions()).translated(plan)
        assert stream is not None
        self._parts: dict[int, _Part] = {}
        self._root = self._part(stream.recorded.transformation)

    def _part(self, node: Transformation) -> _Part:
        if isinstance(node, PartitionTransformation):
            return self._part(node.input)
        if node.id in self._parts:
            return self._parts[node.id]
        part = self._parts[node.id] = _Part()
        if isinstance(node, OneInputTransformation):
            part.harness = ChainHarness(linear(node.operator))  # type: ignore[arg-type]
            self._part(node.input).readers.append((part, 0))
        elif isinstance(node, TwoInputTransformation):
            part.harness = ChainHarness(linear(node.operator, inputs=2))  # type: ignore[arg-type]
            for index, input in enumerate(node.inputs):
                self._part(input).readers.append((part, index))
        return part

    def push(self, table: str, names: Sequence[str], rows: Sequence[Row]) -> list[Change]:
        """What comes of rows of a table."""
        for name, schema, transformation in self._tables.scans:
            if name != table:
                continue
            columns = dict(zip(names, zip(*rows)))
            arrays = [pa.array(columns[each.name], each.type) for each in schema]
            data = pa.RecordBatch.from_arrays(arrays, schema=schema)
            self._part(transformation).emit(ColumnBatch(data))
        given, self._root.given = self._root.given, []
        return given

    def wait(self, seconds: float) -> None:
        """The clock goes on."""
        for part in self._parts.values():
            if part.harness is not None:
                part.harness.timers.advance(seconds)
                part.harness.settle()
