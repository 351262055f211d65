"""Functions written out in generated loops."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.codegen.inlining import call_or_inline, inlined, raised_by

LIMIT = 3


def named(record: Any) -> Any:
    """A function with a docstring."""
    return record[0]


def sum_of(a: Any, b: Any) -> Any:
    return (a[0], a[1] + b[1])


READABLE: list[Callable[..., Any]] = [
    lambda x: x,
    lambda x: x[0],
    lambda x: x[-1],
    lambda x: x["name"],
    lambda x: x.imag.real,
    lambda x: (x, 1),
    lambda x: (x,),
    lambda x: [x, x],
    lambda x: x * 0.908,
    lambda x: x % 123 == 0,
    lambda x: -x,
    lambda x: ~x,
    lambda x: not x,
    lambda x: x is None,
    lambda x: x is not None,
    lambda x: x in (1, 2),
    lambda x: x not in (1, 2),
    lambda x: 2**-x,
    lambda x: (-2) ** x,
    lambda x: (x + 1) * 2 - 3 // x,
    lambda x: "it's" + x,
    lambda x: b"\x00" + x,
    lambda x: x.split(),
    lambda x: x.replace("a", "b").upper(),
    lambda x: len(x),
    lambda x: (int(x[0]), max(x[1], 2)),
    lambda x: None,
    lambda x: True,
    lambda x: (x[0], x[1] * 2, x[2]),
    named,
]
UNREADABLE: list[Callable[..., Any]] = [
    lambda x: print(x),
    lambda x: sum_of(x, x),
    lambda x: round(x, ndigits=1),
    lambda x: max(*x),
    lambda x: x.split(sep=" "),
    lambda x: x and 1,
    lambda x: 1 if x else 2,
    lambda x: 1 < x < 3,
    lambda x: {"a": x},
    lambda x: f"{x}",
    lambda x: [y + 1 for y in x],
    lambda x: x > LIMIT,
    lambda x, y=1: x + y,
    lambda *x: x,
    lambda **x: x,
    lambda x: (yield x),
    lambda x: lambda: x,
    lambda x: 1e400,
    lambda x: ...,
]


@pytest.mark.parametrize("function", READABLE)
def test_an_expression_is_read_back_whatever_the_names(function: Callable[..., Any]) -> None:
    text = inlined(function, "record")
    assert text is not None
    written_out = eval(f"lambda record: {text}")
    for value in (0, 1, 2, -7, 2.5, "ab", b"ab", (1, 2, 3), {"name": 5}, None, [4, 5, 6]):
        assert _outcome(written_out, value) == _outcome(function, value)


def _outcome(function: Callable[..., Any], *values: Any) -> Any:
    try:
        result = function(*values)
    except Exception as error:
        return type(error), str(error)
    return type(result), repr(result)


@pytest.mark.parametrize("function", UNREADABLE)
def test_what_calls_branches_or_reads_other_names_is_called(function: Callable[..., Any]) -> None:
    assert inlined(function, "record") is None
    assert call_or_inline(function, "f0", "record") == "f0(record)"


def test_two_parameters_may_change_places() -> None:
    assert inlined(sum_of, "b", "a") == "(b[0], (b[1] + a[1]),)"
    assert inlined(sum_of, "a") is None


def test_builtins_methods_and_objects_are_called() -> None:
    for function in (str, len, "x".join, type("C", (), {"__call__": lambda self, x: x})()):
        assert inlined(function, "x") is None


def test_a_builtin_that_the_program_named_anew_is_called() -> None:
    shadowed: dict[str, Any] = {"len": lambda value: -1}
    exec("f = lambda x: len(x)", shadowed)
    assert inlined(shadowed["f"], "x") is None


def test_nothing_is_written_out_under_a_debugger() -> None:
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        text = inlined(named, "x")
    finally:
        sys.settrace(before)
    assert text is None


OPERATORS = ["+", "-", "*", "//", "%", "&", "|", "^", "<", "<=", "==", "!=", ">", ">=", "<<", ">>"]
EXPRESSIONS = st.recursive(
    st.sampled_from(["x", "y", "x[0]", "y.real", "1", "-2", "0.5", "'s'", "None", "(1, 2)"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(
            lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
        ),
        st.tuples(st.sampled_from(["-", "~", "not "]), inner).map(
            lambda parts: f"{parts[0]}({parts[1]})"
        ),
        st.lists(inner, max_size=3).map(
            lambda items: f"({''.join(f'{item}, ' for item in items)})"
        ),
    ),
    max_leaves=8,
)


@given(
    EXPRESSIONS, st.sampled_from([0, 3, -2.5, "t", (4, 5)]), st.sampled_from([1, 2.0, "u", (6,)])
)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_what_is_read_back_does_the_same(expression: str, x: Any, y: Any) -> None:
    function = eval(f"lambda x, y: {expression}")
    text = inlined(function, "y", "x")  # the names the other way round
    if text is not None:
        assert _outcome(eval(f"lambda y, x: {text}"), x, y) == _outcome(function, x, y)


def test_an_error_is_raised_anew_by_the_function_it_came_from() -> None:
    try:
        eval(inlined(named, "record") or "", {"record": ()})
    except IndexError as error:
        again = raised_by(named, [()], error)
    assert again.__traceback__ is not None
    assert again.__traceback__.tb_next is not None
    assert again.__traceback__.tb_next.tb_frame.f_code is named.__code__


def test_a_function_that_was_called_is_not_called_again() -> None:
    calls: list[int] = []
    error = ValueError("first")
    assert raised_by(calls.append, [1], error) is error
    assert calls == []
