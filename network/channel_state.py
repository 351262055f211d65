"""Elements in flight, as a checkpoint stores them: frames as on a connection, so rows and columns
keep their form.

Batches and what says how far event time is are stored. Latency markers, barriers and ends are not:
the first measure what is over, barriers of older checkpoints are in vain, and a producer that had
ended says so again after a restart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from flinkpy.core.elements import ColumnBatch, Element, RowBatch, Watermark, WatermarkStatus
from flinkpy.core.errors import FlinkpyError, NetworkProtocolError
from flinkpy.network.encoding.frames import HEADER_SIZE, encode_header, payload_length, stored_frame
from flinkpy.network.encoding.payloads import ElementDecoder, ElementEncoder

Chunk: TypeAlias = "bytes | memoryview"
_STORED = frozenset({RowBatch, ColumnBatch, Watermark, WatermarkStatus})


class ElementLog:
    """The elements of one channel, in order. Each is encoded when it is added: a function that
    processes it next may change its records in place. Records that cannot be pickled make the log
    fail, and not the task.

    >>> log = ElementLog()
    >>> log.add(RowBatch([1, 2]))
    >>> [batch.values for batch in read_elements(log.to_bytes())]
    [[1, 2]]
    """

    def __init__(self) -> None:
        self._encoder = ElementEncoder()
        self._chunks: list[Chunk] = []
        self._error: FlinkpyError | None = None

    def add(self, element: Element) -> None:
        """Adds the element, if it is of those that are stored."""
        if type(element) not in _STORED or self._error is not None:
            return
        try:
            encoded = self._encoder.encode(element)
        except FlinkpyError as error:
            self._error = error
            return
        for frame in encoded:
            header = encode_header(frame.kind, frame.flags, frame.parts, 0, 0, 0, 0, frame.length)
            if type(element) is ColumnBatch:  # never changed, so it need not be copied
                self._chunks += [
                    header,
                    *(memoryview(buffer).cast("B") for buffer in frame.buffers),
                ]
            else:
                self._chunks.append(b"".join((header, *frame.buffers)))

    def extend(self, elements: Iterable[Element]) -> None:
        for element in elements:
            self.add(element)

    @property
    def is_empty(self) -> bool:
        return not self._chunks and self._error is None

    def chunks(self) -> list[Chunk]:
        """What to store, without copying it; may be called in another thread when nothing is added
        any more. Raises ProgramError if a record could not be pickled."""
        if self._error is not None:
            raise self._error
        return self._chunks

    def to_bytes(self) -> bytes:
        return b"".join(self.chunks())

    def __repr__(self) -> str:
        return f"<ElementLog: {sum(map(len, self._chunks))} bytes>"


def read_elements(stored: bytes) -> Iterator[Element]:
    """The elements of a log. Raises whatever unpickling a record raises, and NetworkProtocolError
    if the bytes are no log."""
    decoder, at, whole = ElementDecoder(), 0, memoryview(stored)
    while at < len(stored):
        header = stored[at : at + HEADER_SIZE]
        if len(header) < HEADER_SIZE or (end := at + HEADER_SIZE + payload_length(header)) > len(
            stored
        ):
            raise NetworkProtocolError(
                "the channel state of a checkpoint ends in the middle of an element"
            )
        element = decoder.decode(stored_frame(whole[at:end]))
        if element is not None:
            yield element
        at = end
