"""Texts made of texts: joined, trimmed, filled, cut, replaced. Places and lengths count characters,
where Flink's LPAD, RPAD, LEFT, RIGHT, OVERLAY count a character beyond U+FFFF twice."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf
from flinkpy.columns.sql.sql_meanings.null_rules import always, strict, strictly

_WORD = re.compile("[0-9A-Za-z]+")


def concat(first: Any, *others: Any) -> Any:
    """All texts, or all bytes, one after the other."""
    return type(first)().join((first, *others))


def concat_with_separator(separator: str | None, *texts: str | None) -> str | None:
    """The texts that are not null with the separator between them; null if the separator is."""
    if separator is None:
        return None
    return separator.join(text for text in texts if text is not None)


def trim_both(text: str, characters: str = " ") -> str:
    """Without the characters at both ends, as many as there are, in any order."""
    return text.strip(characters)


def trim_left(text: str, characters: str = " ") -> str:
    """Without the characters at the beginning."""
    return text.lstrip(characters)


def trim_right(text: str, characters: str = " ") -> str:
    """Without the characters at the end."""
    return text.rstrip(characters)


TRIMS: dict[str, Callable[..., str]] = {
    "BOTH": trim_both,
    "LEADING": trim_left,
    "TRAILING": trim_right,
}


def _trim(site: CallSite) -> Meaning:
    return strict(TRIMS[str(site.options.get("side", "BOTH"))])


def _filling(text: str, length: int, filler: str) -> str | None:
    """What is missing to the length; null if there is no such text."""
    if length < 0 or not filler:
        return None
    missing = max(length - len(text), 0)
    return (filler * (missing // len(filler) + 1))[:missing]


def pad_left(text: str, length: int, filler: str) -> str | None:
    """Filled at the left, or cut, to the length; null if it is negative or nothing fills."""
    filling = _filling(text, length, filler)
    return None if filling is None else filling + text[:length]


def pad_right(text: str, length: int, filler: str) -> str | None:
    """Filled at the right, or cut, to the length; null if it is negative or nothing fills."""
    filling = _filling(text, length, filler)
    return None if filling is None else text[:length] + filling


def left(text: str, length: int) -> str:
    """The first characters."""
    return text[: max(length, 0)]


def right(text: str, length: int) -> str:
    """The last characters."""
    return text[max(len(text) - length, 0) :] if length > 0 else ""


def repeat(text: str, times: int) -> str:
    """The text as often; none for a negative number."""
    return text * times


def overlay(text: str, placed: str, start: int, length: int | None = None) -> str:
    """``placed`` stands for ``length`` characters (as many as it has) from a place on. As in Flink
    the rest is lost where the length is not positive, and a place outside changes nothing."""
    if start <= 0 or start > len(text):
        return text
    replaced = len(placed) if length is None else length
    has_rest = replaced > 0 and start + replaced <= len(text)
    return text[: start - 1] + placed + (text[start - 1 + replaced :] if has_rest else "")


@functools.lru_cache(maxsize=256)
def _translation(source: str, target: str) -> dict[int, str | None]:
    found: dict[int, str | None] = {}
    for at, character in enumerate(source):
        found.setdefault(ord(character), target[at] if at < len(target) else None)
    return found


def translate(text: str, source: str, target: str) -> str:
    """Each character of ``source`` becomes the one at its place in ``target``, or is left out."""
    return text.translate(_translation(source, target))


def init_cap(text: str) -> str:
    """Each word of ASCII letters and digits with a capital first; other letters part words."""
    return _WORD.sub(lambda word: word.group().capitalize(), text)


TEXT_EDITING_MEANINGS: dict[str, MeaningOf] = {
    "CONCAT": strictly(concat),
    "CONCAT_WS": always(concat_with_separator),
    "TRIM": _trim,
    "LTRIM": strictly(trim_left),
    "RTRIM": strictly(trim_right),
    "BTRIM": strictly(trim_both),
    "LPAD": strictly(pad_left),
    "RPAD": strictly(pad_right),
    "LEFT": strictly(left),
    "RIGHT": strictly(right),
    "REPEAT": strictly(repeat),
    "REVERSE": strictly(lambda text: text[::-1]),
    "OVERLAY": strictly(overlay),
    "REPLACE": strictly(lambda text, old, new: text.replace(old, new)),
    "TRANSLATE": strictly(translate),
    "INITCAP": strictly(init_cap),
}
