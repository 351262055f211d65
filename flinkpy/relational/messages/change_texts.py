"""Lines of text that tell changes become rows with kinds, and back."""

from __future__ import annotations

import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY
from flinkpy.core.elements import ColumnBatch
from flinkpy.formats.port import ChangelogDecoder, ChangelogEncoder
from flinkpy.relational.relational_operator import RelationalOperator, plain

LINE = pa.schema([("line", pa.string())])


class ChangesOfTexts(RelationalOperator):
    """The changes that the texts of the first column tell."""

    keeps_nothing = True
    emits_changes = ALL_CHANGES

    def __init__(self, decoder: ChangelogDecoder) -> None:
        super().__init__(decoder.schema)
        self.decoder = decoder

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        texts = plain(batch.data.column(0)).cast(pa.binary())
        changes = self.decoder.decode_changes(texts.to_pylist())
        stamps = batch.timestamps
        times = None if stamps is None else stamps[changes.origins]
        return ColumnBatch(changes.batch, times, changes.kinds)


class TextsOfChanges(RelationalOperator):
    """A text for each change. What its kind means is in the text, so the texts are inserts."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES
    emits_changes = INSERT_ONLY

    def __init__(self, encoder: ChangelogEncoder) -> None:
        super().__init__(LINE)
        self.encoder = encoder

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        texts = self.encoder.encode_changes(batch.data, batch.kinds)
        data = pa.RecordBatch.from_arrays([pa.array(texts).cast(pa.string())], schema=LINE)
        return ColumnBatch(data, batch.timestamps, None)  # kinds are in the texts
