"""Aggregates in two phases as Flink's ``explain`` shows them: each call has columns between both,
with names of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from flinkpy.sql.functions.user_function import shown_name
from flinkpy.sql.physical.physical_nodes import GroupAggregate
from flinkpy.sql.plans.rex_text import call_text
from flinkpy.sql.rex.rex_nodes import AggregateCall

_NAMES = {"AVG": ("sum", "count"), "$SUM0": ("sum",), "LISTAGG": ("accDelimiter", "concatAcc")}


@dataclass(frozen=True)
class PartText:
    """A call as the first phase computes it, what this is called, and the call that merges it."""

    local: str
    name: str
    merged: str


@dataclass(frozen=True)
class PartTexts:
    """``rows``: what counts rows where none of the calls does and rows are taken back.
    ``distinct`` are the columns whose values are told apart."""

    calls: tuple[PartText, ...]
    rows: str | None
    distinct: tuple[str, ...]


def parts_of(node: GroupAggregate) -> PartTexts:
    """Those of a first phase."""
    names, numbers = node.input.schema.names, count()
    distinct = tuple(
        dict.fromkeys(
            ", ".join(names[at] for at in call.arguments) for call in node.calls if call.distinct
        )
    )
    calls = tuple(_part(call, names, numbers, distinct) for call in node.calls)
    counts = any(call.function == "COUNT" and not call.arguments for call in node.calls)
    rows = f"count1${next(numbers)}" if node.takes_changes and not counts else None
    return PartTexts(calls, rows, distinct)


def _part(
    call: AggregateCall, names: Sequence[str], numbers: Iterator[int], distinct: Sequence[str]
) -> PartText:
    """``numbers`` are those of the columns, in turn."""
    local, own = call_text(replace(call, distinct=False), names), ""
    if call.distinct:
        argument = ", ".join(names[at] for at in call.arguments)
        own = f"distinct${distinct.index(argument)} "
        local = local.replace("(", f"({own}", 1)
    name = ", ".join(f"{each}${next(numbers)}" for each in _names(call))
    name = f"({name})" if ", " in name else name
    return PartText(local, name, f"{shown_name(call.function)}({own}{name})")


def _names(call: AggregateCall) -> tuple[str, ...]:
    if call.function == "COUNT" and not call.arguments:
        return ("count1",)
    return _NAMES.get(call.function, (call.function.lower(),))
