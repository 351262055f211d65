"""ChangelogMode: which kinds of changes a stream has, an operator takes, or an operator gives."""

from __future__ import annotations

from dataclasses import dataclass

from flinkpy.common.types import RowKind

_NAMES = {
    RowKind.INSERT: "I",
    RowKind.UPDATE_BEFORE: "UB",
    RowKind.UPDATE_AFTER: "UA",
    RowKind.DELETE: "D",
}


@dataclass(frozen=True)
class ChangelogMode:
    """A set of row kinds.

    >>> print(ChangelogMode.upsert())
    [I,UA,D]
    >>> ChangelogMode.upsert().contains(RowKind.UPDATE_BEFORE)
    False
    """

    kinds: frozenset[RowKind]

    @staticmethod
    def of(*kinds: RowKind) -> ChangelogMode:
        """The mode with these kinds."""
        return ChangelogMode(frozenset(kinds))

    @staticmethod
    def insert_only() -> ChangelogMode:
        """Each row is one more."""
        return INSERT_ONLY

    @staticmethod
    def upsert() -> ChangelogMode:
        """A row replaces the one before of its key, which is not sent again."""
        return _UPSERT

    @staticmethod
    def all() -> ChangelogMode:
        """Rows of every kind: an update comes as the row before and the row after it."""
        return ALL_CHANGES

    def contains(self, kind: RowKind) -> bool:
        """Whether there may be rows of this kind."""
        return kind in self.kinds

    def contains_all(self, other: ChangelogMode) -> bool:
        """Whether there may be rows of each kind of the other mode."""
        return other.kinds <= self.kinds

    @property
    def is_insert_only(self) -> bool:
        """Whether no row replaces or deletes another one."""
        return self.kinds <= INSERT_ONLY.kinds

    def __or__(self, other: ChangelogMode) -> ChangelogMode:
        """The mode of a stream that has the rows of both."""
        return ChangelogMode(self.kinds | other.kinds)

    def __str__(self) -> str:
        """As Flink's ``explain`` writes it."""
        return f"[{','.join(name for kind, name in _NAMES.items() if kind in self.kinds)}]"


INSERT_ONLY = ChangelogMode.of(RowKind.INSERT)
ALL_CHANGES = ChangelogMode.of(*RowKind)
_UPSERT = ChangelogMode.of(RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE)
