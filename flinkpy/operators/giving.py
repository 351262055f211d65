"""What functions give moves on while they give it.

A function may return a list, or yield: then what it has yielded so far goes on when a moment has passed, or as many records are there as make a
batch, and the operator parks (``flinkpy.operators.parking``). A list or tuple is there already, and goes on with its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

from flinkpy.common.output_tag import OutputTag
from flinkpy.core.elements import RowBatch
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.keys import PLAIN_KEYS, canonical_key
from flinkpy.core.mutability import ATOMS
from flinkpy.operators.base import Output, StreamOperator, Work
from flinkpy.operators.errors import user_code_error
from flinkpy.operators.given_out import all_private, private
from flinkpy.state.backend import CurrentKey

MOMENT_S = 0.02  # so long results wait for others
FEW = 3  # results of one call, of which each is looked at by itself; more of them all at once
LONGEST_STRIDE = 16  # results between two looks at the clock, where they come fast


class Keyed(NamedTuple):
    """How the current key is set before each call. ``clock``: where state may expire, it is read then too, once for all state the record touches."""

    current: CurrentKey
    select: Callable[[Any], Any]
    clock: Callable[[], int] | None


class Moment:
    """The time of the record at hand, for functions that do not ask for it."""

    __slots__ = ("_timestamp",)

    def __init__(self) -> None:
        self._timestamp: int | None = None


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
    if not OutputTag.exists:
        return False
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
    process: Callable[[Any, Any], Iterable[Any] | None], records: Iterable[Any], stamps: Iterable[int | None] | None, at: Any,
    operator: StreamOperator, *,
    keyed: Keyed | None = None, endless: bool = False, kind: type[Results] = Results, names_record: bool = True,
) -> Work:
    """Calls ``process(record, at)`` for each record and emits what it gives; None is nothing.

    ``at`` knows the record's time, which the results get too if there are ``stamps``. ``keyed``: the current key, set before each call, and how it is
    found. ``endless``: the records are no batch, there may be any number.
    """
    context, output = operator.context, operator.output
    copies, limit, now = not context.object_reuse, context.batch_records, context.clock.monotonic
    current, select, clock = keyed or (CurrentKey(), None, None)
    stamped = stamps is not None
    results, until, stride = kind(stamped), now() + MOMENT_S, 1
    out, kept, left, record = results.values, results.stamps, stride, None
    try:
        for record, at._timestamp in zip(records, repeat(None) if stamps is None else stamps):
            if select is not None:
                key = select(record)
                current.key = key if type(key) in PLAIN_KEYS else canonical_key(key)
                if clock is not None:
                    current.now_ns = clock()
            given = process(record, at)
            if given is None:
                continue
            if type(given) is list or type(given) is tuple:
                if not copies or len(given) > FEW:
                    out += all_private(given) if copies else given
                else:
                    for value in given:
                        out.append(value if type(value) in ATOMS else private(value))
            else:
                for value in given:
                    if type(value) is tuple:  # as most are: what ``private`` would find out, without the call
                        for part in value:
                            if type(part) not in ATOMS:
                                value = private(value) if copies else value
                                break
                    elif copies and type(value) not in ATOMS:
                        value = private(value)
                    out.append(value)
                    left -= 1
                    if left <= 0:
                        if len(out) >= limit or now() >= until:
                            if kept is not None:
                                kept += [at._timestamp] * (len(out) - len(kept))
                            results.emit(output)
                            yield
                            if clock is not None:
                                current.now_ns = clock()
                            results, until, stride = kind(stamped), now() + MOMENT_S, 1
                            out, kept = results.values, results.stamps
                        else:
                            stride = min(2 * stride, LONGEST_STRIDE)
                        left = stride
            if kept is not None:
                missing = len(out) - len(kept)
                if missing == 1:
                    kept.append(at._timestamp)
                elif missing:
                    kept += [at._timestamp] * missing
            if endless and len(out) >= limit:
                results.emit(output)
                yield
                results, until = kind(stamped), now() + MOMENT_S
                out, kept = results.values, results.stamps
    except FlinkpyError:
        raise
    except Exception as error:
        raise user_code_error(error, context, *((record,) if names_record else ())) from error
    finally:
        current.now_ns = None
    results.emit(output)
