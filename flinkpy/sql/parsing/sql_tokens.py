"""The words and signs of a statement, each with its place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from flinkpy.sql.sql_errors import Span


class TokenKind(Enum):
    """What a token is by itself, before any grammar."""

    WORD = "word"
    QUOTED_NAME = "name in backquotes"
    TEXT = "text"
    BYTES = "bytes"  # X'4142'
    NUMBER = "number"
    SIGN = "sign"
    END = "end of the statement"


@dataclass(frozen=True)
class Token:
    """``value`` is what it says, without quotes. ``key`` is what a grammar compares: a word in
    capital letters or a sign, and nothing for names in quotes, texts and numbers."""

    kind: TokenKind
    value: str
    key: str
    span: Span
