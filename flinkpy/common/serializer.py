"""The port of serialisers a user may write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import BinaryIO, Generic, TypeVar

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes values to a stream of bytes and reads them back."""

    @abstractmethod
    def serialize(self, value: T, stream: BinaryIO) -> None:
        """Writes one value."""

    @abstractmethod
    def deserialize(self, stream: BinaryIO) -> T:
        """Reads one value."""
