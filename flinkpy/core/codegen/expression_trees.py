"""Parses expressions, one at a time.

Python 3.11 and 3.12 count how deep a syntax tree is in one place for all threads. If two threads
parse at once, as two tasks may that are opened at the same time, one of them gets a SystemError
("AST constructor recursion depth mismatch")."""

from __future__ import annotations

import ast
import threading

_LOCK = threading.Lock()


def parsed(expression: str) -> ast.expr:
    """The expression's tree. Raises SyntaxError.

    >>> ast.unparse(parsed("a+1"))
    'a + 1'
    """
    with _LOCK:
        return ast.parse(expression, mode="eval").body
