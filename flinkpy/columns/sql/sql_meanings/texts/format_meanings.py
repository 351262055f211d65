"""PRINTF: a text by a format of Java, as far as Python formats in the same way."""

from __future__ import annotations

import re
from typing import Any

from flinkpy.columns.sql.call_site import MeaningOf
from flinkpy.columns.sql.sql_meanings.null_rules import always

_PLACE = re.compile(r"%(?:(?P<shape>(?:[-0]?[1-9]\d*)?)(?P<kind>[sd])|(?P<sign>[n%]))")
_SIGNS = {"n": "\n", "%": "%"}


def printf(format: str | None, *values: Any) -> str | None:
    """The format with a value at each place: %s for text, whole numbers and BOOLEAN, %d for whole
    numbers. Null where a place has no value, or one that does not belong there. Raises ValueError
    for places of other kinds."""
    if format is None:
        return None
    if "%" in _PLACE.sub("", format):
        raise ValueError(f"PRINTF computes %s, %d, %n and %%, and not all of {format!r}")
    rest = list(values)
    parts, end = [], 0
    for place in _PLACE.finditer(format):
        shown = _SIGNS[place["sign"]] if place["sign"] else _shown(place, rest)
        if shown is None:
            return None
        parts += [format[end : place.start()], shown]
        end = place.end()
    return "".join(parts) + format[end:]


def _shown(place: re.Match[str], rest: list[Any]) -> str | None:
    if not rest:
        return None
    value, shape = rest.pop(0), place["shape"]
    if place["kind"] == "s" and shape.startswith("0"):
        return None
    if value is None or (place["kind"] == "s" and isinstance(value, bool)):
        return f"%{shape.lstrip('0')}s" % ("null" if value is None else str(value).lower())
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if place["kind"] == "d":
        return f"%{shape}d" % value if is_whole else None
    if not is_whole and not isinstance(value, str):
        raise ValueError(f"PRINTF cannot write {type(value).__name__} with %s: cast it to STRING")
    return f"%{shape}s" % str(value)


FORMAT_MEANINGS: dict[str, MeaningOf] = {"PRINTF": always(printf)}
