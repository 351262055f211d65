"""Explains why a value cannot be pickled: which function of the user it is, what that function
uses, down to the smallest part that fails.

Pickle only names the type that stopped it. So this module searches again from the top: whatever
cannot be pickled either has a part that cannot, or is the culprit itself."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from flinkpy.core.source_places import place

_PLAIN = (list, tuple, set, frozenset, dict)
_OF_PROGRAM = (
    "flinkpy.actors",
    "flinkpy.cluster",
    "flinkpy.common.job_client",
    "flinkpy.datastream",
    "flinkpy.spark",
)
_GENERATORS = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)


@dataclass(frozen=True)
class Part:
    """``how`` the part belongs to its owner: ``uses`` for a function, or the text that follows in
    an expression (``.name``, ``[2]``); empty if it is the owner itself in another form."""

    how: str
    value: Any


def explain(value: object, dumps: Callable[[Any], object]) -> str | None:
    """A sentence about the user's function or object inside ``value`` that ``dumps`` cannot pickle,
    with what to do about it. None if the culprit is one of the engine's objects.

    >>> import pickle, threading
    >>> lock = threading.Lock()
    >>> explain([lock], pickle.dumps)  # doctest: +ELLIPSIS
    'it holds a _thread.lock, which cannot be pickled. Values go from worker to worker: ...'
    """
    way = list(_way(value, dumps))
    culprit = way[-1].value
    told = _Told()
    for part in way:
        told.add(part)
    if told.subject is None:
        advice = "Values go from worker to worker: keep it out of them"
        return (
            None
            if _is_engines(culprit)
            else f"it holds a {_type_name(culprit)}, which {_reason(culprit, dumps, advice)}"
        )
    advice = "Make it in open() of a function class, so that every worker has its own"
    return f"{told.sentence(culprit)} {_reason(culprit, dumps, advice)}"


class _Told:
    """Builds the sentence, part by part. The engine's own objects, which come first, are left
    out."""

    def __init__(self) -> None:
        self.subject: str | None = None
        self._owner: Any = None
        self._uses: list[str] = []
        self._path = ""

    def add(self, part: Part) -> None:
        value = part.value
        if self.subject is None:
            if not (_is_engines(value) or _is_data(value)):
                self._begin(value)
        elif part.how.startswith("uses "):
            self._path = ""
            self._uses.append(
                part.how + (f" ({_where(value)})" if isinstance(value, types.FunctionType) else "")
            )
        elif isinstance(value, types.FunctionType) and not self._uses:
            self._begin(value)  # a method says more than the object it belongs to
        else:
            self._path += part.how

    def _begin(self, value: object) -> None:
        self.subject = _described(value)
        self._owner = value
        self._path = ""

    def sentence(self, culprit: object) -> str:
        if not self._uses and not self._path:
            return f"its {self.subject}"
        said = [*self._uses]
        if said:
            said[-1] += self._path
        else:
            said = [f"has self{self._path}"]
        return f"its {self.subject} {', which '.join(said)} ({_type_name(culprit)}), which"


def _way(value: object, dumps: Callable[[Any], object]) -> Iterator[Part]:
    """The parts from ``value`` down to the smallest one that cannot be pickled."""
    part: Part | None = Part("", value)
    seen: set[int] = set()
    while part is not None:
        yield part
        if _belongs_to_program(part.value):
            return
        seen.add(id(part.value))
        part = next(
            (
                inner
                for inner in _parts(part.value)
                if id(inner.value) not in seen and _error(inner.value, dumps) is not None
            ),
            None,
        )


def _error(value: object, dumps: Callable[[Any], object]) -> Exception | None:
    try:
        dumps(value)
    except Exception as error:
        return error
    return None


def _parts(value: object) -> Iterable[Part]:
    if isinstance(value, types.FunctionType):
        return _parts_of_function(value)
    if isinstance(value, types.MethodType):
        return [Part("", value.__func__), Part("", value.__self__)]
    if isinstance(value, functools._lru_cache_wrapper):
        return [Part("", value.__wrapped__)]
    if isinstance(value, functools.partial):
        return [
            Part("", value.func),
            *(Part(f".args[{at}]", each) for at, each in enumerate(value.args)),
            *(Part(f".keywords[{name!r}]", each) for name, each in value.keywords.items()),
        ]
    if isinstance(value, type):
        return [Part(f".{name}", _unwrapped(each)) for name, each in vars(value).items()]
    if isinstance(value, dict):
        return [
            *(Part(f"[{name!r:.40}]", each) for name, each in value.items()),
            *(Part(" keys", each) for each in value),
        ]
    if isinstance(value, (list, tuple)):
        return [Part(f"[{at}]", each) for at, each in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return [Part("", each) for each in value]
    return _parts_of_object(value)


def _parts_of_function(function: types.FunctionType) -> Iterator[Part]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield Part(f"uses {name}", cell.cell_contents)
        except ValueError:  # the cell is still empty
            continue
    for name in _globals_of(function.__code__):
        if name in function.__globals__:
            yield Part(f"uses {name}", function.__globals__[name])
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not parameter.empty:
            yield Part(f"uses the default of {name}", parameter.default)
    for name, value in vars(function).items():
        yield Part(f"uses its {name}", value)


def _globals_of(code: types.CodeType) -> Iterator[str]:
    """The global names that the code reads, including those read by functions inside it."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals_of(constant)


def _parts_of_object(value: object) -> Iterator[Part]:
    try:
        reduced = value.__reduce_ex__(5)
    except Exception:
        return  # the object itself refuses to be pickled
    if not isinstance(reduced, tuple):
        return
    arguments, state = reduced[1], reduced[2] if len(reduced) > 2 else None
    slots: Any = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    for named in (state, slots):
        yield from (
            (Part(f".{name}", each) for name, each in named.items())
            if isinstance(named, dict)
            else [Part("", named)]
        )
    yield from (Part("", each) for each in arguments)
    for more in reduced[3:5]:
        yield from (Part("", each) for each in more or ())


def _unwrapped(attribute: object) -> Any:
    if isinstance(attribute, (staticmethod, classmethod)):
        return attribute.__func__
    return attribute.fget if isinstance(attribute, property) else attribute


def _is_engines(value: object) -> bool:
    owner = (
        value if isinstance(value, (type, types.FunctionType, types.MethodType)) else type(value)
    )
    return str(owner.__module__).partition(".")[0] == "flinkpy"


def _belongs_to_program(value: object) -> bool:
    """Whether it is an environment, a stream or a running job: its parts would tell the user
    nothing."""
    return not isinstance(value, types.FunctionType) and type(value).__module__.startswith(
        _OF_PROGRAM
    )


def _is_data(value: object) -> bool:
    """Whether it is neither a function of the user nor an instance of one of the user's classes."""
    return isinstance(value, _PLAIN) or not (
        callable(value) or type(value).__module__ == "__main__"
    )


def _described(value: object) -> str:
    if isinstance(value, types.MethodType):
        return _described(value.__func__)
    if isinstance(value, types.FunctionType):
        return f"function {_short(value)} ({_where(value)})"
    return f"class {_short(value)}" if isinstance(value, type) else f"{_short(type(value))} object"


def _short(value: Any) -> str:
    return str(value.__qualname__.rpartition("<locals>.")[2])


def _where(function: types.FunctionType) -> str:
    return place(function.__code__.co_filename, function.__code__.co_firstlineno)


def _type_name(value: object) -> str:
    module = type(value).__module__
    return (
        type(value).__qualname__
        if module == "builtins" or _is_engines(value)
        else f"{module}.{type(value).__qualname__}"
    )


def _reason(culprit: object, dumps: Callable[[Any], object], advice: str) -> str:
    """Why it cannot be pickled, in the error's own words if it has any, and what to do."""
    error = _error(culprit, dumps)
    while error is not None and isinstance(error.__cause__, Exception):
        error = error.__cause__
    if _belongs_to_program(culprit):
        return "belongs to the program: functions run on the workers, and cannot use it"
    text = f"{error}".strip().rstrip(".")
    says_no_more = not text or text.startswith(
        ("cannot pickle ", "can't pickle ", "cannot serialize ")
    )
    why = "cannot be pickled" + ("" if says_no_more else f" ({text})")
    if isinstance(culprit, _GENERATORS):
        return f"{why}. Make it inside the function, or give a list in its place"
    return f"{why}. {advice}"
