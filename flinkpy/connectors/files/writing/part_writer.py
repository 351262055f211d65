"""The interface of writers of one part file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

from flinkpy.core.elements import Batch

if TYPE_CHECKING:
    import pyarrow as pa


class OutputFile(Protocol):
    """A file that is written from its beginning to its end."""

    def write(self, data: pa.RecordBatch, /) -> Any: ...

    def flush(self) -> None: ...

    def tell(self) -> int: ...

    def close(self) -> None: ...


class PartWriter(ABC):
    """Writes one part file."""

    @abstractmethod
    def write(self, batch: Batch) -> None: ...

    def flush(self) -> None:
        """Hands what was gathered to the operating system."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The bytes written so far, without what is still gathered."""

    @abstractmethod
    def close(self) -> None:
        """Completes the file and closes it."""

    def abandon(self) -> None:
        """Closes a file that will not be completed because the job failed."""
        self.close()
