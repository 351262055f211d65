"""What is left of changes that were written to the world outside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from flinkpy.common import RowKind
from flinkpy.core.errors import EngineError

_ADDS = (RowKind.INSERT, RowKind.UPDATE_AFTER)


@dataclass(frozen=True)
class Change:
    """A row that replaces the one of its ``key`` or deletes that; without a key it is added, or an
    equal one is taken back."""

    kind: RowKind
    row: tuple[Any, ...]
    key: tuple[Any, ...] | None = None


def standing(records: Iterable[Any]) -> list[Any]:
    """The records that are no changes, and the rows that stand when all changes were carried out in
    this order. EngineError if more equal rows were taken back than added: the order of those does
    not matter.

    >>> add = RowKind.UPDATE_AFTER
    >>> standing([Change(add, (1, "a"), (1,)), Change(add, (1, "b"), (1,))])
    [(1, 'b')]
    >>> standing([Change(RowKind.DELETE, (1,)), Change(add, (2,)), Change(add, (1,))])
    [(2,)]
    """
    plain: list[Any] = []
    by_key: dict[Any, Any] = {}
    equal: dict[Any, int] = {}
    for record in records:
        if not isinstance(record, Change):
            plain.append(record)
        elif record.key is None:
            equal[record.row] = equal.get(record.row, 0) + (1 if record.kind in _ADDS else -1)
        elif record.kind in _ADDS:
            by_key[record.key] = record.row
        else:
            by_key.pop(record.key, None)
    if too_often := [row for row, count in equal.items() if count < 0]:
        raise EngineError(f"these were taken back more often than they were added: {too_often}")
    return [*plain, *by_key.values(), *(row for row, count in equal.items() for _ in range(count))]
