"""Rows as a table of HTML, for notebooks: names and types above, every text escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from flinkpy.common.logical_types.logical_type import RowType, TypeFamily
from flinkpy.table.results.cell_texts import NULL

SHOWN_ROWS = 20
_LONGEST = 200


def html_table(
    schema: RowType, rows: Iterable[Sequence[str]], note: str = "", *, has_kinds: bool = False
) -> str:
    """``rows`` are texts of cells, the kind first if it is shown; ``note`` stands below."""
    kinds = "<th>op</th>" if has_kinds else ""
    names = "".join(f"<th>{html.escape(name)}</th>" for name in schema.names)
    types = "".join(
        f'<td><code style="opacity: 0.6">{html.escape(field.type.text())}</code></td>'
        for field in schema
    )
    sides = [""] if has_kinds else []
    sides += [_side(field.type.is_a(TypeFamily.NUMERIC)) for field in schema]
    lines = "".join(
        f"<tr>{''.join(f'<td{side}>{_cell(text)}</td>' for side, text in zip(sides, row))}</tr>"
        for row in rows
    )
    below = f"<div>{html.escape(note)}</div>" if note else ""
    return (
        f"<table><thead><tr>{kinds}{names}</tr><tr>{'<td></td>' if has_kinds else ''}{types}</tr>"
        f"</thead><tbody>{lines}</tbody></table>{below}"
    )


def _side(is_number: bool) -> str:
    return ' style="text-align: right"' if is_number else ' style="text-align: left"'


def _cell(text: str) -> str:
    if text == NULL:
        return '<span style="opacity: 0.5">NULL</span>'
    cut = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return html.escape(cut)
