"""Messages as columns: what a source or a sink of messages needs to know of a format.

A decoder makes a record batch of many messages at once, an encoder makes messages of a batch. They
mean the same as the schema of rows with the same name: the rows of the decoded batch equal the rows
that it gives. Both are made while the program is built, are pickled into each subtask, and keep
nothing between two calls that matters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from flinkpy.core.errors import BadRecordError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

_SHOWN_BYTES = 60


class MalformedMessageError(BadRecordError, ValueError):
    """A message cannot be decoded: says why, and shows how it begins. ``index`` is its place among
    the messages that were decoded together; None for a message that was decoded by itself.

    >>> print(MalformedMessageError(3, "it ends within a text", b'{"a": "x'))
    message 3 cannot be decoded: it ends within a text: b'{"a": "x'
    """

    def __init__(self, index: int | None, why: str, message: bytes | None = None) -> None:
        super().__init__(
            index, why, None if message is None else bytes(message[: _SHOWN_BYTES + 1])
        )
        self.index = index
        self.why = why
        self.beginning = self.args[2]

    def at(self, index: int) -> MalformedMessageError:
        """The same error for a message at another place."""
        return MalformedMessageError(index, self.why, self.beginning)

    def __str__(self) -> str:
        which = "the message" if self.index is None else f"message {self.index}"
        return f"{which} cannot be decoded: {self.why}{shown(self.beginning)}"


def shown(message: bytes | None) -> str:
    """How a message begins, for the end of a sentence."""
    if message is None:
        return ""
    return f": {message[:_SHOWN_BYTES]!r}{'…' if len(message) > _SHOWN_BYTES else ''}"


class Decoded(NamedTuple):
    """A batch with a row for each message that could be decoded, and an error for each other one,
    both in order."""

    batch: pa.RecordBatch
    malformed: Sequence[MalformedMessageError] = ()


class ColumnarDecoder(ABC):
    """Makes a record batch of messages.

    ``schema`` is that of every batch. Each message becomes one row, in order; None (a Kafka record
    without a value, a tombstone) becomes a row of nulls, so a source that wants no such rows leaves
    these messages out."""

    schema: pa.Schema

    @abstractmethod
    def decode_well_formed(self, messages: Sequence[bytes | None]) -> Decoded:
        """The messages as a batch without the malformed ones, and an error for each of those."""

    def decode(self, messages: Sequence[bytes | None]) -> pa.RecordBatch:
        """The messages as a batch. Raises MalformedMessageError for the first one that cannot be
        decoded."""
        batch, malformed = self.decode_well_formed(messages)
        if malformed:
            raise malformed[0]
        return batch


class ColumnarEncoder(ABC):
    """Makes a message of each row of a record batch."""

    @abstractmethod
    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        """The messages, in order. Raises ProgramError, which names the field, for a value that the
        format cannot hold."""


# -- changes ---------------------------------------------------------------------------------------


class DecodedChanges(NamedTuple):
    """The changes that messages tell: rows, the kind of each (the values of ``RowKind``), and the
    place of the message that it comes from. A message may tell none, one or several."""

    batch: pa.RecordBatch
    kinds: npt.NDArray[np.int8]
    origins: npt.NDArray[np.int64]


class ChangelogDecoder(ABC):
    """Makes rows with kinds of messages. ``schema`` is that of every batch."""

    schema: pa.Schema

    @abstractmethod
    def decode_changes(self, messages: Sequence[bytes | None]) -> DecodedChanges:
        """The changes, in the order of the messages. Raises MalformedMessageError for the first
        one that cannot be decoded."""


class ChangelogEncoder(ColumnarEncoder):
    """Makes a message of each row, with what the row's kind means."""

    @abstractmethod
    def encode_changes(
        self, batch: pa.RecordBatch, kinds: npt.NDArray[np.int8] | None
    ) -> list[bytes | None]:
        """The messages, in order; None is a message without a value. ``kinds`` is None where all
        rows are inserts."""

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        """The messages of inserts."""
        return self.encode_changes(batch, None)  # type: ignore[return-value]


# -- registries ------------------------------------------------------------------------------------


class RegisteredSchema(NamedTuple):
    """A schema as a schema registry keeps it: AVRO, JSON or PROTOBUF, its text, and the schemas
    that it refers to, by the name that it has for each."""

    kind: str
    text: str
    references: tuple[tuple[str, RegisteredSchema], ...] = ()


class RegisteredFormat:
    """What a format that can be used with a schema registry says of itself."""

    @property
    def places(self) -> list[int] | None:
        """For Protobuf, where the schema defines the message; such messages say it behind their
        schema's number."""
        return None

    def registered(self) -> RegisteredSchema:
        """The schema to register for what is written, and the kind of what is read."""
        raise NotImplementedError

    def written_with(self, schema: RegisteredSchema) -> Any:
        """This format, for messages that were written with that schema."""
        return self
