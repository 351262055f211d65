"""What a function makes of a plain value, read off its bytecode: things that cannot change, or new ones that nobody else has.

A function that can be read so keeps nothing of what it gives, if its argument is a text, a number or the like: it has nothing in its hands but plain
values and containers it made itself, and calls nothing but builtins and methods of these. Its names are followed through loops and branches, and
what each may stand for is of one of three kinds (``Kind``). All else is refused, also what a version of Python has that is not known here: each step
is held against what the interpreter says the instruction does to the stack. Whoever asks must look at the argument's type at each call (``PLAIN``).
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Mapping
from enum import IntEnum
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

PLAIN: frozenset[type] = frozenset({str, int, float, bool, bytes, type(None)})
_MOST = 600  # instructions
_VERSION = tuple(sys.version_info[:2])


class Kind(IntEnum):
    """Each is of the next kind too."""

    FIXED = 0  # plain values and tuples of them
    FLAT = 1  # or a container or iterator of these, made here
    NEW = 2  # or anything built of those


class _Refused(Exception):
    """Something that may keep what it gets, or is not known."""


class _Named(NamedTuple):
    """A function or method on the stack, to be called."""

    name: str
    owner: Kind | None  # of a method
    code: CodeType | None = None  # of a comprehension


_Item = Any  # a Kind, a _Named, or _NOTHING
_NOTHING = object()  # an empty place on the stack
_Frame = tuple[tuple[_Item, ...], tuple[tuple[str, _Item], ...]]  # the stack and the locals


def kind_of_results(function: Any) -> Kind | None:
    """Of what a function of one argument gives for a plain value; None where it cannot be told. A generator function gives what it yields.

    >>> kind_of_results(lambda line: [(word, 1) for word in line.split()]), kind_of_results(lambda line: print(line))
    (<Kind.FLAT: 1>, None)
    """
    names: dict[str, _Item] = {}
    if type(function) is MethodType:
        function = function.__func__
        names = dict.fromkeys(function.__code__.co_varnames[:1], _NOTHING) if type(function) is FunctionType else {}
    if type(function) is not FunctionType:
        return None
    code = function.__code__
    if code.co_argcount != len(names) + 1 or code.co_kwonlyargcount or code.co_flags & 0x0C or code.co_freevars:
        return None
    argument = code.co_varnames[len(names)]
    names[argument] = Kind.FIXED
    try:
        return _Reading(code, names, frozenset({argument}), function.__globals__).result()
    except (_Refused, IndexError, ValueError, KeyError, RecursionError):
        return None


# -- what may be called ---------------------------------------------------------------------------------------------------------

_GIVE_FIXED = frozenset({
    "abs", "all", "any", "bin", "bool", "chr", "divmod", "float", "hash", "hex", "int", "len", "max", "min", "oct", "ord", "range", "repr", "round",
    "str", "sum"})
_GIVE_FLAT = frozenset({"dict", "enumerate", "frozenset", "iter", "list", "reversed", "set", "sorted", "tuple", "zip"})
_METHODS_GIVE_FIXED = frozenset({
    "capitalize", "casefold", "center", "count", "endswith", "expandtabs", "find", "index", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit",
    "islower", "isnumeric", "isspace", "istitle", "isupper", "is_integer", "join", "ljust", "lower", "lstrip", "partition", "removeprefix",
    "removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition", "rstrip", "startswith", "strip", "swapcase", "title", "upper", "zfill"})
_METHODS_GIVE_FLAT = frozenset({"copy", "items", "keys", "rsplit", "split", "splitlines", "values"})
_METHODS_OF_CONTAINERS = frozenset({"add", "append", "clear", "discard", "get", "insert", "pop", "remove", "reverse", "setdefault", "sort"})
_METHODS_THAT_TAKE_MANY = frozenset({"extend", "update"})
_PLAIN_UTF8 = frozenset({"decode", "encode"})  # without arguments: nobody else's codec


def _called(what: _Named, arguments: list[_Item]) -> Kind:
    """What a builtin or a method gives. Its arguments are of kinds that call nobody."""
    kinds = [_flat(argument) for argument in arguments]
    if what.owner is None:
        if what.name in _GIVE_FIXED and (len(kinds) < 2 or max(kinds) is Kind.FIXED):  # of several containers ``max`` gives one
            return Kind.FIXED
        if what.name in _GIVE_FLAT:
            return Kind.FLAT
    elif what.owner > Kind.FLAT:
        raise _Refused
    elif what.name in _METHODS_GIVE_FIXED or (what.name in _PLAIN_UTF8 and not kinds):
        return Kind.FIXED
    elif what.name in _METHODS_GIVE_FLAT:
        return Kind.FLAT
    elif (what.name in _METHODS_OF_CONTAINERS and set(kinds) <= {Kind.FIXED}) or what.name in _METHODS_THAT_TAKE_MANY:
        return Kind.FIXED
    raise _Refused


def _flat(item: _Item) -> Kind:
    """The kind, if what is of it can be computed with: nobody's methods are called but those of builtins."""
    if not isinstance(item, Kind) or item > Kind.FLAT:
        raise _Refused
    return item


def _built(parts: list[_Item], empty: Kind) -> Kind:
    """A container of the parts: ``empty`` if they are all fixed."""
    if not all(isinstance(part, Kind) for part in parts):
        raise _Refused
    return empty if all(part is Kind.FIXED for part in parts) else Kind.NEW


def _constant(value: Any) -> Kind:
    if type(value) in PLAIN or (type(value) in (tuple, frozenset) and all(_constant(each) is Kind.FIXED for each in value)):
        return Kind.FIXED
    raise _Refused


# -- the instructions -----------------------------------------------------------------------------------------------------------

_NONE = frozenset({"RESUME", "NOP", "CACHE", "EXTENDED_ARG", "TO_BOOL", "PRECALL", "MAKE_CELL", "COPY_FREE_VARS", "JUMP_FORWARD",
                   "JUMP_BACKWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD_NO_INTERRUPT"})
_ENDS = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"})
_ALWAYS = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD_NO_INTERRUPT"})
_UNTOLD = frozenset({"RETURN_GENERATOR", "GEN_START", "END_FOR", "PRECALL", "CALL", "CALL_METHOD"})  # versions tell their effects in several ways
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_CLEANING = frozenset({"SWAP", "POP_TOP", "STORE_FAST", "COPY", "RERAISE"})
_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class _Reading:
    """Follows one code object until nothing new comes up."""

    def __init__(self, code: CodeType, names: dict[str, _Item], cells: frozenset[str], around: Mapping[str, Any]) -> None:
        self._code, self._names, self._cells, self._globals = code, names, cells, around
        self._given: list[Kind] = []
        self._generates = bool(code.co_flags & 0x20)
        if code.co_flags & 0x380 or not set(code.co_freevars) <= cells:
            raise _Refused

    def result(self) -> Kind:
        """What a call gives."""
        instructions = list(dis.get_instructions(self._code))
        if len(instructions) > _MOST:
            raise _Refused
        self._refuse_handlers(instructions)
        places = {each.offset: number for number, each in enumerate(instructions)}
        seen: dict[int, _Frame] = {}
        waiting: list[tuple[int, _Frame]] = [(0, ((), tuple(sorted(self._names.items()))))]
        while waiting:
            number, frame = waiting.pop()
            known = seen.get(number)
            if known is not None:
                frame = _joined(known, frame)
                if frame == known:
                    continue
            seen[number] = frame
            one = instructions[number]
            for jumps in ((False, True) if one.opcode in _JUMPS else (False,)):
                if one.opname in _ENDS and self._end(one, frame):
                    break
                if jumps or one.opname not in _ALWAYS:
                    waiting.append((places[one.argval] if jumps else number + 1, self._checked(one, frame, jumps)))
        return max(self._given, default=Kind.FIXED)

    def _refuse_handlers(self, instructions: list[dis.Instruction]) -> None:
        """An exception may end the call, but not be caught: what stands there is not followed."""
        if _VERSION < (3, 11):
            return  # it has an instruction that is not known here
        for entry in dis._parse_exception_table(self._code):  # type: ignore[attr-defined]
            handler = [each.opname for each in instructions if each.offset >= entry.target]
            end = handler.index("RERAISE") if "RERAISE" in handler else len(handler)
            generator_end = self._generates and handler[0] == "CALL_INTRINSIC_1"
            if not generator_end and not _CLEANING.issuperset(handler[: end + 1]):
                raise _Refused

    def _end(self, one: dis.Instruction, frame: _Frame) -> bool:
        if one.opname in ("RETURN_VALUE", "RETURN_CONST") and not self._generates:
            given = _constant(one.argval) if one.opname == "RETURN_CONST" else frame[0][-1]
            if not isinstance(given, Kind):
                raise _Refused
            self._given.append(given)
        return True

    def _checked(self, one: dis.Instruction, frame: _Frame, jumps: bool) -> _Frame:
        stack, names = list(frame[0]), dict(frame[1])
        self._step(one, stack, names, jumps)
        effect = dis.stack_effect(one.opcode, one.arg if one.opcode >= dis.HAVE_ARGUMENT else None, jump=jumps)
        if one.opname not in _UNTOLD and len(stack) - len(frame[0]) != effect:
            raise _Refused
        return tuple(stack), tuple(sorted(names.items(), key=_name))

    def _step(self, one: dis.Instruction, stack: list[_Item], names: dict[str, _Item], jumps: bool) -> None:
        name, value = one.opname, one.argval
        if name in _NONE:
            return
        if "FAST" in name:
            _local(name, value, stack, names)
        elif name.startswith("LOAD") or name in ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE", "PUSH_NULL"):
            self._load(one, stack)
        elif name.startswith("CALL"):
            self._call(name, one.arg or 0, stack)
        elif name == "YIELD_VALUE":
            self._given.append(Kind.FLAT if _known(stack.pop()) is Kind.FIXED else Kind.NEW)
            stack.append(Kind.FIXED)
        elif one.opcode in _JUMPS:
            _branch(name, stack, jumps)
        elif name in ("RETURN_GENERATOR", "GEN_START"):
            stack += [Kind.FIXED] if name == "RETURN_GENERATOR" else []
        else:
            _compute(one, stack)

    def _load(self, one: dis.Instruction, stack: list[_Item]) -> None:
        name, value = one.opname, one.argval
        if name == "LOAD_CONST":
            stack.append(_Named(value.co_name, None, value) if isinstance(value, CodeType) else _constant(value))
        elif name == "PUSH_NULL":
            stack.append(_NOTHING)
        elif name == "LOAD_GLOBAL":
            if value in self._globals or not (value in _GIVE_FIXED or value in _GIVE_FLAT):
                raise _Refused
            called: list[_Item] = [_Named(value, None)]
            if _VERSION >= (3, 11) and (one.arg or 0) & 1:
                called.insert(1 if _VERSION >= (3, 13) else 0, _NOTHING)
            stack += called
        elif name == "LOAD_METHOD" or (name == "LOAD_ATTR" and _VERSION >= (3, 12) and (one.arg or 0) & 1):
            stack += [_Named(value, _flat(stack.pop())), _NOTHING]
        elif name in ("LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF"):
            if value not in self._cells:
                raise _Refused
            stack.append(Kind.FIXED)  # it is the argument, and nobody sets it
        elif name == "MAKE_FUNCTION":
            self._make_function(one.arg or 0, stack)
        else:
            raise _Refused

    def _make_function(self, flags: int, stack: list[_Item]) -> None:
        """A comprehension's, with the cells it reads, no other."""
        made = stack.pop() if _VERSION >= (3, 11) else stack.pop(-2)
        if _VERSION < (3, 11):
            stack.pop()  # its name
        if flags & ~0x08 or not isinstance(made, _Named) or made.name not in _COMPREHENSIONS:
            raise _Refused
        if flags:
            stack.pop()
        stack.append(made)

    def _call(self, name: str, count: int, stack: list[_Item]) -> None:
        if name not in ("CALL", "CALL_FUNCTION", "CALL_METHOD"):
            raise _Refused
        arguments = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        called = [stack.pop() for _ in range(1 if name == "CALL_FUNCTION" else 2)][::-1]
        functions = [each for each in called if isinstance(each, _Named)]
        arguments = [each for each in called if isinstance(each, Kind)] + arguments
        if len(functions) != 1:
            raise _Refused
        if functions[0].code is None:
            stack.append(_called(functions[0], arguments))
            return
        (iterated,) = arguments
        _flat(iterated)
        stack.append(_Reading(functions[0].code, {".0": Kind.FLAT}, self._cells, self._globals).result())


def _local(name: str, value: Any, stack: list[_Item], names: dict[str, _Item]) -> None:
    if name in ("LOAD_FAST", "LOAD_FAST_CHECK"):
        stack.append(names[value])
    elif name == "LOAD_FAST_LOAD_FAST":
        stack += [names[each] for each in value]
    elif name == "LOAD_FAST_AND_CLEAR":
        stack.append(names.pop(value, _NOTHING))
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
        raise _Refused


def _store(name: str, stack: list[_Item], names: dict[str, _Item]) -> None:
    value = stack.pop()
    if value is _NOTHING:
        names.pop(name, None)
    elif isinstance(value, Kind):
        names[name] = value
    else:
        raise _Refused


def _branch(name: str, stack: list[_Item], jumps: bool) -> None:
    if name == "FOR_ITER":
        _flat(stack[-1])
        if not jumps or _VERSION >= (3, 12):
            stack.append(Kind.FIXED)
        else:
            stack.pop()
    elif name.startswith("POP_JUMP") or (name in ("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP") and not jumps):
        stack.pop()
    elif name not in ("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"):
        raise _Refused


def _popped(stack: list[_Item], count: int) -> list[_Item]:
    if count > len(stack):
        raise _Refused
    items = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    return items


def _compute(one: dis.Instruction, stack: list[_Item]) -> None:
    name, count = one.opname, one.arg or 0
    if name == "BUILD_TUPLE":
        stack.append(_built(_popped(stack, count), Kind.FIXED))
    elif name in ("BUILD_LIST", "BUILD_SET"):
        stack.append(_built(_popped(stack, count), Kind.FLAT))
    elif name in ("BUILD_MAP", "BUILD_CONST_KEY_MAP"):
        stack.append(_built(_popped(stack, 2 * count if name == "BUILD_MAP" else count + 1), Kind.FLAT))
    elif name in ("LIST_APPEND", "SET_ADD", "MAP_ADD"):
        added = _built(_popped(stack, 2 if name == "MAP_ADD" else 1), Kind.FLAT)
        stack[-count] = max(added, _known(stack[-count]))
    elif name in ("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE"):
        _flat(stack.pop())
    elif name == "STORE_SUBSCR":
        value, container, place = _popped(stack, 3)
        if _flat(container) is not Kind.FLAT or value is not Kind.FIXED or place is not Kind.FIXED:
            raise _Refused
    else:
        _compute_plain(name, count, stack)


def _known(item: _Item) -> Kind:
    if not isinstance(item, Kind):
        raise _Refused
    return item


def _compute_plain(name: str, count: int, stack: list[_Item]) -> None:
    if name in ("BINARY_SUBSCR", "BINARY_SLICE"):
        operands = [_flat(each) for each in _popped(stack, 3 if name == "BINARY_SLICE" else 2)]
        slices = name == "BINARY_SLICE" or operands[1] is Kind.FLAT
        stack.append(operands[0] if slices else Kind.FIXED)
    elif name in ("COMPARE_OP", "IS_OP", "CONTAINS_OP"):
        for each in _popped(stack, 2):
            _flat(each)
        stack.append(Kind.FIXED)
    elif name.startswith(("BINARY_", "INPLACE_")):
        stack.append(max(_flat(each) for each in _popped(stack, 2)))
    elif name.startswith("UNARY_"):
        stack.append(_flat(stack.pop()))
    elif name in ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE", "BUILD_STRING"):
        several = {"FORMAT_VALUE": 2 if count & 4 else 1, "FORMAT_WITH_SPEC": 2, "BUILD_STRING": count}.get(name, 1)
        for each in _popped(stack, several):
            _flat(each)
        stack.append(Kind.FIXED)
    elif name == "BUILD_SLICE":
        for each in _popped(stack, count):
            _flat(each)
        stack.append(Kind.FLAT)
    elif name == "UNPACK_SEQUENCE":
        _flat(stack.pop())
        stack += [Kind.FIXED] * count
    elif name in ("GET_ITER", "LIST_TO_TUPLE"):
        _flat(stack.pop())
        stack.append(Kind.FLAT)
    else:
        _move(name, count, stack)


def _move(name: str, count: int, stack: list[_Item]) -> None:
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
        raise _Refused


def _joined(one: _Frame, other: _Frame) -> _Frame:
    """What may stand in each place where two ways meet; a name that is bound on one of them only is bound on neither."""
    if len(one[0]) != len(other[0]):
        raise _Refused
    names, more = dict(one[1]), dict(other[1])
    stack = tuple([_either(*each) for each in zip(one[0], other[0])])
    return stack, tuple(sorted(((name, _either(names[name], more[name])) for name in names.keys() & more.keys()), key=_name))


def _either(one: _Item, other: _Item) -> _Item:
    if one == other:
        return one
    return max(_known(one), _known(other))


def _name(item: tuple[str, _Item]) -> str:
    return item[0]
