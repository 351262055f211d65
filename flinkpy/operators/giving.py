"""What functions give moves on while they give it.

A function may return a list, or yield: then what it has yielded so far goes on when a moment has passed, or as many records are there as make a batch,
and the operator parks (``flinkpy.operators.parking``). A list or tuple is there already, and goes on with its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

from flinkpy.common.output_tag import OutputTag
from flinkpy.core.elements import RowBatch
from flinkpy.core.mutability import ATOMS
from flinkpy.operators.base import OperatorContext, Output, Work
from flinkpy.operators.given_out import all_private, private

MOMENT_S = 0.02  # so long results wait for others


class Results:
    """Gathers what a function gives, in order; main and side outputs are taken apart once per batch."""

    __slots__ = ("stamps", "values")

    def __init__(self, stamped: bool) -> None:
        self.values: list[Any] = []
        self.stamps: list[int] | None = [] if stamped else None

    def emit(self, output: Output) -> None:
        """Passes everything on."""
        if not self.values:
            return
        if not may_hold_tags(self.values):
            output.emit(RowBatch(self.values, self.stamps))
            return
        batches = self._by_tag()
        main = batches.pop(None, None)
        for tag_id, batch in batches.items():  # before the main output's consumers may change what stands in both
            output.emit_side(tag_id, batch)
        if main is not None:
            output.emit(main)

    def _by_tag(self) -> dict[Any, RowBatch]:
        """The side outputs by their ids, and the main output, if there is any, under None."""
        batches: dict[Any, RowBatch] = {None: RowBatch([], None if self.stamps is None else [])}
        conversions: dict[OutputTag, Callable[[Any], Any] | None] = {}
        for position, result in enumerate(self.values):
            tag_id = None
            if type(result) is tuple and len(result) == 2 and isinstance(result[0], OutputTag):
                tag, result = result
                if tag not in conversions:
                    conversions[tag] = None if tag.type_info is None else tag.type_info.conversion()
                convert, tag_id = conversions[tag], tag.tag_id
                result = result if convert is None else convert(result)
            batch = batches.get(tag_id)
            if batch is None:
                batch = batches[tag_id] = RowBatch([], None if self.stamps is None else [])
            batch.values.append(result)
            if self.stamps is not None and batch.timestamps is not None:
                batch.timestamps.append(self.stamps[position])
        return {tag_id: batch for tag_id, batch in batches.items() if batch.values}


class UntaggedResults(Results):
    """The results of a flat_map: all of them for the main output."""

    __slots__ = ()

    def emit(self, output: Output) -> None:
        if self.values:
            output.emit(RowBatch(self.values, self.stamps))


def may_hold_tags(values: list[Any]) -> bool:
    """Whether one of the results could be ``(OutputTag, value)``; looks at all of them at once, by type."""
    kinds = set(map(type, values))
    if tuple not in kinds:
        return False
    if len(kinds) > 1:
        return any(type(value) is tuple and len(value) == 2 and isinstance(value[0], OutputTag) for value in values)
    try:
        return any(issubclass(kind, OutputTag) for kind in set(map(type, map(itemgetter(0), values))))
    except IndexError:  # an empty tuple among them
        return True


def stamp_new(results: Results, timestamp: int) -> None:
    """The results that have no timestamp yet get this one."""
    stamps = results.stamps
    if stamps is not None:
        missing = len(results.values) - len(stamps)
        if missing == 1:
            stamps.append(timestamp)
        elif missing:
            stamps.extend([timestamp] * missing)


def give_out(
    calls: Iterable[Any], current: Any, stamped: bool, context: OperatorContext, output: Output, kind: type[Results] = Results,
) -> Work:
    """Makes the calls, one after the other, and emits what each gives (None is nothing), with ``current._timestamp`` as it is after the call."""
    private_one, private_all = (_same, _same) if context.object_reuse else (private, all_private)
    limit, now = context.batch_records, context.clock.monotonic
    results, until = kind(stamped), now() + MOMENT_S
    values = results.values
    for given in calls:
        if given is None:
            continue
        if type(given) is list or type(given) is tuple:
            values.extend(private_all(given))
        else:
            for value in given:
                values.append(value if type(value) in ATOMS else private_one(value))
                if now() >= until or len(values) >= limit:
                    if stamped:
                        stamp_new(results, current._timestamp)
                    results.emit(output)
                    yield
                    results, until = kind(stamped), now() + MOMENT_S
                    values = results.values
        if stamped:
            stamp_new(results, current._timestamp)
    results.emit(output)


def _same(given: Any) -> Any:
    return given
