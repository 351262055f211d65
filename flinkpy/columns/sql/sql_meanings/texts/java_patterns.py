"""Java's regular expressions as Python's, with Java's meaning: a dot and a dollar know all ends of
lines, classes are those of ASCII. What Python cannot say is refused; what Java refuses is no
pattern."""

from __future__ import annotations

import functools
import re

_ENDS = "\n\r\u0085\u2028\u2029"
_END = rf"(?=(?:\r\n|(?<!\r)\n|[{_ENDS[1:]}])?\Z)"
_LINE_END = rf"(?=\r\n|(?<!\r)\n|[{_ENDS[1:]}]|\Z)"
_LINE_START = rf"(?:\A|(?<=[\n{_ENDS[2:]}])(?!\Z)|(?<=\r)(?![\n])(?!\Z))"
_CLASSES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Space": r" \t-\r",
    "Blank": r" \t",
    "XDigit": "0-9a-fA-F",
}
# One piece of a pattern; what Java takes and no alternative has is refused
_PIECE = re.compile(
    r"""\\Q(?P<quoted>.*?)(?:\\E|\Z)
    | \\k<(?P<named>\w+)>
    | \\p\{(?:Is)?(?P<posix>\w+)\} | \\P\{(?:Is)?(?P<not_posix>\w+)\}
    | \\u(?P<unit>[0-9a-fA-F]{4}) | \\x(?P<code>[0-9a-fA-F]{2}) | \\x\{(?P<point>[0-9a-fA-F]+)\}
    | \\(?P<same>[dDwWsSbBAtnrfa]|[1-9](?!\d)|[^a-zA-Z0-9])
    | \\(?P<own>[eZz])
    | \(\?(?P<flags>[ims]+)\)
    | \(\?<(?P<group>[a-zA-Z]\w*)> | (?P<opening>\(\?(?:[:=!]|<[=!]|i:))
    | (?P<range>\{\d+(?:,\d*)?\})
    | (?P<plain>[^\\\[{])
    """,
    re.DOTALL | re.VERBOSE,
)
_OWN = {"e": "\x1b", "Z": _END, "z": r"\Z"}
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\+")
_WRONG_IN_JAVA = ("(?P", "(?#", "(?(")


@functools.lru_cache(maxsize=1024)
def java_pattern(pattern: str) -> re.Pattern[str] | None:
    """The pattern for Python; None for what is no pattern in Java. Raises ValueError for what only
    Java can compute."""
    flags = re.match(r"\(\?([ims]+)\)", pattern)
    wanted = flags.group(1) if flags else ""
    body = pattern[flags.end() :] if flags else pattern
    parts, at = [], 0
    while at < len(body):
        if body[at] == "[":
            at, part = _class(pattern, body, at)
        else:
            piece = _PIECE.match(body, at)
            if body.startswith(_WRONG_IN_JAVA, at) or (piece is None and body[at] == "{"):
                return None
            is_other_group = piece is not None and piece.group() == "(" and body[at:][1:2] == "?"
            if piece is None or piece["flags"] or is_other_group or _QUANTIFIER.match(body, at):
                raise _refused(pattern, body[at : at + 3])
            translated = _translated(piece, wanted)
            if translated is None:
                raise _refused(pattern, piece.group())
            at, part = piece.end(), translated
        parts.append(part)
    try:
        return re.compile("".join(parts), re.ASCII | (re.IGNORECASE if "i" in wanted else 0))
    except re.error as error:
        if "look-behind" in str(error):
            raise _refused(pattern, "a look-behind of several lengths") from None
        return None


def _refused(pattern: str, what: str) -> ValueError:
    return ValueError(f"the pattern {pattern!r} has {what}, which flinkpy cannot compute")


def _translated(piece: re.Match[str], flags: str) -> str | None:
    """What stands for the piece in Python; None if there is nothing."""
    text = piece.group()
    if text == ".":
        return r"[\s\S]" if "s" in flags else f"[^{_ENDS}]"
    if text == "$":
        return _LINE_END if "m" in flags else _END
    if text == "^":
        return _LINE_START if "m" in flags else r"\A"
    kind = piece.lastgroup
    value = piece[kind] if kind is not None else text
    if kind == "quoted":
        return re.escape(value)
    if kind == "named":
        return f"(?P={value})"
    if kind == "group":
        return f"(?P<{value}>"
    if kind == "own":
        return _OWN[value]
    if kind in ("posix", "not_posix"):
        inside = _CLASSES.get(value)
        negation = "^" if kind == "not_posix" else ""
        return None if inside is None else f"[{negation}{inside}]"
    if kind in ("unit", "code", "point"):
        code = int(value, 16)
        return re.escape(chr(code)) if code <= 0x10FFFF else None
    return text


def _class(pattern: str, body: str, start: int) -> tuple[int, str]:
    """The place behind a class in brackets, and the class. Classes inside of it, and && are
    refused."""
    at, inside = start + 1, "["
    if body.startswith("^", at):
        inside, at = "[^", at + 1
    first = at
    while at < len(body) and body[at] != "]":
        if body[at] == "[" or body.startswith("&&", at):
            raise _refused(pattern, f"{body[at]} inside of brackets")
        piece = _PIECE.match(body, at)
        if body[at] in "{(":
            inside, at = inside + body[at], at + 1
            continue
        if piece is None:
            raise _refused(pattern, body[at : at + 2])
        if piece["posix"] in _CLASSES:
            inside += _CLASSES[piece["posix"]]
        elif piece["quoted"] is not None:
            inside += re.escape(piece["quoted"])
        elif piece["same"] is not None and piece["same"] not in "bBA123456789":
            inside += piece.group()
        elif piece["own"] == "e":
            inside += _OWN["e"]
        elif any(piece[each] is not None for each in ("unit", "code", "point")):
            inside += _translated(piece, "") or ""
        elif piece["plain"] is not None:
            inside += piece.group()
        else:
            raise _refused(pattern, f"{piece.group()} inside of brackets")
        at = piece.end()
    if at == first:
        raise _refused(pattern, "a ] at the beginning of brackets")
    return at + 1, inside + body[at : at + 1]


def java_split(pattern: re.Pattern[str], text: str, most: int = 0) -> list[str]:
    """As Java's ``String.split``: no empty text before an empty match at the beginning; without a
    bound, none at the end."""
    parts: list[str] = []
    begin = 0
    for match in pattern.finditer(text):
        if most and len(parts) == most - 1:
            break
        if match.end() == 0:
            continue
        parts.append(text[begin : match.start()])
        begin = match.end()
    is_whole = not parts
    parts.append(text[begin:])
    while not most and not is_whole and parts and not parts[-1]:
        parts.pop()
    return parts
