"""Tables as streams again: the time attribute of a table is the event time of its stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.common.changelog_mode import INSERT_ONLY, ChangelogMode
from flinkpy.common.logical_types.logical_type import RowType, TimeAttribute
from flinkpy.core.errors import ProgramError
from flinkpy.sql.changes.refused_changes import kinds_text, maker_of_changes
from flinkpy.sql.physical.physical_nodes import PhysicalNode
from flinkpy.sql.plans.physical_text import physical_line
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.taken_streams import with_times_of_column

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream


def check_only_added(plan: PhysicalNode) -> None:
    """Raises ValidationError if rows of a plan change: a stream of rows has no place for that."""
    if plan.changes.is_insert_only:
        return
    kinds = ChangelogMode(plan.changes.kinds - INSERT_ONLY.kinds)
    [input] = plan.inputs  # of a CollectNode
    raise ValidationError(
        f"Table sink 'to_data_stream()' doesn't support consuming {kinds_text(kinds)} changes "
        f"which is produced by node {physical_line(maker_of_changes(input, kinds))}; "
        "to_changelog_stream() gives each row with its kind"
    )


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
