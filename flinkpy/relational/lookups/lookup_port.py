"""What a connector gives to be looked up: a table that each subtask holds (``JoinedTable``), or a
function that is asked for the rows of a key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

import numpy.typing as npt
import pyarrow as pa

from flinkpy.common.logical_types.logical_type import RowType


@dataclass(frozen=True)
class CacheRules:
    """Which answers are kept: so many keys, and for so long since they came, or since they were
    last used. ``keeps_missing``: also that a key has no rows."""

    most_keys: int | None = None
    after_write: timedelta | None = None
    after_access: timedelta | None = None
    keeps_missing: bool = True


@dataclass(frozen=True)
class AskedTable:
    """A function that gives rows of the type ``row`` for ``keys``. It is called with those that are
    its ``arguments``, by their names; rows that differ in the others are left out. ``wanted`` are
    the columns that the query reads. A call that raises is repeated ``retries`` times."""

    function: Any
    row: RowType
    keys: tuple[str, ...]
    arguments: tuple[str, ...]
    wanted: tuple[str, ...]
    is_async: bool = False
    retries: int = 3
    cache: CacheRules | None = None

    @property
    def awaits_functions(self) -> bool:
        """Whether its function may be declared with ``async def``."""
        return self.is_async


@dataclass(frozen=True)
class Found:
    """Rows of a table, and for which of the keys that were asked each of them is, ascending."""

    at: npt.NDArray[Any]
    rows: pa.RecordBatch


class Lookups(Protocol):
    """What a subtask asks for the rows of keys. No key has a null."""

    def find(self, keys: pa.RecordBatch) -> Found: ...

    def close(self) -> None: ...
