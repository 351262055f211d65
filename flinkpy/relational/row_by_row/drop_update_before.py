"""DropUpdateBefore: for who finds the row that an update replaces by its key."""

from __future__ import annotations

import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.changed_rows import BEFORE
from flinkpy.relational.relational_operator import RelationalOperator


class DropUpdateBeforeOperator(RelationalOperator):
    """Passes on all rows but those before an update."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES
    emits_changes = ChangelogMode.upsert()

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        if batch.kinds is None:
            return batch
        stays = batch.kinds != BEFORE
        return batch if stays.all() else batch.filter(pa.array(stays))
