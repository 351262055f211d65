"""LIKE and SIMILAR TO as regular expressions of Python."""

from __future__ import annotations

import functools
import re

_ANY = {"%": ".*", "_": "."}
_OPERATORS = frozenset("|*+?{}()")
_CLASSES = {
    "[:ALPHA:]": "a-zA-Z",
    "[:UPPER:]": "A-Z",
    "[:LOWER:]": "a-z",
    "[:DIGIT:]": "0-9",
    "[:ALNUM:]": "a-zA-Z0-9",
    "[:SPACE:]": " ",
    "[:WHITESPACE:]": r"\s",
}


@functools.lru_cache(maxsize=1024)
def like_pattern(pattern: str, escape: str | None = None) -> re.Pattern[str]:
    """What LIKE accepts. No character escapes another unless ESCAPE names one."""
    return re.compile("".join(_like_parts(pattern, _escape(escape))), re.DOTALL)


def like_regex(pattern: str, escape: str | None = None) -> str:
    """The same as a text, for other engines."""
    return "".join(_like_parts(pattern, _escape(escape)))


def _escape(escape: str | None) -> str | None:
    if escape is not None and len(escape) != 1:
        raise ValueError(f"ESCAPE takes one character, not {escape!r}")
    return escape


def _like_parts(pattern: str, escape: str | None) -> list[str]:
    parts, at = [], 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == escape:
            at += 1
            if at == len(pattern) or (pattern[at] not in _ANY and pattern[at] != escape):
                raise ValueError(f"invalid escape sequence in the pattern {pattern!r}")
            parts.append(re.escape(pattern[at]))
        else:
            parts.append(_ANY.get(sign) or re.escape(sign))
        at += 1
    return parts


@functools.lru_cache(maxsize=1024)
def similar_pattern(pattern: str, escape: str | None = None) -> re.Pattern[str]:
    """What SIMILAR TO accepts: LIKE with alternatives, repetitions, groups and classes."""
    escape = _escape(escape)
    parts, at = [], 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == escape:
            at += 1
            if at == len(pattern):
                raise ValueError(f"invalid escape sequence in the pattern {pattern!r}")
            parts.append(re.escape(pattern[at]))
        elif sign == "[":
            at, inside = _class(pattern, at)
            parts.append(inside)
        elif sign in _OPERATORS:
            parts.append(sign)
        else:
            parts.append(_ANY.get(sign) or re.escape(sign))
        at += 1
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error as error:
        raise ValueError(f"the pattern {pattern!r} of SIMILAR TO: {error}") from None


def _class(pattern: str, start: int) -> tuple[int, str]:
    """The class of characters that begins here, and the place of its end."""
    at, inside = start + 1, "["
    if pattern[at : at + 1] == "^":
        inside, at = "[^", at + 1
    while at < len(pattern) and pattern[at] != "]":
        name = next((each for each in _CLASSES if pattern[at:].upper().startswith(each)), None)
        if name is not None:
            inside += _CLASSES[name]
            at += len(name)
        else:
            inside += pattern[at] if pattern[at] == "-" else re.escape(pattern[at])
            at += 1
    if at >= len(pattern):
        raise ValueError(f"a [ without its ] in the pattern {pattern!r}")
    return at, inside + "]"
