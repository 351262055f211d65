"""Gives every operator and every writer of a task its own copy of the user's functions.

A chain is pickled in one piece, so that the program's classes are the same in all of it. A function
object that the program used twice would therefore be one object in two places: it would be opened
twice, and its fields would mix what it saw in both. In Flink each operator has a copy; here the
second place gets one."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import MethodType
from typing import Any, TypeVar

from flinkpy.core.program import code
from flinkpy.graph.chain_config import ChainConfig, ChainedEdge, ChainedOperator, NetworkEdge
from flinkpy.graph.partitioning import Partitioning
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.functions import Function

T = TypeVar("T")
_FEW = 16  # a longer list holds data
# of sources, sinks, and what stands for a function
_OPENING = ("open", "create_reader", "create_writer")


def with_own_functions(chain: ChainConfig[StreamOperator]) -> ChainConfig[StreamOperator]:
    """The chain with no function object in two places; unchanged if there is none."""
    taken: set[int] = set()
    return replace(
        chain, operators=tuple([_own_operator(operator, taken) for operator in chain.operators])
    )


def functions_of_writer(partitioning: Partitioning) -> list[Function]:
    """The function objects that a writer calls: the key selector and the partitioner."""
    called = (None if partitioning.key is None else partitioning.key.selector, partitioning.custom)
    owners = [one.__self__ if isinstance(one, MethodType) else one for one in called]
    return list({id(owner): owner for owner in owners if isinstance(owner, Function)}.values())


def functions_in(holder: object) -> Iterator[Function]:
    """The function objects that the engine's object holds, each once."""
    return (value for value in _values_in(holder) if isinstance(value, Function))


def _values_in(holder: object) -> Iterator[Any]:
    """What the engine's object holds, each once; of other objects not what they hold."""
    seen: set[int] = set()
    waiting = [holder]
    while waiting:
        value = waiting.pop()
        if isinstance(value, MethodType):
            value = value.__self__
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        if isinstance(value, (tuple, list)):
            waiting += value if len(value) <= _FEW else ()
        elif isinstance(value, Function) or _is_engines(value):
            waiting += getattr(value, "__dict__", {}).values()


def holds_what_is_opened(chain: ChainConfig[StreamOperator]) -> bool:
    """Whether something of the program's in the chain is opened, or makes readers or writers: what
    it acquires then may belong to the thread in which it was opened, as a connection of ``sqlite3``
    does, and what belongs to a model on a GPU."""
    return any(
        _is_opened(value)
        for operator in chain.operators
        for value in (*_values_in(operator.operator), *_values_in(operator.edges))
    )


def _is_opened(value: object) -> bool:
    kind = type(value)
    if isinstance(value, Function):
        return any(
            "open" in each.__dict__ or "initialize_state" in each.__dict__
            for each in kind.__mro__
            if not _is_of_engine(each)
        )
    is_known = _is_of_engine(kind) or kind.__module__.partition(".")[0] in sys.stdlib_module_names
    return not is_known and any(hasattr(kind, name) for name in _OPENING)


def _is_engines(value: object) -> bool:
    return not isinstance(value, type) and _is_of_engine(type(value))


def _is_of_engine(kind: type) -> bool:
    return kind.__module__.startswith("flinkpy.")


def _own_operator(
    chained: ChainedOperator[StreamOperator], taken: set[int]
) -> ChainedOperator[StreamOperator]:
    operator = _own(chained.operator, taken)
    edges = tuple([_own_edge(edge, taken) for edge in chained.edges])
    return replace(chained, operator=operator, edges=edges)


def _own_edge(edge: ChainedEdge | NetworkEdge, taken: set[int]) -> ChainedEdge | NetworkEdge:
    return (
        replace(edge, partitioning=_own(edge.partitioning, taken))
        if isinstance(edge, NetworkEdge)
        else edge
    )


def _own(holder: T, taken: set[int]) -> T:
    held = {id(function) for function in functions_in(holder)}
    if held & taken:
        return _copied(holder)
    taken |= held
    return holder


def _copied(holder: T) -> T:
    try:
        return copy.deepcopy(holder)
    except TypeError:  # something that only travels by cloudpickle, such as a module
        opened: T = code.loads(code.dumps(holder, "a function that is used twice"))
        return opened
