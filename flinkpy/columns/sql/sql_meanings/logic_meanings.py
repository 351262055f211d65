"""Logic of three values: true, false, and null for unknown."""

from __future__ import annotations

from flinkpy.columns.sql.call_site import MeaningOf
from flinkpy.columns.sql.sql_meanings.null_rules import always, strictly


def conjunction(*values: bool | None) -> bool | None:
    if any(value is False for value in values):
        return False
    return None if None in values else True


def disjunction(*values: bool | None) -> bool | None:
    if any(value is True for value in values):
        return True
    return None if None in values else False


LOGIC_MEANINGS: dict[str, MeaningOf] = {
    "AND": always(conjunction),
    "OR": always(disjunction),
    "NOT": strictly(lambda value: not value),
    "IS TRUE": always(lambda value: value is True),
    "IS NOT TRUE": always(lambda value: value is not True),
    "IS FALSE": always(lambda value: value is False),
    "IS NOT FALSE": always(lambda value: value is not False),
    "IS UNKNOWN": always(lambda value: value is None),
    "IS NOT UNKNOWN": always(lambda value: value is not None),
    "IS NULL": always(lambda value: value is None),
    "IS NOT NULL": always(lambda value: value is not None),
}
