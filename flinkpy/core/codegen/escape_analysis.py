"""Escape analysis: shows from a function's bytecode that nobody else holds the results it returns,
so that they need not be copied.

The functions in question take one argument and are called with a plain value: a text, a number or
the like (``PLAIN``). If such a function works only with plain values and with containers it made
itself, and calls only builtins and methods of these, it has no place to keep its result: the result
either cannot be changed, or is new.

The analysis executes the bytecode on kinds instead of values (an abstract interpretation). A frame
holds the kind of each place on the stack and of each local variable. Where two branches meet, their
frames are merged, and a loop is followed until its frame no longer changes. There are three kinds
(``Kind``). Whatever is not known to be harmless ends the analysis with the answer "cannot tell": a
call of another function, an attribute, a global variable, an exception handler, or an instruction
that this module does not know. After each instruction the depth of the stack is compared with what
the interpreter itself says (``dis.stack_effect``), so a new Python version leads to "cannot tell",
not to a wrong answer.

The caller must check at each call that the argument is a plain value.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Mapping
from enum import IntEnum
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

PLAIN: frozenset[type] = frozenset({str, int, float, bool, bytes, type(None)})
_MAX_INSTRUCTIONS = 600
_VERSION = tuple(sys.version_info[:2])


class Kind(IntEnum):
    """What a value may be, from the most to the least that is known about it: each kind includes
    the ones before."""

    FIXED = 0  # a plain value, or a tuple of such: it cannot be changed
    FLAT = 1  # or a container or iterator of FIXED values, made by the function
    NEW = 2  # or anything built of those by the function


def makes_generators(function: object) -> bool:
    """Whether a function for which ``kind_of_results`` is known may return a generator: it has a
    ``yield``, or an expression that is a generator.

    >>> makes_generators(lambda line: (word for word in line)), makes_generators(len)
    (True, False)
    """
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and (
        bool(code.co_flags & inspect.CO_GENERATOR)
        or any(getattr(each, "co_name", "") == "<genexpr>" for each in code.co_consts)
    )


class _CannotTell(Exception):
    """The function does something that might keep a value, or that is not known here."""


class _Callable(NamedTuple):
    """A builtin, a method or a comprehension on the stack, which will be called."""

    name: str
    owner: Kind | None  # of a method
    code: CodeType | None = None  # of a comprehension


_StackItem = Any  # a Kind for a value, a _Callable, or _EMPTY
_EMPTY = object()  # an empty place on the stack
# the stack and the locals
_Frame = tuple[tuple[_StackItem, ...], tuple[tuple[str, _StackItem], ...]]


def kind_of_results(function: object) -> Kind | None:
    """The kind of what a function of one argument returns (a generator function: yields) for a
    plain value; None if that cannot be told.

    >>> (
    ...     kind_of_results(lambda line: [(word, 1) for word in line.split()]),
    ...     kind_of_results(lambda line: print(line)),
    ... )
    (<Kind.FLAT: 1>, None)
    """
    names: dict[str, _StackItem] = {}
    if type(function) is MethodType:
        function = function.__func__
        names = (
            dict.fromkeys(function.__code__.co_varnames[:1], _EMPTY)
            if type(function) is FunctionType
            else {}
        )
    if type(function) is not FunctionType:
        return None
    code = function.__code__
    if (
        code.co_argcount != len(names) + 1
        or code.co_kwonlyargcount
        or code.co_flags & 0x0C
        or code.co_freevars
    ):
        return None
    argument = code.co_varnames[len(names)]
    names[argument] = Kind.FIXED
    try:
        return _Analysis(code, names, frozenset({argument}), function.__globals__).kind_of_result()
    except (_CannotTell, IndexError, ValueError, KeyError, RecursionError):
        return None


# -- what may be called ----------------------------------------------------------------------------

_GIVE_FIXED = frozenset(
    {
        "abs",
        "all",
        "any",
        "bin",
        "bool",
        "chr",
        "divmod",
        "float",
        "hash",
        "hex",
        "int",
        "len",
        "max",
        "min",
        "oct",
        "ord",
        "range",
        "repr",
        "round",
        "str",
        "sum",
    }
)
_GIVE_FLAT = frozenset(
    {"dict", "enumerate", "frozenset", "iter", "list", "reversed", "set", "sorted", "tuple", "zip"}
)
_METHODS_GIVE_FIXED = frozenset(
    {
        "capitalize",
        "casefold",
        "center",
        "count",
        "endswith",
        "expandtabs",
        "find",
        "index",
        "isalnum",
        "isalpha",
        "isascii",
        "isdecimal",
        "isdigit",
        "islower",
        "isnumeric",
        "isspace",
        "istitle",
        "isupper",
        "is_integer",
        "join",
        "ljust",
        "lower",
        "lstrip",
        "partition",
        "removeprefix",
        "removesuffix",
        "replace",
        "rfind",
        "rindex",
        "rjust",
        "rpartition",
        "rstrip",
        "startswith",
        "strip",
        "swapcase",
        "title",
        "upper",
        "zfill",
    }
)
_METHODS_GIVE_FLAT = frozenset({"copy", "items", "keys", "rsplit", "split", "splitlines", "values"})
_METHODS_OF_CONTAINERS = frozenset(
    {
        "add",
        "append",
        "clear",
        "discard",
        "get",
        "insert",
        "pop",
        "remove",
        "reverse",
        "setdefault",
        "sort",
    }
)
_METHODS_THAT_TAKE_MANY = frozenset({"extend", "update"})
# allowed without arguments only: a codec may be the program's own
_PLAIN_UTF8 = frozenset({"decode", "encode"})


def _kind_of_call(what: _Callable, arguments: list[_StackItem]) -> Kind:
    """The kind of what a builtin or a method returns. The arguments must be flat, so that the call
    runs no method of the program's own."""
    kinds = [_flat_kind(argument) for argument in arguments]
    if what.owner is None:
        # of several containers ``max`` would return one of them
        if what.name in _GIVE_FIXED and (len(kinds) < 2 or max(kinds) is Kind.FIXED):
            return Kind.FIXED
        if what.name in _GIVE_FLAT:
            return Kind.FLAT
    elif what.owner > Kind.FLAT:
        raise _CannotTell
    elif what.name in _METHODS_GIVE_FIXED or (what.name in _PLAIN_UTF8 and not kinds):
        return Kind.FIXED
    elif what.name in _METHODS_GIVE_FLAT:
        return Kind.FLAT
    elif (
        what.name in _METHODS_OF_CONTAINERS and set(kinds) <= {Kind.FIXED}
    ) or what.name in _METHODS_THAT_TAKE_MANY:
        return Kind.FIXED
    raise _CannotTell


def _flat_kind(item: _StackItem) -> Kind:
    """The kind of a value that may be computed with, because that runs only methods of builtins."""
    if not isinstance(item, Kind) or item > Kind.FLAT:
        raise _CannotTell
    return item


def _kind_of_container(parts: list[_StackItem], kind_of_fixed: Kind) -> Kind:
    """The kind of a new container: ``kind_of_fixed`` if all its parts are FIXED."""
    if not all(isinstance(part, Kind) for part in parts):
        raise _CannotTell
    return kind_of_fixed if all(part is Kind.FIXED for part in parts) else Kind.NEW


def _kind_of_constant(value: Any) -> Kind:
    if type(value) in PLAIN or (
        type(value) in (tuple, frozenset)
        and all(_kind_of_constant(each) is Kind.FIXED for each in value)
    ):
        return Kind.FIXED
    raise _CannotTell


# -- the instructions ------------------------------------------------------------------------------

_NO_EFFECT = frozenset(
    {
        "RESUME",
        "NOP",
        "CACHE",
        "EXTENDED_ARG",
        "TO_BOOL",
        "PRECALL",
        "MAKE_CELL",
        "COPY_FREE_VARS",
        "JUMP_FORWARD",
        "JUMP_BACKWARD",
        "JUMP_ABSOLUTE",
        "JUMP_BACKWARD_NO_INTERRUPT",
    }
)
_END_THE_CALL = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"})
_ALWAYS_JUMP = frozenset(
    {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD_NO_INTERRUPT"}
)
# dis.stack_effect counts these differently from version to version:
_EFFECT_VARIES = frozenset(
    {"RETURN_GENERATOR", "GEN_START", "END_FOR", "PRECALL", "CALL", "CALL_METHOD"}
)
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_CLEAN_UP = frozenset({"SWAP", "POP_TOP", "STORE_FAST", "COPY", "RERAISE"})
_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class _Analysis:
    """Executes one code object on kinds. ``names``: the kinds of its arguments; ``cells``: the
    variables of an enclosing function it may read."""

    def __init__(
        self,
        code: CodeType,
        names: dict[str, _StackItem],
        cells: frozenset[str],
        global_names: Mapping[str, Any],
    ) -> None:
        self._code = code
        self._names = names
        self._cells = cells
        self._globals = global_names
        self._results: list[Kind] = []
        self._generates = bool(code.co_flags & 0x20)
        if code.co_flags & 0x380 or not set(code.co_freevars) <= cells:
            raise _CannotTell

    def kind_of_result(self) -> Kind:
        """The kind of what a call returns, or yields."""
        instructions = list(dis.get_instructions(self._code))
        if len(instructions) > _MAX_INSTRUCTIONS:
            raise _CannotTell
        self._check_handlers(instructions)
        places = {each.offset: number for number, each in enumerate(instructions)}
        seen: dict[int, _Frame] = {}
        waiting: list[tuple[int, _Frame]] = [(0, ((), tuple(sorted(self._names.items()))))]
        while waiting:
            number, frame = waiting.pop()
            known = seen.get(number)
            if known is not None:
                frame = _merged(known, frame)
                if frame == known:
                    continue
            seen[number] = frame
            one = instructions[number]
            for jumps in (False, True) if one.opcode in _JUMPS else (False,):
                if one.opname in _END_THE_CALL and self._note_result(one, frame):
                    break
                if jumps or one.opname not in _ALWAYS_JUMP:
                    waiting.append(
                        (
                            places[one.argval] if jumps else number + 1,
                            self._frame_after(one, frame, jumps),
                        )
                    )
        return max(self._results, default=Kind.FIXED)

    def _check_handlers(self, instructions: list[dis.Instruction]) -> None:
        """An exception may end the call but must not be caught, because the code of a handler is
        not followed."""
        if _VERSION < (3, 11):
            return  # there, setting up a handler is an instruction, which is not known here
        for entry in dis._parse_exception_table(self._code):  # type: ignore[attr-defined]
            handler = [each.opname for each in instructions if each.offset >= entry.target]
            end = handler.index("RERAISE") if "RERAISE" in handler else len(handler)
            generator_end = self._generates and handler[0] == "CALL_INTRINSIC_1"
            if not generator_end and not _CLEAN_UP.issuperset(handler[: end + 1]):
                raise _CannotTell

    def _note_result(self, one: dis.Instruction, frame: _Frame) -> bool:
        if one.opname in ("RETURN_VALUE", "RETURN_CONST") and not self._generates:
            given = _kind_of_constant(one.argval) if one.opname == "RETURN_CONST" else frame[0][-1]
            if not isinstance(given, Kind):
                raise _CannotTell
            self._results.append(given)
        return True

    def _frame_after(self, one: dis.Instruction, frame: _Frame, jumps: bool) -> _Frame:
        stack, names = list(frame[0]), dict(frame[1])
        self._step(one, stack, names, jumps)
        effect = dis.stack_effect(
            one.opcode, one.arg if one.opcode >= dis.HAVE_ARGUMENT else None, jump=jumps
        )
        if one.opname not in _EFFECT_VARIES and len(stack) - len(frame[0]) != effect:
            raise _CannotTell
        return tuple(stack), tuple(sorted(names.items(), key=_name))

    def _step(
        self,
        one: dis.Instruction,
        stack: list[_StackItem],
        names: dict[str, _StackItem],
        jumps: bool,
    ) -> None:
        name, value = one.opname, one.argval
        if name in _NO_EFFECT:
            return
        if "FAST" in name:
            _local_variable(name, value, stack, names)
        elif name.startswith("LOAD") or name in (
            "MAKE_FUNCTION",
            "SET_FUNCTION_ATTRIBUTE",
            "PUSH_NULL",
        ):
            self._load(one, stack)
        elif name.startswith("CALL"):
            self._call(name, one.arg or 0, stack)
        elif name == "YIELD_VALUE":
            self._results.append(Kind.FLAT if _kind(stack.pop()) is Kind.FIXED else Kind.NEW)
            stack.append(Kind.FIXED)
        elif one.opcode in _JUMPS:
            _branch(name, stack, jumps)
        elif name in ("RETURN_GENERATOR", "GEN_START"):
            stack += [Kind.FIXED] if name == "RETURN_GENERATOR" else []
        else:
            _compute(one, stack)

    def _load(self, one: dis.Instruction, stack: list[_StackItem]) -> None:
        name, value = one.opname, one.argval
        if name == "LOAD_CONST":
            stack.append(
                _Callable(value.co_name, None, value)
                if isinstance(value, CodeType)
                else _kind_of_constant(value)
            )
        elif name == "PUSH_NULL":
            stack.append(_EMPTY)
        elif name == "LOAD_GLOBAL":
            if value in self._globals or not (value in _GIVE_FIXED or value in _GIVE_FLAT):
                raise _CannotTell
            called: list[_StackItem] = [_Callable(value, None)]
            if _VERSION >= (3, 11) and (one.arg or 0) & 1:
                called.insert(1 if _VERSION >= (3, 13) else 0, _EMPTY)
            stack += called
        elif name == "LOAD_METHOD" or (
            name == "LOAD_ATTR" and _VERSION >= (3, 12) and (one.arg or 0) & 1
        ):
            stack += [_Callable(value, _flat_kind(stack.pop())), _EMPTY]
        elif name in ("LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF"):
            if value not in self._cells:
                raise _CannotTell
            stack.append(Kind.FIXED)  # it is the argument, which no comprehension assigns
        elif name == "MAKE_FUNCTION":
            self._make_function(one.arg or 0, stack)
        else:
            raise _CannotTell

    def _make_function(self, flags: int, stack: list[_StackItem]) -> None:
        """Only the function of a comprehension, with the cells it reads."""
        made = stack.pop() if _VERSION >= (3, 11) else stack.pop(-2)
        if _VERSION < (3, 11):
            stack.pop()  # its name
        if flags & ~0x08 or not isinstance(made, _Callable) or made.name not in _COMPREHENSIONS:
            raise _CannotTell
        if flags:
            stack.pop()
        stack.append(made)

    def _call(self, name: str, count: int, stack: list[_StackItem]) -> None:
        if name not in ("CALL", "CALL_FUNCTION", "CALL_METHOD"):
            raise _CannotTell
        arguments = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        called = [stack.pop() for _ in range(1 if name == "CALL_FUNCTION" else 2)][::-1]
        functions = [each for each in called if isinstance(each, _Callable)]
        arguments = [each for each in called if isinstance(each, Kind)] + arguments
        if len(functions) != 1:
            raise _CannotTell
        if functions[0].code is None:
            stack.append(_kind_of_call(functions[0], arguments))
            return
        (iterated,) = arguments
        _flat_kind(iterated)
        stack.append(
            _Analysis(
                functions[0].code, {".0": Kind.FLAT}, self._cells, self._globals
            ).kind_of_result()
        )


def _local_variable(
    name: str, value: Any, stack: list[_StackItem], names: dict[str, _StackItem]
) -> None:
    if name in ("LOAD_FAST", "LOAD_FAST_CHECK"):
        stack.append(names[value])
    elif name == "LOAD_FAST_LOAD_FAST":
        stack += [names[each] for each in value]
    elif name == "LOAD_FAST_AND_CLEAR":
        stack.append(names.pop(value, _EMPTY))
    elif name == "STORE_FAST":
        _store(value, stack, names)
    elif name == "STORE_FAST_STORE_FAST":
        for each in value:
            _store(each, stack, names)
    elif name == "STORE_FAST_LOAD_FAST":
        _store(value[0], stack, names)
        stack.append(names[value[1]])
    elif name == "DELETE_FAST":
        del names[value]
    else:
        raise _CannotTell


def _store(name: str, stack: list[_StackItem], names: dict[str, _StackItem]) -> None:
    value = stack.pop()
    if value is _EMPTY:
        names.pop(name, None)
    elif isinstance(value, Kind):
        names[name] = value
    else:
        raise _CannotTell


def _branch(name: str, stack: list[_StackItem], jumps: bool) -> None:
    if name == "FOR_ITER":
        _flat_kind(stack[-1])
        if not jumps or _VERSION >= (3, 12):
            stack.append(Kind.FIXED)
        else:
            stack.pop()
    elif name.startswith("POP_JUMP") or (
        name in ("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP") and not jumps
    ):
        stack.pop()
    elif name not in ("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"):
        raise _CannotTell


def _popped(stack: list[_StackItem], count: int) -> list[_StackItem]:
    if count > len(stack):
        raise _CannotTell
    items = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    return items


def _compute(one: dis.Instruction, stack: list[_StackItem]) -> None:
    name, count = one.opname, one.arg or 0
    if name == "BUILD_TUPLE":
        stack.append(_kind_of_container(_popped(stack, count), Kind.FIXED))
    elif name in ("BUILD_LIST", "BUILD_SET"):
        stack.append(_kind_of_container(_popped(stack, count), Kind.FLAT))
    elif name in ("BUILD_MAP", "BUILD_CONST_KEY_MAP"):
        stack.append(
            _kind_of_container(
                _popped(stack, 2 * count if name == "BUILD_MAP" else count + 1), Kind.FLAT
            )
        )
    elif name in ("LIST_APPEND", "SET_ADD", "MAP_ADD"):
        added = _kind_of_container(_popped(stack, 2 if name == "MAP_ADD" else 1), Kind.FLAT)
        stack[-count] = max(added, _kind(stack[-count]))
    elif name in ("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE"):
        _flat_kind(stack.pop())
    elif name == "STORE_SUBSCR":
        value, container, place = _popped(stack, 3)
        if (
            _flat_kind(container) is not Kind.FLAT
            or value is not Kind.FIXED
            or place is not Kind.FIXED
        ):
            raise _CannotTell
    else:
        _compute_on_plain_values(name, count, stack)


def _kind(item: _StackItem) -> Kind:
    if not isinstance(item, Kind):
        raise _CannotTell
    return item


def _compute_on_plain_values(name: str, count: int, stack: list[_StackItem]) -> None:
    if name in ("BINARY_SUBSCR", "BINARY_SLICE"):
        operands = [_flat_kind(each) for each in _popped(stack, 3 if name == "BINARY_SLICE" else 2)]
        slices = name == "BINARY_SLICE" or operands[1] is Kind.FLAT
        stack.append(operands[0] if slices else Kind.FIXED)
    elif name in ("COMPARE_OP", "IS_OP", "CONTAINS_OP"):
        for each in _popped(stack, 2):
            _flat_kind(each)
        stack.append(Kind.FIXED)
    elif name.startswith(("BINARY_", "INPLACE_")):
        stack.append(max(_flat_kind(each) for each in _popped(stack, 2)))
    elif name.startswith("UNARY_"):
        stack.append(_flat_kind(stack.pop()))
    elif name in (
        "FORMAT_VALUE",
        "FORMAT_SIMPLE",
        "FORMAT_WITH_SPEC",
        "CONVERT_VALUE",
        "BUILD_STRING",
    ):
        several = {
            "FORMAT_VALUE": 2 if count & 4 else 1,
            "FORMAT_WITH_SPEC": 2,
            "BUILD_STRING": count,
        }.get(name, 1)
        for each in _popped(stack, several):
            _flat_kind(each)
        stack.append(Kind.FIXED)
    elif name == "BUILD_SLICE":
        for each in _popped(stack, count):
            _flat_kind(each)
        stack.append(Kind.FLAT)
    elif name == "UNPACK_SEQUENCE":
        _flat_kind(stack.pop())
        stack += [Kind.FIXED] * count
    elif name in ("GET_ITER", "LIST_TO_TUPLE"):
        _flat_kind(stack.pop())
        stack.append(Kind.FLAT)
    else:
        _move_on_stack(name, count, stack)


def _move_on_stack(name: str, count: int, stack: list[_StackItem]) -> None:
    if name == "POP_TOP":
        stack.pop()
    elif name == "END_FOR":
        _popped(stack, 1 if _VERSION >= (3, 13) else 2)
    elif name in ("COPY", "DUP_TOP"):
        stack.append(stack[-(count or 1)])
    elif name == "SWAP":
        stack[-1], stack[-count] = stack[-count], stack[-1]
    elif name in ("ROT_TWO", "ROT_THREE", "ROT_FOUR"):
        stack.insert(len(stack) - {"ROT_TWO": 2, "ROT_THREE": 3, "ROT_FOUR": 4}[name], stack.pop())
    else:
        raise _CannotTell


def _merged(one: _Frame, other: _Frame) -> _Frame:
    """The frame where two branches meet; a variable that is bound in only one of them counts as
    unbound."""
    if len(one[0]) != len(other[0]):
        raise _CannotTell
    names, more = dict(one[1]), dict(other[1])
    stack = tuple([_merged_item(*each) for each in zip(one[0], other[0])])
    return stack, tuple(
        sorted(
            ((name, _merged_item(names[name], more[name])) for name in names.keys() & more.keys()),
            key=_name,
        )
    )


def _merged_item(one: _StackItem, other: _StackItem) -> _StackItem:
    if one == other:
        return one
    return max(_kind(one), _kind(other))


def _name(item: tuple[str, _StackItem]) -> str:
    return item[0]
