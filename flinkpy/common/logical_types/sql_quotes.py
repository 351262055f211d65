"""Names and texts as SQL writes them."""

from __future__ import annotations


def quoted_name(name: str) -> str:
    """A name in backquotes.

    >>> quoted_name("a`b")
    '`a``b`'
    """
    return f"`{name.replace('`', '``')}`"


def quoted_text(text: str) -> str:
    """A text in single quotes.

    >>> quoted_text("it's")
    "'it''s'"
    """
    return f"'{text.replace(chr(39), chr(39) * 2)}'"
