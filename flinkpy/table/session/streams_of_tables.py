"""Tables as streams again: the time attribute of a table is the event time of its stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.common.logical_types.logical_type import RowType, TimeAttribute
from flinkpy.core.errors import ProgramError
from flinkpy.table.factories.taken_streams import with_times_of_column

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream


def with_event_times(stream: DataStream, row_type: RowType) -> DataStream:
    """The stream, whose rows have their time attribute as event time if there is one. Raises
    ProgramError if there are several."""
    times = [
        at
        for at, field in enumerate(row_type)
        if getattr(field.type, "time_attribute", None) is TimeAttribute.ROWTIME
    ]
    if not times:
        return stream
    if len(times) > 1:
        names = " and ".join(row_type.names[at] for at in times)
        raise ProgramError(
            f"{names} are time attributes, and a stream has one event time: CAST the others to "
            "TIMESTAMP(3), or leave them out"
        )
    return with_times_of_column(stream, times[0])
