"""Sources as the beginning of recorded streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.core.program.coroutines import refuse_coroutines
from flinkpy.datastream.checks import caller, located
from flinkpy.datastream.streams.recorded import ColumnStream, RecordedStream, RowStream
from flinkpy.datastream.streams.recorded_program import RecordedProgram
from flinkpy.graph.operator_port import Operator
from flinkpy.graph.transformations import SourceTransformation

if TYPE_CHECKING:
    import pyarrow as pa

    from flinkpy.connectors.source_api.source import Source


def read_source(
    program: RecordedProgram,
    source: Source[Any],
    name: str,
    type_info: TypeInformation | None = None,
    strategy: WatermarkStrategy | None = None,
) -> RecordedStream:
    """The stream of a source's records; columns if the source is columnar."""
    from flinkpy.connectors.source_api.source import Boundedness

    schema = getattr(source, "schema", None) if source.is_columnar else None
    operator = _source_operator(source, strategy, schema)
    made = _transformation(
        program,
        operator,
        source.without_data(),
        name,
        type_info,
        source.boundedness is Boundedness.BOUNDED,
    )
    return (
        ColumnStream(program, made, schema=schema)
        if source.is_columnar
        else RowStream(program, made)
    )


def read_function(
    program: RecordedProgram, operator: Operator, name: str, type_info: TypeInformation | None
) -> RowStream:
    """The unbounded stream of what a SourceFunction collects."""
    return RowStream(program, _transformation(program, operator, None, name, type_info, False))


def _transformation(
    program: RecordedProgram,
    operator: Operator,
    source: object,
    name: str,
    type_info: TypeInformation | None,
    is_bounded: bool,
) -> SourceTransformation:
    refuse_coroutines(operator, repr(name))
    return SourceTransformation(
        id=program.next_id(),
        name=name if name.startswith("Source: ") else f"Source: {name}",
        operator=operator,
        source=source,
        is_bounded=is_bounded,
        output_type=type_info,
        where=caller(),
    )


def _source_operator(
    source: Source[Any], strategy: WatermarkStrategy | None, schema: pa.Schema
) -> Any:
    from flinkpy.connectors.source_api.source_operator import SourceReaderOperator

    if strategy is None or strategy.does_nothing:
        return SourceReaderOperator(source)
    from flinkpy.connectors.source_api.timestamped_source import TimestampedSourceOperator

    operator = TimestampedSourceOperator(source, strategy)
    with located():
        operator.stamping.check(schema, source.is_columnar)
    return operator
