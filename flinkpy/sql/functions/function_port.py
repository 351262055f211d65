"""What binding and planning need to know of a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from flinkpy.columns.sql.call_site import VARYING
from flinkpy.common.logical_types.logical_type import LogicalType


class FunctionKind(Enum):
    """Where a function may stand."""

    SCALAR = "SCALAR"
    AGGREGATE = "AGGREGATE"  # also with OVER
    WINDOW = "WINDOW"  # only with OVER: ROW_NUMBER, LAG, ...
    TABLE = "TABLE"


@dataclass(frozen=True)
class Argument:
    """An argument of a call: its type, and its value if it is a constant."""

    type: LogicalType
    constant: object = VARYING


@dataclass(frozen=True)
class Signature:
    """The types that the arguments are cast to, and the type of the result."""

    arguments: tuple[LogicalType, ...]
    result: LogicalType


class Function(Protocol):
    """A function that a statement can call."""

    @property
    def name(self) -> str:
        """The name that plans keep: SQL's in capital letters, or the full path of a user's."""

    @property
    def kind(self) -> FunctionKind: ...

    @property
    def can_fail(self) -> bool:
        """Whether a value of the right type may be an error (a cast of text, a division by
        zero)."""

    @property
    def deterministic(self) -> bool:
        """Whether equal arguments always give the same result. Others are computed once a row, and
        never folded."""

    def bind(self, arguments: Sequence[Argument], options: Mapping[str, object]) -> Signature:
        """The signature for these arguments. Raises ValidationError, which names what the function
        takes, if they do not fit."""


class FunctionRegistry(Protocol):
    """Functions by name. Case does not matter for SQL's own."""

    def find(self, name: str) -> Function | None: ...

    def absence(self, name: str) -> str | None:
        """Why a function of Flink is not there; None for names that Flink does not have either."""

    def names(self) -> Sequence[str]:
        """All names, for proposals and SHOW FUNCTIONS."""
