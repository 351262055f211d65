"""Text: what its functions mean for one row."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from flinkpy.columns import regular_expressions


def like(text: str, pattern: str) -> bool:
    wanted = "".join({"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in pattern)
    return re.fullmatch(wanted, text, re.DOTALL) is not None


def split(text: str, delimiter: str) -> list[str]:
    return text.split(delimiter) if delimiter else list(text) or [""]


def split_index(text: str, delimiter: str, index: int) -> str | None:
    parts = split(text, delimiter)
    return parts[index] if index < len(parts) else None


def padded(text: str, length: int, pad: str, on_the_left: bool) -> str:
    """The text with exactly this many characters: cut, or filled up with ``pad`` again and
    again."""
    missing = length - len(text)
    if missing <= 0:
        return text[:length]
    filled = (pad * (missing // len(pad) + 1))[:missing]
    return filled + text if on_the_left else text + filled


def init_cap(text: str) -> str:
    """Each word of letters and digits of ASCII with a large first letter and small others."""
    return re.sub(
        "[A-Za-z0-9]+", lambda word: word.group()[0].upper() + word.group()[1:].lower(), text
    )


# -- regular expressions ---------------------------------------------------------------------------


def _regular(over_texts: Callable[..., Any]) -> Callable[..., Any]:
    def of_one(text: str, **options: Any) -> Any:
        import pyarrow as pa

        return over_texts(pa.array([text], pa.string()), **options)[0].as_py()

    return of_one


STRICT: dict[str, Callable[..., Any]] = {
    "upper": str.upper,
    "lower": str.lower,
    "char_length": len,
    "substring": lambda text, begin, length: (
        text[begin - 1 :] if length is None else text[begin - 1 : begin - 1 + length]
    ),
    "right": lambda text, length: text[max(len(text) - length, 0) :],
    "trim": lambda text, characters: text.strip(characters),
    "trim_leading": lambda text, characters: text.lstrip(characters),
    "trim_trailing": lambda text, characters: text.rstrip(characters),
    "like": like,
    "startswith": lambda text, pattern: text.startswith(pattern),
    "endswith": lambda text, pattern: text.endswith(pattern),
    "contains": lambda text, pattern: pattern in text,
    "position": lambda needle, text: text.find(needle) + 1,
    "replace": lambda text, search, replacement: text.replace(search, replacement),
    "concat": lambda *texts: "".join(texts),
    "lpad": lambda text, length, pad: padded(text, length, pad, on_the_left=True),
    "rpad": lambda text, length, pad: padded(text, length, pad, on_the_left=False),
    "repeat": lambda text, times: text * times,
    "reverse": lambda text: text[::-1],
    "init_cap": init_cap,
    "split": split,
    "split_index": split_index,
    "regexp": _regular(regular_expressions.matches),
    "regexp_count": _regular(regular_expressions.count),
    "regexp_extract": _regular(regular_expressions.extracted),
    "regexp_replace": _regular(regular_expressions.replaced),
}
