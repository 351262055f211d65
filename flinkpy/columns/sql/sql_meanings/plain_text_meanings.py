"""Functions of text without patterns or formats: joining, cutting, case, length, and what its
characters are."""

from __future__ import annotations

import math
import re
from typing import Any

from flinkpy.columns.sql.call_site import MeaningOf
from flinkpy.columns.sql.sql_meanings.null_rules import always, strictly

_DECIMAL = re.compile(r"[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[dDfF]?)", re.ASCII)


def substring(text: str, start: int, length: int | None = None) -> str | None:
    """From a place on, counted from 1, or from the end if it is negative; null for a negative
    length."""
    if length is not None and length < 0:
        return None
    begin = start - 1 if start > 0 else 0
    if start < 0:
        begin = len(text) + start
        if begin < 0:
            return text[:0]
    return text[begin:] if length is None else text[begin : begin + length]


def is_alpha(value: Any) -> bool:
    """Whether it is a text of letters alone."""
    return isinstance(value, str) and value.isalpha()


def is_digit(value: Any) -> bool:
    """Whether it is a whole number, or a text of digits alone."""
    if isinstance(value, str):
        return value.isdecimal()
    return isinstance(value, int) and not isinstance(value, bool)


def is_decimal(value: Any) -> bool:
    """Whether it is a number, or a text that is one."""
    if isinstance(value, str):
        return _DECIMAL.fullmatch(value.strip()) is not None
    return value is not None and not (isinstance(value, float) and math.isnan(value))


PLAIN_TEXT_MEANINGS: dict[str, MeaningOf] = {
    "||": strictly(lambda left, right: left + right),
    "SUBSTRING": strictly(substring),
    "SUBSTR": strictly(substring),
    "UPPER": strictly(str.upper),
    "LOWER": strictly(str.lower),
    "CHAR_LENGTH": strictly(len),
    "IS_ALPHA": always(is_alpha),
    "IS_DIGIT": always(is_digit),
    "IS_DECIMAL": always(is_decimal),
}
