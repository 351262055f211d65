"""What a statement that runs no job answers: a few rows with a type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flinkpy.common.logical_types.logical_type import UNBOUNDED, RowType, VarCharType

STRING = VarCharType(UNBOUNDED)


@dataclass(frozen=True)
class StatementRows:
    """``has_content`` is False where the only row says OK. ``is_plain``: the only value is a text
    of several lines, which is printed without a frame."""

    schema: RowType
    rows: tuple[tuple[object, ...], ...]
    has_content: bool = True
    is_plain: bool = False


OK = StatementRows(RowType.of(("result", STRING)), (("OK",),), has_content=False)


def texts(column: str, values: Iterable[str]) -> StatementRows:
    """One column of texts."""
    return StatementRows(RowType.of((column, STRING)), tuple((value,) for value in values))


def plain_text(text: str) -> StatementRows:
    """A text of several lines."""
    return StatementRows(RowType.of(("result", STRING)), ((text,),), is_plain=True)
