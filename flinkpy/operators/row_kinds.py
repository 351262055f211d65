"""The rule for columns whose rows have kinds: an operator or sink takes those that it says it
takes, and refuses others. Rows carry their kind in the Row, so functions of rows see it."""

from __future__ import annotations

from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.common.types import RowKind
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import ProgramError


def check_kinds(batch: Batch, takes: ChangelogMode, name: str) -> None:
    """Raises ProgramError if the columns have a row of a kind that the operator of this name does
    not take. Nearly every batch has inserts only, and is not looked at."""
    if type(batch) is not ColumnBatch or batch.kinds is None:
        return
    refused = [kind for kind in RowKind if not takes.contains(kind) and kind.value in batch.kinds]
    if refused:
        raise ProgramError(
            f"operator {name!r} takes rows of the kinds {takes}, and got one of kind "
            f"{refused[0]}: it would count as one more record, or its kind would be lost. Choose "
            "the rows before, in a function of rows that reads row.get_row_kind()"
        )
