"""Event time: how records get timestamps, and what is known about timestamps while the program is
built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.datastream.checks import check_strategy, located, refuse
from flinkpy.datastream.streams.recorded import ColumnStream, RecordedStream
from flinkpy.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SourceTransformation,
    Transformation,
    UnionTransformation,
)

if TYPE_CHECKING:
    from flinkpy.operators.event_time.watermarks import TimestampsAndWatermarksOperator


def assign_timestamps(stream: RecordedStream, watermark_strategy: object) -> RecordedStream:
    """Implements ``assign_timestamps_and_watermarks``."""
    from flinkpy.operators.event_time.timestamps import is_expression
    from flinkpy.operators.event_time.watermarks import TimestampsAndWatermarksOperator

    strategy = check_strategy(watermark_strategy, "assign_timestamps_and_watermarks()")
    if is_expression(strategy.timestamp_assigner):
        stream = stream.as_columns("an expression as timestamp assigner")
    operator = TimestampsAndWatermarksOperator(strategy)
    with located():
        operator.check(
            stream.schema if isinstance(stream, ColumnStream) else None, stream.is_columnar
        )
    apply = stream.apply_columns if stream.is_columnar else stream.apply
    return apply("Timestamps/Watermarks", operator, stream.output_type)


def refuse_unstamped(streams: dict[str, RecordedStream], need: str, advice: str) -> None:
    """Refuses streams whose records certainly have no timestamps."""
    for name, stream in streams.items():
        if lacks_timestamps(stream.transformation):
            raise refuse(
                f"{need} records with timestamps, and those of the {name} stream have none: "
                f"call assign_timestamps_and_watermarks(...) {advice}"
            )


def lacks_timestamps(transformation: Transformation) -> bool:
    """Whether records certainly have no timestamps here: their source sets none, and no operator on
    the way assigns any."""
    if isinstance(transformation, SourceTransformation):
        return type(transformation.operator).__name__ == "SourceReaderOperator" and not getattr(
            transformation.source, "has_timestamps", True
        )
    if (
        isinstance(transformation, OneInputTransformation)
        and not transformation.operator.keeps_timestamps
    ):
        return False
    if not isinstance(
        transformation, (OneInputTransformation, PartitionTransformation, UnionTransformation)
    ):
        return False
    return all(map(lacks_timestamps, transformation.inputs))


def event_time_zone(transformation: Transformation) -> str | None:
    """The time zone of the column that event time was read from: UTC if streams of different zones
    meet, and None if one of them has no zone."""
    operator = getattr(transformation, "operator", None)
    stamping = getattr(operator, "stamping", operator)  # set by a source with a strategy
    if isinstance(stamping, _stamping_operator()):
        return stamping.zone
    zones = set(map(event_time_zone, transformation.inputs))
    if not zones or None in zones:
        return None
    return zones.pop() if len(zones) == 1 else "UTC"


def _stamping_operator() -> type[TimestampsAndWatermarksOperator]:
    from flinkpy.operators.event_time.watermarks import TimestampsAndWatermarksOperator

    return TimestampsAndWatermarksOperator
