"""LIKE and SIMILAR TO over whole columns: a constant pattern is compiled once."""

from __future__ import annotations

import re
from typing import Any

import pyarrow.compute as pc

from flinkpy.columns.kernels.text import like as arrow_like
from flinkpy.columns.sql.call_site import VARYING, CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.logic_kernels import column_of, inverted
from flinkpy.columns.sql.sql_meanings.sql_patterns import like_regex


def _like(site: CallSite) -> Kernel:
    pattern = site.constant(1)
    escape = site.constant(2) if len(site.arguments) == 3 else None
    if not isinstance(pattern, str) or escape is VARYING or pattern == "":
        return by_value("LIKE")(site)
    if escape is None and len(site.arguments) == 2:
        match = arrow_like(pattern)
    elif isinstance(escape, str):
        regex = re.sub(r"\\(.)", _plainly, like_regex(pattern, escape))
        match = _matching(rf"(?s)\A{regex}\z")
    else:
        return by_value("LIKE")(site)
    return lambda rows, text, *_: column_of(match(text), rows)


def _plainly(escaped: re.Match[str]) -> str:
    """Arrow's engine knows no escaped letter or space that Python's has."""
    sign = escaped.group(1)
    return sign if sign.isspace() else escaped.group()


def _matching(regex: str) -> Any:
    return lambda texts: pc.match_substring_regex(texts, regex)


PATTERN_KERNELS: dict[str, KernelOf] = {
    "LIKE": _like,
    "NOT LIKE": inverted(_like),
    "SIMILAR TO": by_value("SIMILAR TO"),
    "NOT SIMILAR TO": inverted(by_value("SIMILAR TO")),
}
