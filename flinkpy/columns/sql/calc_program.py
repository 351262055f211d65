"""The program of a Calc: typed nodes by number, each after its operands.

It is flat, so neither pickle nor Python's recursion bounds the depth of an expression. Equal
expressions are one node, and so are computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from flinkpy.columns.sql.call_site import VARYING, CallSite
from flinkpy.columns.sql.user_code import UserCode
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BitmapType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    SizedType,
)
from flinkpy.core.clock import SYSTEM_CLOCK, Clock

_COSTLY_TYPES = (SizedType, BitmapType, ArrayType, MapType, MultisetType, RowType)
_COST_OF_A_COSTLY_TYPE = 8


@dataclass(frozen=True)
class InputNode:
    """A column of the batch by number."""

    type: LogicalType
    index: int


@dataclass(frozen=True)
class ConstantNode:
    """A value that stands in every row, as Python's value of the type."""

    type: LogicalType
    value: object


@dataclass(frozen=True)
class CallNode:
    """A function over nodes with smaller numbers. ``text`` is what an error shows of it.
    ``code`` is the function itself where it is one of the program."""

    function: str
    operands: tuple[int, ...]
    site: CallSite
    can_fail: bool = False
    is_deterministic: bool = True
    text: str = field(default="", compare=False)
    code: UserCode | None = field(default=None, compare=False)

    @property
    def type(self) -> LogicalType:
        return self.site.result


ProgramNode: TypeAlias = "InputNode | ConstantNode | CallNode"


@dataclass(frozen=True)
class CalcProgram:
    """``outputs`` are the nodes that become columns. ``conditions`` are nodes that must all be true
    for a row to pass, in the order in which they are computed: cheap ones first, those that can
    fail last."""

    nodes: tuple[ProgramNode, ...]
    outputs: tuple[int, ...]
    conditions: tuple[int, ...] = ()

    def operands_of(self, number: int) -> tuple[int, ...]:
        """The nodes that this one is computed from."""
        node = self.nodes[number]
        return node.operands if isinstance(node, CallNode) else ()


class ProgramBuilder:
    """Collects nodes. Each method gives the number of a node; equal nodes have one number, unless
    their function gives another value each time."""

    def __init__(self, zone: str = "UTC", clock: Clock = SYSTEM_CLOCK) -> None:
        self._zone = zone
        self._clock = clock
        self._nodes: list[ProgramNode] = []
        self._numbers: dict[object, int] = {}

    def input(self, index: int, type: LogicalType) -> int:
        """A column of the batch."""
        return self._added(InputNode(type, index), ("input", index, type))

    def constant(self, value: object, type: LogicalType) -> int:
        """A value. Zero with and without a sign are two, and NaN is one."""
        return self._added(ConstantNode(type, value), ("constant", repr(value), type))

    def call(
        self,
        function: str,
        operands: Sequence[int],
        result: LogicalType,
        *,
        options: Iterable[tuple[str, object]] = (),
        can_fail: bool = False,
        is_deterministic: bool = True,
        text: str = "",
        code: UserCode | None = None,
    ) -> int:
        """A function over nodes; ``code`` if it is one of the program."""
        known: Mapping[str, object] = dict(options)
        arguments = [self._nodes[each] for each in operands]
        site = CallSite(
            tuple(each.type for each in arguments),
            result,
            tuple(each.value if isinstance(each, ConstantNode) else VARYING for each in arguments),
            known,
            self._zone,
            self._clock,
        )
        node = CallNode(function, tuple(operands), site, can_fail, is_deterministic, text, code)
        if not is_deterministic:
            return self._appended(node)
        return self._added(
            node, ("call", function, node.operands, result, repr(sorted(known.items())))
        )

    def _added(self, node: ProgramNode, key: object) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._appended(node)
        return number

    def _appended(self, node: ProgramNode) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def program(self, outputs: Sequence[int], condition: int | None = None) -> CalcProgram:
        """The program of these columns for the rows where the condition is true. Nodes that
        nothing needs are left out."""
        conditions = [] if condition is None else self._conjuncts(condition)
        flat: dict[int, ProgramNode] = {}
        pending = [*outputs, *conditions]
        while pending:
            number = pending.pop()
            if number not in flat:
                flat[number] = node = self._flattened(self._nodes[number])
                if isinstance(node, CallNode):
                    pending.extend(node.operands)
        order = sorted(flat)
        renamed = {number: at for at, number in enumerate(order)}
        nodes = [
            replace(node, operands=tuple(renamed[each] for each in node.operands))
            if isinstance(node, CallNode)
            else node
            for node in (flat[number] for number in order)
        ]
        ordered = _cheap_first(nodes, [renamed[each] for each in conditions])
        return CalcProgram(tuple(nodes), tuple(renamed[each] for each in outputs), ordered)

    def _conjuncts(self, condition: int) -> list[int]:
        """The conditions that AND joins, each once."""
        node = self._flattened(self._nodes[condition])
        if isinstance(node, CallNode) and node.function == "AND":
            return list(dict.fromkeys(node.operands))
        return [condition]

    def _flattened(self, node: ProgramNode) -> ProgramNode:
        """AND within AND, OR within OR, and CASE in the ELSE of a CASE, as one call: long chains
        of them nest deeply."""
        if not isinstance(node, CallNode):
            return node
        if node.function in ("AND", "OR"):
            operands = self._joined(node)
        elif node.function == "CASE":
            operands = self._branches(node)
        else:
            return node
        site = replace(
            node.site,
            arguments=tuple(self._nodes[each].type for each in operands),
            constants=tuple(map(self._constant_of, operands)),
        )
        return replace(node, operands=operands, site=site)

    def _constant_of(self, number: int) -> object:
        node = self._nodes[number]
        return node.value if isinstance(node, ConstantNode) else VARYING

    def _joined(self, node: CallNode) -> tuple[int, ...]:
        found: list[int] = []
        pending = list(reversed(node.operands))
        while pending:
            number = pending.pop()
            inner = self._nodes[number]
            if isinstance(inner, CallNode) and inner.function == node.function:
                pending.extend(reversed(inner.operands))
            else:
                found.append(number)
        return tuple(found)

    def _branches(self, node: CallNode) -> tuple[int, ...]:
        found = list(node.operands)
        while True:
            inner = self._nodes[found[-1]]
            is_nested = isinstance(inner, CallNode) and inner.function == "CASE"
            if not is_nested or inner.type.with_nullable(True) != node.type.with_nullable(True):
                return tuple(found)
            assert isinstance(inner, CallNode)
            found[-1:] = inner.operands


def unsafe_nodes(nodes: Sequence[ProgramNode]) -> list[bool]:
    """For each node, whether its value may be an error: its own, or that of an operand."""
    found: list[bool] = []
    for node in nodes:
        if isinstance(node, CallNode):
            found.append(node.can_fail or any(found[each] for each in node.operands))
        else:
            found.append(False)
    return found


def _cheap_first(nodes: Sequence[ProgramNode], conditions: Sequence[int]) -> tuple[int, ...]:
    """Conditions that cannot fail, the cheapest first; then those that can, as they were
    written."""
    costs: list[int] = []
    for node in nodes:
        inside = node.operands if isinstance(node, CallNode) else ()
        own = _COST_OF_A_COSTLY_TYPE if isinstance(node.type, _COSTLY_TYPES) else 1
        costs.append(min(own + sum(costs[each] for each in inside), 1 << 62))
    unsafe = unsafe_nodes(nodes)
    order = [(unsafe[each], 0 if unsafe[each] else costs[each], each) for each in conditions]
    return tuple(number for _, _, number in sorted(order, key=lambda one: one[:2]))
