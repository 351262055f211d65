"""A view's query with full names, so that it means the same wherever it is used later."""

from __future__ import annotations

from flinkpy.sql.catalog.catalog_port import Names
from flinkpy.sql.syntax.query_tree import CommonTable, Identifier, Query, TableReference
from flinkpy.sql.syntax.tree_walk import nodes_of


def expanded_query(query: Query, statement: str, query_text: str, names: Names) -> str:
    """The text of the query with the full name of each table that the catalog knows. ``statement``
    is the text that the places in the tree belong to."""
    begin = statement.rfind(query_text)
    if begin < 0:
        return query_text
    common = {each.name for each in nodes_of(query) if isinstance(each, CommonTable)}
    found = [each.name for each in nodes_of(query) if isinstance(each, TableReference)]
    text = query_text
    for name in sorted(found, key=lambda each: each.span.start, reverse=True):
        if _is_common(name, common) or name.span.end <= name.span.start:
            continue
        known = names.find_table(name.parts)
        if known is not None:
            start, end = name.span.start - begin, name.span.end - begin
            text = f"{text[:start]}{known[0]}{text[end:]}"
    return text


def _is_common(name: Identifier, common: set[str]) -> bool:
    return len(name.parts) == 1 and name.parts[0] in common
