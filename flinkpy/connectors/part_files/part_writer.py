"""What writes one part file."""

from __future__ import annotations

from abc import ABC, abstractmethod

from flinkpy.core.elements import Batch


class PartWriter(ABC):
    """Writes one part file."""

    @abstractmethod
    def write(self, batch: Batch) -> None: ...

    def flush(self) -> None:
        """Hands what was gathered to the operating system."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes written so far, but for what is still gathered."""

    @abstractmethod
    def close(self) -> None:
        """Ends the file properly."""

    def abandon(self) -> None:
        """Lets go of a file that will not be finished: the job failed."""
        self.close()
