"""Updates of (key, value) pairs that keep the key: if the state is a table of numbers, only the
value is read and written.

Whether an update has that form is seen from its expression (``flinkpy.core.codegen.inlining``).
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from flinkpy.core.codegen.expression_trees import parsed


class PairForm(NamedTuple):
    """An update of pairs, rewritten as one of their values: ``update`` is an expression over
    ``current`` (the value so far) and ``record``."""

    key_at: int
    update: str

    @property
    def emitted(self) -> str:
        """The pair, as an expression over ``key`` and ``value``."""
        return "(value, key)" if self.key_at else "(key, value)"

    def pair_of(self, key: object, value: object) -> tuple[object, object]:
        """The pair itself."""
        return (value, key) if self.key_at else (key, value)


def pair_form(update: str, selected: str) -> PairForm | None:
    """The PairForm of an update over ``current`` and ``record``, if the key is ``selected`` of
    ``record``; None for any other update.

    >>> pair_form("(current[0], current[1] + record[1])", "record[0]")
    PairForm(key_at=0, update='current + record[1]')
    >>> pair_form("(current[0] + 1, current[1] + record[1])", "record[0]") is None
    True
    """
    key_at = _field_of(parsed(selected), "record")
    if key_at not in (0, 1):
        return None
    value = _value_of(parsed(update), key_at)
    if value is None:
        return None
    rewritten = _ValueAlone(1 - key_at)
    text = ast.unparse(rewritten.visit(value))
    return PairForm(key_at, text) if rewritten.complete else None


def _field_of(node: ast.expr, name: str) -> int | None:
    """The index in ``name[index]``; None for other expressions."""
    match node:
        case ast.Subscript(value=ast.Name(id=found), slice=ast.Constant(value=int(index))) if (
            found == name
        ):
            return index
    return None


def _value_of(node: ast.expr, key_at: int) -> ast.expr | None:
    """The new value of the pair's other field, if the update keeps the pair's key; else None."""
    match node:
        case ast.Tuple(elts=[_, _] as fields) if key_at in (
            _field_of(fields[key_at], "current"),
            _field_of(fields[key_at], "record"),
        ):
            return fields[1 - key_at]
    return None


class _ValueAlone(ast.NodeTransformer):
    """Rewrites ``current[value_at]`` as ``current``; ``complete`` is False if the pair is used in
    any other way."""

    def __init__(self, value_at: int) -> None:
        self._value_at = value_at
        self.complete = True

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if _field_of(node, "current") == self._value_at:
            return ast.Name("current", ast.Load())
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        self.complete = self.complete and node.id != "current"
        return node
