"""The interface of serialisers that a user may write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import BinaryIO, Generic, TypeVar

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes values to a stream of bytes and reads them back.

    >>> import io
    >>> class Short(TypeSerializer):
    ...     def serialize(self, element, stream):
    ...         stream.write(element.to_bytes(2, "big", signed=True))
    ...     def deserialize(self, stream):
    ...         return int.from_bytes(stream.read(2), "big", signed=True)
    >>> Short().deserialize(io.BytesIO(b"\\xff\\xfe"))
    -2
    """

    @abstractmethod
    def serialize(self, element: T, stream: BinaryIO) -> None:
        """Writes one value."""

    @abstractmethod
    def deserialize(self, stream: BinaryIO) -> T:
        """Reads one value."""
