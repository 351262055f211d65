"""Reads an expression from a text such as ``(col('price') > 5) & (col('kind') == 'bid')``, as its
``repr`` shows it. Nothing is executed: a text may come from anybody."""

from __future__ import annotations

import ast
import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from flinkpy.columns import expression_functions
from flinkpy.columns.expression import Expression
from flinkpy.core.errors import ProgramError

LONGEST = 10_000  # characters

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(expression_functions, name) for name in expression_functions.__all__
}
_VALUES: dict[str, Callable[..., Any]] = {
    "datetime.date": datetime.date,
    "datetime.datetime": datetime.datetime,
    "datetime.time": datetime.time,
    "datetime.timedelta": datetime.timedelta,
    "Decimal": Decimal,
}
_METHODS = {name for name in dir(Expression) if not name.startswith("_")}
_COMPARISONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Lt: lambda left, right: left < right,
    ast.LtE: lambda left, right: left <= right,
    ast.Gt: lambda left, right: left > right,
    ast.GtE: lambda left, right: left >= right,
    ast.Eq: lambda left, right: left == right,
    ast.NotEq: lambda left, right: left != right,
}
_OPERATIONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
    ast.BitAnd: lambda left, right: left & right,
    ast.BitOr: lambda left, right: left | right,
}


def expression_of_text(text: str) -> Expression:
    """The expression that the text shows. Raises ProgramError for one that is none.

    >>> expression_of_text("(col('price') > 5) & col('kind').in_('bid', 'ask')")
    ((col('price') > 5) & col('kind').in_('bid', 'ask'))
    """
    if len(text) > LONGEST:
        raise ProgramError(f"an expression of {len(text)} characters; {LONGEST} are possible")
    try:
        found = _read(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise ProgramError(f"{text!r:.200} is no expression: {error}") from None
    if not isinstance(found, Expression):
        raise ProgramError(f"{text!r:.200} is no expression: it has no col(...)")
    return found


def text_of_expression(expression: Expression) -> str:
    """The expression as such a text. Raises ProgramError for one that cannot be read again, such
    as one with a type in it."""
    text = repr(expression)
    try:
        again = repr(expression_of_text(text))
    except ProgramError:
        again = None
    if again != text:
        raise ProgramError(f"{text:.200} cannot be written as a text that is read again")
    return text


def _read(node: ast.AST) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(map(_read, node.elts))
    if isinstance(node, ast.Call):
        return _called(node)
    if isinstance(node, ast.Attribute):
        return _member(node)
    if isinstance(node, ast.UnaryOp):
        return _of_one(node)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = _of_columns(_read(node.left), _read(node.right))
        return _OPERATIONS[type(node.op)](left, right)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        left, right = _of_columns(_read(node.left), _read(node.comparators[0]))
        return _COMPARISONS[type(node.ops[0])](left, right)
    raise ValueError(
        f"{ast.unparse(node):.100} cannot stand there; combine comparisons with & | ~ and "
        "parentheses"
    )


def _of_columns(left: object, right: object) -> tuple[Any, Any]:
    """Two operands, of which one is an expression: what is computed here stays small."""
    if not isinstance(left, Expression) and not isinstance(right, Expression):
        raise ValueError(f"{left!r:.40} and {right!r:.40} are values, and one must be a column")
    return left, right


def _of_one(node: ast.UnaryOp) -> Any:
    operand = _read(node.operand)
    if isinstance(node.op, ast.USub):
        return -operand
    if isinstance(node.op, ast.Invert) and isinstance(operand, Expression):
        return ~operand
    raise ValueError(f"{ast.unparse(node):.100} cannot stand there")


def _called(node: ast.Call) -> Any:
    name = ast.unparse(node.func)
    function: Any = _FUNCTIONS.get(name) or _VALUES.get(name)
    if function is None:
        if not isinstance(node.func, ast.Attribute):
            raise ValueError(f"there is no function {name:.40}")
        function = _member(node.func)
        if not callable(function):
            raise ValueError(f"{name:.100} takes no arguments")
    if any(each.arg is None for each in node.keywords):
        raise ValueError("** cannot stand there")
    named = {str(each.arg): _read(each.value) for each in node.keywords}
    return function(*map(_read, node.args), **named)


def _member(node: ast.Attribute) -> Any:
    """A method or a property of an expression."""
    if node.attr not in _METHODS:
        raise ValueError(f"an expression has no {node.attr:.40}")
    of = _read(node.value)
    if not isinstance(of, Expression):
        raise ValueError(f"{of!r:.40} is no expression, so it has no {node.attr}")
    return getattr(of, node.attr)
