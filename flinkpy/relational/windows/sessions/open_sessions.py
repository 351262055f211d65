"""Sessions that are still open, in memory: what the two forms of them share. One holds the rows of
sessions, the other what these have accumulated."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import pyarrow as pa

from flinkpy.core.elements import MAX_TIMESTAMP

if TYPE_CHECKING:
    import numpy.typing as npt

Ended = TypeVar("Ended")
Tables: TypeAlias = "list[pa.RecordBatch]"


class OpenSessions(ABC, Generic[Ended]):
    """Tables of these schemas; ``keys`` says for each table which columns are the key. A session of
    a key goes on as long as its rows are not further apart than the gap."""

    def __init__(self, schemas: Sequence[pa.Schema], keys: Sequence[Sequence[int]]) -> None:
        self.schemas, self.keys = tuple(schemas), tuple(map(tuple, keys))
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._tables: list[Tables] = [[] for _ in self.schemas]
        self._wake = MAX_TIMESTAMP  # before this no session ends

    def empty(self) -> OpenSessions[Ended]:
        """Others of the same form."""
        others = copy.copy(self)
        others._begin_anew()
        return others

    @property
    def rows(self) -> int:
        """How many rows of tables are held."""
        return sum(each.num_rows for held in self._tables for each in held)

    @property
    def tables(self) -> list[Tables]:
        """The batches of each table. Batches are never changed."""
        return [each.copy() for each in self._tables]

    @property
    def next_moment(self) -> int | None:
        """Before this no session ends; None: there is none."""
        return None if self._wake == MAX_TIMESTAMP else self._wake

    @abstractmethod
    def add(
        self, data: pa.RecordBatch, moments: npt.NDArray[Any], now: int | npt.NDArray[Any]
    ) -> int:
        """Takes rows, which lie at these moments; gives how many came too late: after their session
        had ended. ``now`` says how far time has come, of all rows or of each."""

    @abstractmethod
    def put(self, tables: Tables) -> None:
        """Takes back what ``tables`` has had, or a part of it."""

    @abstractmethod
    def ended(self, until: int) -> Iterator[Ended]:
        """Lets time go on. Gives the sessions that end, by their ends."""

    @abstractmethod
    def taken(self) -> tuple[Tables, Any]:
        """Gives everything away: one batch of each table, and for each row of the first one the
        last moment of its session."""
