"""What the text of a function leaves open about its results, so that only those are looked at that
may be a coroutine or a generator (``flinkpy.core.codegen.idle_results``).

Most functions end in a comparison, a calculation or a new container, and a look at the bytecode
says so. It costs nothing per record."""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import itertools
from types import CodeType

from flinkpy.core.codegen.escape_analysis import Kind, kind_of_results, makes_generators
from flinkpy.core.codegen.expression_trees import parsed
from flinkpy.core.codegen.inlining import METHODS_OF_VALUES, inlined, may_be_idle

# What ends in one of these gives no coroutine, generator or function
_MAKE_A_VALUE = ("COMPARE_OP", "CONTAINS_OP", "IS_OP", "UNARY_", "BINARY_", "BUILD_", "LOAD_CONST")
_GIVE_ANYTHING = frozenset({"BINARY_SUBSCR"})
_BETWEEN = frozenset({"COPY", "TO_BOOL", "CACHE", "EXTENDED_ARG", "DUP_TOP"})
_MOST_INSTRUCTIONS = 2_000


def may_give_idle(function: object, *, of_many: bool = False) -> bool:
    """Whether a result of this function of one argument may be a coroutine or a generator; with
    ``of_many`` one of the results that it returns in a container.

    >>> may_give_idle(lambda line: line.split()), may_give_idle(lambda line: print(line))
    (False, True)
    >>> may_give_idle(lambda line: [print(line), 1])
    False
    """
    expression = inlined(function, "x")
    if expression is not None:
        return may_be_idle(expression)
    if not of_many and _ends_in_values(function):
        return False
    kind = kind_of_results(function)
    return kind is None or (kind is not Kind.FIXED and makes_generators(function))


def may_be_always_true(function: object) -> bool:
    """Whether a result of this condition may be something that is true whatever it is about: what
    is idle, or a function that was not called.

    >>> may_be_always_true(lambda text: text.isdigit), may_be_always_true(lambda text: text > "a")
    (True, False)
    """
    expression = inlined(function, "x")
    if expression is None:
        return not _ends_in_values(function) and kind_of_results(function) is not Kind.FIXED
    made = parsed(expression)
    names_a_method = isinstance(made, ast.Attribute) and made.attr in METHODS_OF_VALUES
    return names_a_method or may_be_idle(expression)


def _ends_in_values(function: object) -> bool:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return isinstance(code, CodeType) and _all_ends_make_values(code)


@functools.lru_cache(maxsize=1024)
def _all_ends_make_values(code: CodeType) -> bool:
    """Whether each instruction that leads to a return, by standing before it or by a jump, makes a
    value."""
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return False
    if len(code.co_code) > 2 * _MOST_INSTRUCTIONS:
        return False
    instructions = [each for each in dis.get_instructions(code) if each.opname not in _BETWEEN]
    returns = {each.offset for each in instructions if each.opname == "RETURN_VALUE"}
    for before, each in itertools.pairwise(instructions):
        if (each.offset in returns or _leads_to(each, returns)) and not _makes_a_value(before):
            return False
    return True


def _leads_to(one: dis.Instruction, places: set[int]) -> bool:
    return "JUMP" in one.opname and one.argval in places


def _makes_a_value(one: dis.Instruction) -> bool:
    return one.opname.startswith(_MAKE_A_VALUE) and one.opname not in _GIVE_ANYTHING
