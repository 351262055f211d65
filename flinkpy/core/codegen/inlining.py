"""Turns the body of a user's function into an expression, which replaces the call in a generated
loop.

Calling a lambda costs more than most lambdas do. If a function consists only of operators, fields,
constants, methods and plain builtins over its parameters, this module reads its bytecode back into
an expression. To make sure that it was read correctly, the expression is compiled again and used
only if it yields exactly the function's instructions. So with a new Python version fewer functions
may be inlined, but none wrongly.

A function is never inlined if it calls functions of the program or reads the program's names (they
could change), if it branches, or while a debugger or profiler is active. When an inlined expression
raises, ``raised_by`` calls the function itself with the same arguments, so that the error has the
user's frame."""

from __future__ import annotations

import ast
import datetime
import dis
import math
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from flinkpy.core.codegen.expression_trees import parsed

_PLAIN = frozenset({int, float, str, bytes, bool, type(None)})
_BUILTINS = frozenset(
    {
        "abs",
        "bool",
        "bytes",
        "chr",
        "divmod",
        "float",
        "int",
        "len",
        "list",
        "max",
        "min",
        "ord",
        "repr",
        "round",
        "str",
        "tuple",
    }
)
_IGNORED = frozenset({"RESUME", "NOP", "CACHE", "EXTENDED_ARG", "TO_BOOL", "PRECALL"})
_CALLS = frozenset({"CALL", "CALL_FUNCTION", "CALL_METHOD"})
_RETURNS = frozenset({"RETURN_VALUE", "RETURN_CONST"})
_UNARY = {"UNARY_NEGATIVE": "-", "UNARY_INVERT": "~", "UNARY_NOT": "not "}
_OLD_BINARY = {  # Python 3.10 has an instruction for each
    "BINARY_ADD": "+",
    "BINARY_SUBTRACT": "-",
    "BINARY_MULTIPLY": "*",
    "BINARY_TRUE_DIVIDE": "/",
    "BINARY_FLOOR_DIVIDE": "//",
    "BINARY_MODULO": "%",
    "BINARY_POWER": "**",
    "BINARY_AND": "&",
    "BINARY_OR": "|",
    "BINARY_XOR": "^",
    "BINARY_LSHIFT": "<<",
    "BINARY_RSHIFT": ">>",
}
_VARARGS, _VARKEYWORDS, _GENERATORS = 0x04, 0x08, 0x20 | 0x80 | 0x100 | 0x200
_LONGEST = 400  # instructions
METHODS_OF_VALUES = frozenset(
    name
    for kind in (str, bytes, int, float, list, dict, tuple, frozenset, datetime.datetime)
    for name in dir(kind)
)


class _Unreadable(Exception):
    """An instruction that cannot be part of an inlined expression."""


def inlined(function: object, *arguments: str) -> str | None:
    """The function's result as an expression over variables of these names; None if the function
    has to be called.

    >>> inlined(lambda pair, other: (pair[0], pair[1] + other[1]), "a", "b")
    '(a[0], (a[1] + b[1]),)'
    >>> inlined(lambda line: line.split(), "x"), inlined(lambda line: print(line), "x")
    ('x.split()', None)
    """
    if (
        type(function) is not FunctionType
        or sys.gettrace() is not None
        or sys.getprofile() is not None
    ):
        return None
    code = function.__code__
    names = code.co_varnames
    if (
        code.co_flags & (_VARARGS | _VARKEYWORDS | _GENERATORS)
        or code.co_kwonlyargcount
        or code.co_freevars
        or code.co_cellvars
        or not (code.co_argcount == len(arguments) == code.co_nlocals)
        or len(code.co_code) > 2 * _LONGEST
    ):
        return None
    instructions = _instructions(function)
    if any(
        name == "LOAD_GLOBAL" and (value not in _BUILTINS or value in function.__globals__)
        for name, value, _ in instructions
    ):
        return None
    try:
        own = _expression(instructions, dict(zip(names, names)))
        if _instructions(_compiled(names, own)) != instructions:
            return None
        return _expression(instructions, dict(zip(names, arguments)))
    except (_Unreadable, SyntaxError, IndexError):
        return None


def call_or_inline(function: object, called: str, *arguments: str) -> str:
    """The inlined expression, or else the call ``called(arguments)``.

    >>> call_or_inline(len, "f0", "x0")
    'f0(x0)'
    """
    return inlined(function, *arguments) or f"{called}({', '.join(arguments)})"


def may_be_idle(expression: str) -> bool:
    """Whether the result of an inlined expression may be a coroutine or a generator: only a method
    can give one, of a class of the program's own. Methods are known by name.

    >>> may_be_idle("x.split()[0]"), may_be_idle("x.fetch()")
    (False, True)
    """
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr not in METHODS_OF_VALUES
        for node in ast.walk(parsed(expression))
    )


def gives_a_truth(expression: str) -> bool:
    """Whether the result of an inlined expression is made by an operator, as truth values are."""
    made = parsed(expression)
    return isinstance(made, (ast.Compare, ast.BinOp, ast.UnaryOp))


def raised_by(
    function: Callable[..., Any], arguments: Sequence[Any], error: BaseException
) -> BaseException:
    """The error as the inlined function itself raises it, with the user's frame. Returns ``error``
    if the function was not inlined, or does not raise the same type again. What is no
    Exception may have interrupted it, and then it is not called again."""
    if not isinstance(error, Exception):
        return error
    if inlined(function, *(f"a{position}" for position in range(len(arguments)))) is None:
        return error
    try:
        function(*arguments)
    except Exception as again:
        return again if type(again) is type(error) else error
    return error


def _compiled(names: Sequence[str], expression: str) -> FunctionType:
    function = eval(f"lambda {', '.join(names)}: {expression}")
    assert isinstance(function, FunctionType)
    return function


def _instructions(function: FunctionType) -> list[tuple[str, Any, Any]]:
    """The instructions that are executed; constants with their types, because 1, 1.0 and True are
    equal."""
    return [
        (each.opname, type(each.argval), repr(each.argval))
        if each.opname.startswith("LOAD_CONST") or each.opname == "RETURN_CONST"
        else (each.opname, each.argval, each.argrepr)
        for each in dis.get_instructions(function)
        if each.opname not in _IGNORED
    ]


def _expression(instructions: list[tuple[str, Any, Any]], variables: dict[str, str]) -> str:
    """Executes the instructions with expressions on the stack instead of values."""
    stack: list[str] = []
    for name, value, shown in instructions:
        if name in _RETURNS:
            if name == "RETURN_CONST":
                stack.append(_constant(value, shown))
            if len(stack) != 1:
                raise _Unreadable
            return stack[0]
        stack.append(_step(name, value, shown, stack, variables))
        if name in ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"):
            stack[-1:] = [variables[each] for each in value]
    raise _Unreadable


def _step(name: str, value: Any, shown: str, stack: list[str], variables: dict[str, str]) -> str:
    if name in ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"):
        return ""
    if name.startswith("LOAD_FAST"):
        return variables[value]
    if name.startswith("LOAD_CONST"):
        return _constant(value, shown)
    if name == "LOAD_SMALL_INT":
        return repr(value)
    if name == "LOAD_GLOBAL":
        return str(value)
    if name in ("LOAD_ATTR", "LOAD_METHOD"):
        return f"{_operand(stack.pop())}.{value}"
    if name in _CALLS:
        arguments = _popped(stack, value)
        return f"{stack.pop()}({', '.join(arguments)})"
    if name in _UNARY:
        return f"({_UNARY[name]}{stack.pop()})"
    if name == "BUILD_TUPLE":
        return f"({''.join(f'{item}, ' for item in _popped(stack, value)).rstrip(' ')})"
    if name == "BUILD_LIST":
        return f"[{', '.join(_popped(stack, value))}]"
    right, left = stack.pop(), stack.pop()
    if name == "BINARY_SUBSCR" or (name == "BINARY_OP" and shown == "[]"):
        return f"{_operand(left)}[{right}]"
    return f"({left} {_operator(name, value, shown)} {right})"


def _operator(name: str, value: Any, shown: str) -> str:
    if name == "BINARY_OP" and not shown.endswith("="):
        return shown
    if name == "COMPARE_OP":
        return str(value)
    if name in ("IS_OP", "CONTAINS_OP"):
        return {
            ("IS_OP", 0): "is",
            ("IS_OP", 1): "is not",
            ("CONTAINS_OP", 0): "in",
            ("CONTAINS_OP", 1): "not in",
        }[name, value]
    found = _OLD_BINARY.get(name)
    if found is None:
        raise _Unreadable
    return found


def _operand(expression: str) -> str:
    """The expression so that a dot or bracket can follow it: a number would swallow the dot."""
    return f"({expression})" if expression[0].isdigit() or expression[0] == "-" else expression


def _popped(stack: list[str], count: int) -> list[str]:
    if count > len(stack):
        raise _Unreadable
    items = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    return items


def _constant(kind: Any, text: str) -> str:
    """The text of a constant, if its repr reproduces it exactly."""
    if kind is float and not math.isfinite(float(text)):
        raise _Unreadable
    if kind in _PLAIN:
        return f"({text})" if text.startswith("-") else text
    if kind is tuple and "<" not in text and "inf" not in text and "nan" not in text:
        return text
    raise _Unreadable
