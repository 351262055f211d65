"""Operators that run in a batch job as in a stream, and still keep no more than fits."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from flinkpy.operators.base import StreamOperator

if TYPE_CHECKING:  # it imports Arrow, and operators over rows need none
    from flinkpy.operators.spilling.operator_memory import OperatorMemory


class SpillsInBatch(StreamOperator):
    """In a batch job what it has no room for in memory lies in files, and not in its backend."""

    @abstractmethod
    def spill_to(self, memory: OperatorMemory) -> None:
        """Called before ``open`` in a batch job where memory is limited. The memory is the
        operator's until it is closed."""
