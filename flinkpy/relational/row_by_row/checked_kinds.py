"""Rows of kinds that were declared, on their way into a table."""

from __future__ import annotations

import pyarrow as pa

from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.relational_operator import RelationalOperator


class CheckedKinds(RelationalOperator):
    """The same rows. One of another kind than the mode has fails."""

    keeps_nothing = True

    def __init__(self, mode: ChangelogMode, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.takes_changes = mode

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        return batch
