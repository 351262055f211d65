"""The character sets of text files."""

from __future__ import annotations

import codecs

from flinkpy.core.errors import ProgramError


def check_encoding(encoding: str) -> None:
    """Raises ProgramError for an encoding that Python does not know."""
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise ProgramError(f"{encoding!r} is no character set Python knows") from None
