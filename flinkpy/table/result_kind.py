"""Whether a result has content, at PyFlink's module path."""

from __future__ import annotations

from enum import Enum


class ResultKind(Enum):
    """SUCCESS: the statement has done its work, and its only row says OK. SUCCESS_WITH_CONTENT: it
    has rows to read."""

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1
