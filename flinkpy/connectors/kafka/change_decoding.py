"""Messages that tell changes, as columns whose rows have kinds."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from flinkpy.connectors.kafka.record_decoding import (
    CannotDecodeError,
    ColumnNames,
    ColumnsAndMetadata,
    times_of,
)
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.formats.port import ChangelogDecoder, DecodedChanges

if TYPE_CHECKING:
    from confluent_kafka import Message

    from flinkpy.formats.changes.upserts import UpsertDecoder


class _Changes(ColumnsAndMetadata):
    @abstractmethod
    def _decoded(self, messages: list[Message]) -> DecodedChanges: ...

    def decode(self, messages: list[Message]) -> Batch | None:
        import pyarrow as pa

        try:
            changes = self._decoded(messages)
        except Exception as error:
            raise CannotDecodeError(getattr(error, "index", None) or 0) from error
        if not changes.batch.num_rows:
            return None
        stamps, columns = times_of(messages), list(changes.batch.columns)
        if any(self._names):
            origins = pa.array(changes.origins)
            columns += [each.take(origins) for each in self._beside(messages, stamps)]
        data = pa.RecordBatch.from_arrays(columns, schema=self.schema) if columns else changes.batch
        return ColumnBatch(data, stamps[changes.origins], changes.kinds)


class ChangesInValues(_Changes):
    """Values that tell changes, as those of Debezium do."""

    def __init__(self, decoder: ChangelogDecoder, names: ColumnNames) -> None:
        super().__init__(decoder.schema, names)
        self._decoder = decoder

    def _decoded(self, messages: list[Message]) -> DecodedChanges:
        from confluent_kafka import Message

        return self._decoder.decode_changes(list(map(Message.value, messages)))


class Upserts(_Changes):
    """A value replaces the row of its key; a record without a value deletes it."""

    def __init__(self, decoder: UpsertDecoder, names: ColumnNames) -> None:
        super().__init__(decoder.schema, names)
        self._decoder = decoder

    def _decoded(self, messages: list[Message]) -> DecodedChanges:
        from confluent_kafka import Message

        keys = list(map(Message.key, messages))
        return self._decoder.decode_upserts(keys, list(map(Message.value, messages)))
