"""Names of tables as programs write them: ``catalog.database.table``, with backquotes where a part
has a dot or another special character."""

from __future__ import annotations

import re

from flinkpy.core.errors import ProgramError
from flinkpy.sql.syntax.query_tree import Identifier

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def identifier_of(path: str) -> Identifier:
    """The parts of a path. Raises ProgramError for what is none.

    >>> identifier_of("shop.`order.lines`").parts
    ('shop', 'order.lines')
    """
    if not isinstance(path, str) or not path:
        raise ProgramError(f"a table's path is text, this is {path!r:.80}")
    parts = []
    at = 0
    while True:
        found = _PART.match(path, at)
        if found is None:
            raise ProgramError(
                f"{path!r} is no path of a table: write catalog.database.table, with backquotes "
                "around a part with special characters"
            )
        quoted, plain = found.groups()
        parts.append(plain.strip() if quoted is None else quoted.replace("``", "`"))
        at = found.end()
        if at == len(path):
            return Identifier(tuple(parts))
        if path[at] != ".":
            raise ProgramError(f"{path!r} is no path of a table")
        at += 1
