"""What the tab key proposes at the prompt of SQL."""

from __future__ import annotations

from flinkpy.table import TableEnvironment
from flinkpy.table.session_options import TABLE_OPTIONS

# within words of SQL: names have dots and quotes between their parts
DELIMITERS = " \t\n()[],;=<>+-*/%|"


def completions(tables: TableEnvironment, begun: str) -> list[str]:
    """What begins so, in any case: tables, views, databases, catalogs, functions and keywords; keys
    of options where a quote stands."""
    if begun.startswith("'"):
        keys = (f"'{option.name}'" for option in TABLE_OPTIONS.options)
        return [key for key in keys if key.startswith(begun)]
    from flinkpy.sql.parsing.reserved_words import RESERVED

    small = begun.lower()
    names = [
        *tables.list_tables(),
        *tables.list_databases(),
        *tables.list_catalogs(),
        *_in_the_case_of(begun, [*tables.list_functions(), *sorted(RESERVED)]),
    ]
    return [name for name in dict.fromkeys(names) if name.lower().startswith(small)]


def _in_the_case_of(begun: str, words: list[str]) -> list[str]:
    """Keywords and functions have no case of their own: they go on as they were begun."""
    return [word.lower() if begun.islower() else word for word in words]
