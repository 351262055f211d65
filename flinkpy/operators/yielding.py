"""Calls a function for each record and emits its results, if need be while it is still yielding.

A function may return a list, or it may yield. The results it has yielded are emitted after a
moment, or when they fill a batch, and the operator parks (``flinkpy.operators.chain.parking``). A
list or tuple is complete, and its results are emitted with the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, NamedTuple

from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.codegen.generated import failure_in
from flinkpy.core.codegen.inlining import call_or_inline, raised_by
from flinkpy.core.elements import RowBatch
from flinkpy.operators.base import StreamOperator, Work
from flinkpy.operators.context import Output
from flinkpy.operators.output.yielding_loop import LoopKind, result_loop
from flinkpy.operators.user_errors import raise_told
from flinkpy.state.backend import CurrentKey


class Keyed(NamedTuple):
    """How the current key is set before each call. ``shown``: the expression that calls ``select``,
    or its inlined form. ``hashes``: the loop checks that the key can be hashed. ``clock``: given if
    state may expire; the loop reads it once for all state that a record touches."""

    current: CurrentKey
    select: Callable[[Any], Any] | None
    shown: str | None
    hashes: bool
    clock: Callable[[], int] | None


class Moment:
    """Holds the time of the current record, in place of a context, for functions that get none."""

    __slots__ = ("_timestamp",)

    def __init__(self) -> None:
        self._timestamp: int | None = None


def keyed_by(
    current: CurrentKey,
    select: Callable[[Any], Any],
    *,
    hashes: bool,
    clock: Callable[[], int] | None,
) -> Keyed:
    """A ``Keyed`` whose key is what the selector returns for each record."""
    return Keyed(current, select, call_or_inline(select, "select", "record"), hashes, clock)


_WITHOUT_KEY = Keyed(CurrentKey(), None, None, False, None)


class Results:
    """Collects the results of a function in order; divides them into main and side outputs once per
    batch."""

    __slots__ = ("stamps", "values")

    def __init__(self, stamped: bool) -> None:
        self.values: list[Any] = []
        self.stamps: list[int] | None = [] if stamped else None

    def emit(self, output: Output) -> None:
        """Emits the results to the outputs they belong to."""
        if not self.values:
            return
        if not may_hold_tags(self.values):
            output.emit(RowBatch(self.values, self.stamps))
            return
        batches = self._by_tag()
        main = batches.pop(None, None)
        # Before the main output, whose consumers may change values that are in both
        for tag_id, batch in batches.items():
            output.emit_side(tag_id, batch)
        if main is not None:
            output.emit(main)

    def _by_tag(self) -> dict[Any, RowBatch]:
        """The results as batches by the id of their side output; those of the main output, if any,
        under None."""
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
    """Whether any result could be ``(OutputTag, value)``, judged first by the types of all results
    at once."""
    if not OutputTag.exists:
        return False
    kinds = set(map(type, values))
    if tuple not in kinds:
        return False
    if len(kinds) > 1:
        return any(
            type(value) is tuple and len(value) == 2 and isinstance(value[0], OutputTag)
            for value in values
        )
    try:
        return any(
            issubclass(kind, OutputTag) for kind in set(map(type, map(itemgetter(0), values)))
        )
    except IndexError:  # one of them is an empty tuple
        return True


def stamp_new(results: Results, timestamp: int) -> None:
    """Gives this timestamp to the results that have none yet."""
    stamps = results.stamps
    if stamps is not None:
        missing = len(results.values) - len(stamps)
        if missing == 1:
            stamps.append(timestamp)
        elif missing:
            stamps.extend([timestamp] * missing)


def emit_results(
    process: Callable[[Any, Any], Iterable[Any] | None],
    records: Iterable[Any],
    stamps: Iterable[int | None] | None,
    at: object,
    operator: StreamOperator,
    *,
    keyed: Keyed | None = None,
    endless: bool = False,
    kind: type[Results] = Results,
    names_record: bool = True,
) -> Work:
    """Calls ``process(record, at)`` for each record and emits its results; None means no results.

    ``at`` is the object whose ``_timestamp`` is set to the record's time, which the results get too
    if there are ``stamps``. ``keyed``: how the current key is set before each call. ``endless``:
    there may be more records than fit one batch. ``names_record``: errors name the record."""
    context, output = operator.context, operator.output
    keyed = keyed or _WITHOUT_KEY
    loop = result_loop(
        LoopKind(
            stamps is not None,
            not context.object_reuse,
            endless,
            keyed.shown,
            keyed.hashes,
            keyed.clock is not None,
        )
    )
    try:
        results = yield from loop.function(
            records,
            stamps,
            process,
            at,
            kind,
            output,
            context.clock.monotonic,
            context.batch_records,
            keyed.select,
            keyed.current,
            keyed.clock,
        )
    except BaseException as error:
        failure = failure_in(loop.function, error.__traceback__)
        record = failure.variables.get("record") if failure else None
        if failure and keyed.select is not None and failure.line in loop.key_lines:
            error = raised_by(keyed.select, [record], error)
        raise_told(error, context, *((record,) if names_record else ()))
    finally:
        keyed.current.now_ns = None
    results.emit(output)
