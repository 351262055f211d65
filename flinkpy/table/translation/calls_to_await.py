"""Which calls of coroutine functions the expressions of a Calc make, and for which rows: those that
an evaluation from left to right would come to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from flinkpy.common.logical_types.logical_type import BooleanType
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexLiteral, walk
from flinkpy.sql.rules.conditions import conjunction, disjunction

IsAwaited = Callable[[RexCall], bool]
# After which outcome of an operand the next one is computed
_GOES_ON = {"AND": "IS NOT FALSE", "OR": "IS NOT TRUE", "COALESCE": "IS NULL", "IFNULL": "IS NULL"}
_BRANCHING = ("CASE", "IF")


@dataclass(frozen=True)
class CallToAwait:
    """A call, and the condition of the rows for which it is made; None: for all rows."""

    call: RexCall
    asked: Rex | None = None

    @property
    def answer(self) -> Rex:
        """The answer; null in rows for which it is not asked."""
        return self.call if self.asked is None else _if(self.asked, self.call)

    @property
    def arguments(self) -> tuple[Rex, ...]:
        """They may fail in rows for which the call is not made, so there they are null."""
        if self.asked is None:
            return self.call.arguments
        return tuple(_if(self.asked, each) for each in self.call.arguments)


def calls_to_await(expressions: Sequence[Rex], is_awaited: IsAwaited) -> list[CallToAwait]:
    """The calls that can be made before all others, in their order: neither their arguments nor
    the conditions of their rows wait for a call. There is none only if no call is left, or if each
    waits for another one; these are made where they are computed."""
    found: dict[RexCall, list[tuple[Rex, ...]]] = {}
    for expression in expressions:
        for call, before in _reached(expression, (), is_awaited):
            found.setdefault(call, []).append(before)

    def waits(rex: Rex) -> bool:
        return any(isinstance(each, RexCall) and is_awaited(each) for each in walk(rex))

    ready = []
    for call, ways in found.items():
        if any(map(waits, (*call.arguments, *(each for before in ways for each in before)))):
            continue
        asked = [conjunction(before) for before in ways]
        parts = [each for each in asked if each is not None]
        for_all = len(parts) < len(asked)
        ready.append(CallToAwait(call, None if for_all else disjunction(dict.fromkeys(parts))))
    return ready


def _reached(
    rex: Rex, before: tuple[Rex, ...], is_awaited: IsAwaited
) -> Iterator[tuple[RexCall, tuple[Rex, ...]]]:
    """Each call of a coroutine in the expression, and what must be true before it is reached."""
    if not isinstance(rex, RexCall):
        return
    if is_awaited(rex):
        yield rex, before
    for operand, then in _operands(rex, before):
        yield from _reached(operand, then, is_awaited)


def _operands(rex: RexCall, before: tuple[Rex, ...]) -> Iterator[tuple[Rex, tuple[Rex, ...]]]:
    """The operands, each with what must be true before it is computed."""
    if rex.function in _BRANCHING:
        *branches, otherwise = rex.arguments
        for condition, value in zip(branches[::2], branches[1::2]):
            yield condition, before
            yield value, (*before, condition)
            before = (*before, _test("IS NOT TRUE", condition))
        yield otherwise, before
        return
    goes_on = _GOES_ON.get(rex.function)
    for operand in rex.operands:
        yield operand, before
        if goes_on is not None:
            before = (*before, _test(goes_on, operand))


def _test(function: str, operand: Rex) -> Rex:
    return RexCall(BooleanType(is_nullable=False), function=function, arguments=(operand,))


def _if(asked: Rex, value: Rex) -> RexCall:
    type = value.type.nullable()
    return RexCall(type, function="CASE", arguments=(asked, value, RexLiteral(type, value=None)))
