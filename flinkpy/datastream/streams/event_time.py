"""What is known of a stream's event time while the program is built: whether its records can have timestamps, and in which zone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SourceTransformation,
    Transformation,
    UnionTransformation,
)

if TYPE_CHECKING:
    from flinkpy.operators.event_time.watermarks import TimestampsAndWatermarksOperator


def lacks_timestamps(transformation: Transformation) -> bool:
    """True where it is certain that records have no timestamps here: from a source that gives none, through operators that make none."""
    if isinstance(transformation, SourceTransformation):
        return type(transformation.operator).__name__ == "SourceReaderOperator" and not getattr(transformation.source, "has_timestamps", True)
    if isinstance(transformation, OneInputTransformation) and not transformation.operator.keeps_timestamps:
        return False
    if not isinstance(transformation, (OneInputTransformation, PartitionTransformation, UnionTransformation)):
        return False
    return all(map(lacks_timestamps, transformation.inputs))


def event_time_zone(transformation: Transformation) -> str | None:
    """The time zone of the column that event time was read from. Where streams with different ones meet it is UTC; None where one has none."""
    operator = getattr(transformation, "operator", None)
    stamping = getattr(operator, "stamping", operator)  # of a source with a strategy
    if isinstance(stamping, _stamping_operator()):
        return stamping.zone
    zones = set(map(event_time_zone, transformation.inputs))
    if not zones or None in zones:
        return None
    return zones.pop() if len(zones) == 1 else "UTC"


def _stamping_operator() -> type[TimestampsAndWatermarksOperator]:
    from flinkpy.operators.event_time.watermarks import TimestampsAndWatermarksOperator

    return TimestampsAndWatermarksOperator
