"""Where a function of SQL is called: all that its meaning and its kernel may depend on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.core.clock import Clock, SystemClock

if TYPE_CHECKING:
    import pyarrow as pa


class Varying(Enum):
    """Stands for an argument that is not a constant."""

    VARYING = "VARYING"


VARYING = Varying.VARYING


@dataclass(frozen=True)
class CallSite:
    """``constants`` has a value for each argument that is one (None: NULL), and VARYING for the
    others. ``options`` are the words of the call that are no values: a unit of time, ON ERROR.
    ``zone`` is that of the session. ``clock`` says what time it is now; in BATCH it stands
    still."""

    arguments: tuple[LogicalType, ...]
    result: LogicalType
    constants: tuple[object, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    zone: str = "UTC"
    clock: Clock = field(default_factory=SystemClock, compare=False)

    def constant(self, index: int) -> object:
        """The value of this argument, or VARYING."""
        return self.constants[index] if index < len(self.constants) else VARYING


# For one row, in plain Python: a value for each argument gives the result. It is the specification.
Meaning: TypeAlias = Callable[..., Any]
MeaningOf: TypeAlias = Callable[[CallSite], Meaning]

# For a batch: called with the number of rows, then with an array for each argument (a pyarrow
# scalar where it is a constant), it gives an array of the result's type.
Kernel: TypeAlias = Callable[..., "pa.Array"]
KernelOf: TypeAlias = Callable[[CallSite], Kernel]
