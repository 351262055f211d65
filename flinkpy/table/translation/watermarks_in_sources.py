"""Where a table has a source of its own, its watermark is computed there: a subtask that reads
several splits has a watermark for each, and the lowest counts. Behind the source nobody knows any
more which split a row is from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from flinkpy.columns.expression import Column
from flinkpy.columns.sql.calc_program import CalcProgram
from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.connectors.source_api.source_operator import SourceReaderOperator
from flinkpy.connectors.source_api.timestamped_source import TimestampedSourceOperator
from flinkpy.graph.transformations import OneInputTransformation, SourceTransformation
from flinkpy.operators.columnar.column_operators import MapBatchesOperator, SelectColumnsOperator
from flinkpy.relational.windows.watermarks_of_splits import WatermarkOfTable
from flinkpy.sql.physical.physical_nodes import Calc, PhysicalNode, TableScan, WatermarkAssigner
from flinkpy.sql.rex.rex_nodes import Rex
from flinkpy.sql.rules.conditions import replaced_inputs

if TYPE_CHECKING:
    import pyarrow as pa

    from flinkpy.datastream.streams.recorded import ColumnStream
    from flinkpy.graph.transformations import Transformation

_Decoder = Callable[["pa.RecordBatch"], "pa.RecordBatch"]


def put_into_source(
    node: WatermarkAssigner,
    stream_of: Callable[[PhysicalNode], ColumnStream],
    program_of: Callable[[Sequence[Rex], Rex | None, Sequence[str]], CalcProgram],
    idle_timeout: timedelta | None,
) -> bool:
    """Whether the source below has the watermark of this node now.

    It does not get it if its batches are not those of the scan, such as lines that become rows
    behind it; nor if one watermark is as good, for the source reads one split after the other and
    is never idle: there, columns that the watermark needs would be computed twice for nothing."""
    scan = _over_scan(node.input, node.strategy)
    found = None if scan is None else _source_of(stream_of(scan[0]).transformation)
    if scan is None or found is None:
        return False
    source, decoders = found
    operator = source.operator
    if isinstance(operator, TimestampedSourceOperator):  # a table that is read twice has it
        return isinstance(operator.stamping.strategy.generator, WatermarkOfTable)
    if type(operator) is not SourceReaderOperator or not operator.is_columnar:
        return False
    if not operator.source.interleaves_splits and idle_timeout is None:
        return False
    names = scan[0].schema.names
    strategy = program_of((scan[1],), None, names)
    made = WatermarkStrategy.for_generator(WatermarkOfTable(strategy, tuple(names), decoders))
    with_idleness = replace(made, idle_timeout=idle_timeout)
    source.operator = TimestampedSourceOperator(operator.source, with_idleness)
    return True


def _over_scan(node: PhysicalNode, strategy: Rex) -> tuple[TableScan, Rex] | None:
    """The scan that a watermark lies over, perhaps with computed columns between, and the
    watermark over the columns of the scan; None if something else lies between."""
    while isinstance(node, Calc) and node.condition is None:
        strategy = replaced_inputs(strategy, node.projections)
        node = node.input
    if not isinstance(node, TableScan) or node.table.options.get("connector") == "held":
        return None  # what the program holds may have other readers, without watermarks
    return node, strategy


def _source_of(scan: Transformation) -> tuple[SourceTransformation, tuple[_Decoder, ...]] | None:
    """The source, and what makes the columns of the scan from its batches."""
    decoders: list[_Decoder] = []
    while isinstance(scan, OneInputTransformation):
        operator = scan.operator
        if type(operator) is MapBatchesOperator and operator.batch_format == "arrow":
            decoders.insert(0, operator.function)
        elif not _only_chooses(operator):
            return None
        scan = scan.input
    return (scan, tuple(decoders)) if type(scan) is SourceTransformation else None


def _only_chooses(operator: object) -> bool:
    """Whether each of its columns is one of its input, by the same name."""
    return type(operator) is SelectColumnsOperator and all(
        isinstance(of, Column) and of.column == name for name, of in operator.expressions
    )
