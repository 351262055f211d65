"""Functions that choose one of their arguments."""

from __future__ import annotations

from typing import Any

from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf
from flinkpy.columns.sql.sql_meanings.comparison_meanings import bring_number, equal


def case(*operands: Any) -> Any:
    """``CASE WHEN condition THEN value ... ELSE otherwise END``, as a flat list."""
    for at in range(0, len(operands) - 1, 2):
        if operands[at] is True:
            return operands[at + 1]
    return operands[-1]


def coalesce(*values: Any) -> Any:
    """The first value that is not null."""
    return next((value for value in values if value is not None), None)


def nullif(left: Any, right: Any) -> Any:
    """Null if both are equal, else the left one."""
    if left is None or right is None:
        return left
    return None if equal(left, right) else left


def _in_result(choose: Any) -> MeaningOf:
    def of_site(site: CallSite) -> Meaning:
        bring = bring_number(site)
        return lambda *values: bring(choose(*values))

    return of_site


CHOICE_MEANINGS: dict[str, MeaningOf] = {
    "CASE": _in_result(case),
    "IF": _in_result(case),
    "COALESCE": _in_result(coalesce),
    "IFNULL": _in_result(coalesce),
    "NULLIF": _in_result(nullif),
}
