"""What a statement that runs no job answers: a few rows with a type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flinkpy.common.logical_types.logical_type import UNBOUNDED, RowType, VarCharType

STRING = VarCharType(UNBOUNDED)


@dataclass(frozen=True)
class StatementRows:
    """``has_content`` is False where the only row says OK."""

    schema: RowType
    rows: tuple[tuple[object, ...], ...]
    has_content: bool = True


OK = StatementRows(RowType.of(("result", STRING)), (("OK",),), has_content=False)


def texts(column: str, values: Iterable[str]) -> StatementRows:
    """One column of texts."""
    return StatementRows(
        RowType.of((column, STRING.not_null())), tuple((value,) for value in values)
    )
