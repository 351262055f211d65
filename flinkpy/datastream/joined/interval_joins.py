"""Interval joins of two keyed streams: what ``interval_join`` returns, and the steps up to
``process``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.datastream.checks import check_function, check_type, located, refuse
from flinkpy.datastream.joined.typed_joins import typed_join
from flinkpy.datastream.streams.operator_settings import OperatorSettings
from flinkpy.datastream.streams.recorded import RecordedStream, apply_two
from flinkpy.datastream.verbs.event_time import refuse_unstamped
from flinkpy.datastream.verbs.key_verbs import keyed
from flinkpy.operators.process.join_functions import ProcessJoinFunction
from flinkpy.windowing.arguments import Span, milliseconds_of

S = TypeVar("S", bound=OperatorSettings)


class IntervalJoin(Generic[S]):
    """Returned by ``KeyedStream.interval_join``; ``between`` sets the interval. ``as_stream`` makes
    the public stream for a recorded one."""

    def __init__(self, left: S, right: S, as_stream: Callable[[RecordedStream], S]) -> None:
        self._left = left
        self._right = right
        self._as_stream = as_stream
        self._event_time = True

    def in_event_time(self) -> IntervalJoin[S]:
        """Uses the records' timestamps; the default."""
        self._event_time = True
        return self

    def in_processing_time(self) -> IntervalJoin[S]:
        """Makes ``between`` raise, as in Flink: interval joins work on event time only."""
        self._event_time = False
        return self

    def between(self, lower_bound: Span, upper_bound: Span) -> IntervalJoined[S]:
        """Joins records whose times satisfy ``left + lower_bound <= right <= left + upper_bound``.
        Bounds may be negative. Raises ProgramError if the lower bound is above the upper one, or if
        the records have no timestamps.

        >>> clicks.interval_join(orders).between(
        ...     Time.minutes(0), Time.minutes(10)
        ... )  # doctest: +SKIP
        """
        if not self._event_time:
            raise refuse(
                "between(): interval joins work on event time only; leave "
                "in_processing_time() out and give both streams timestamps"
            )
        with located():
            lower = milliseconds_of(lower_bound, "the lower bound")
            upper = milliseconds_of(upper_bound, "the upper bound")
        if lower > upper:
            raise refuse(
                f"between(): the lower bound ({lower} ms) is above the upper bound ({upper} "
                "ms); swap them"
            )
        refuse_unstamped(
            {"left": self._left.recorded, "right": self._right.recorded},
            "between(): an interval join needs",
            "before key_by(...)",
        )
        return IntervalJoined(self._left, self._right, self._as_stream, lower, upper)

    def process(self, *arguments: Any, **more: Any) -> S:
        """Raises ProgramError: the interval is missing."""
        raise refuse(
            "process(): say the interval first: interval_join(other).between(lower, "
            "upper).process(...)"
        )


@dataclass(frozen=True)
class IntervalJoined(Generic[S]):
    """An interval join with its interval, in milliseconds. Each setting returns a new object;
    ``process`` returns the stream of results.

    >>> joined = (
    ...     clicks.interval_join(orders)
    ...     .between(Time.minutes(0), Time.minutes(10))
    ...     .upper_bound_exclusive()
    ... )  # doctest: +SKIP
    """

    _left: S
    _right: S
    _as_stream: Callable[[RecordedStream], S] = field(repr=False)
    _lower: int
    _upper: int
    _lower_inclusive: bool = True
    _upper_inclusive: bool = True
    _late_left: OutputTag | None = None
    _late_right: OutputTag | None = None

    def lower_bound_exclusive(self) -> IntervalJoined[S]:
        """Excludes records exactly at the lower bound."""
        return replace(self, _lower_inclusive=False)

    def upper_bound_exclusive(self) -> IntervalJoined[S]:
        """Excludes records exactly at the upper bound."""
        return replace(self, _upper_inclusive=False)

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined[S]:
        """Sends late left records, which come after the watermark has passed them, to this side
        output; by default they are dropped."""
        return replace(self, _late_left=_tag(output_tag, "side_output_left_late_data()"))

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined[S]:
        """Sends late right records to this side output; by default they are dropped."""
        return replace(self, _late_right=_tag(output_tag, "side_output_right_late_data()"))

    def process(
        self, process_join_function: ProcessJoinFunction, output_type: TypeInformation | None = None
    ) -> S:
        """Calls the function with every pair. Results have the later of both timestamps. Column
        batches are read as rows.

        >>> class Sale(ProcessJoinFunction):
        ...     def process_element(self, left, right, ctx):
        ...         yield left, right, ctx.get_timestamp()
        >>> list(Sale().process_element("click", "order", ProcessJoinFunction.Context()))
        [('click', 'order', 0)]
        """
        from flinkpy.operators.process.interval_join import IntervalJoinOperator

        check_function(
            process_join_function, ProcessJoinFunction, "process_element", 3, "process()"
        )
        output_type = check_type(output_type, "process()")
        lower = self._lower + (not self._lower_inclusive)
        upper = self._upper - (not self._upper_inclusive)
        if lower > upper:
            raise refuse(
                "process(): with its bounds left out nothing remains of the interval; leave "
                "one of lower_bound_exclusive() and "
                "upper_bound_exclusive() out, or widen between(...)"
            )
        left, right = keyed(self._left.recorded), keyed(self._right.recorded)
        operator = IntervalJoinOperator(
            typed_join(process_join_function, "process_element", output_type, many=True),
            left.key,
            right.key,
            lower,
            upper,
            (_id(self._late_left), _id(self._late_right)),
        )
        return self._as_stream(
            apply_two(
                "IntervalJoin",
                operator,
                left.stream,
                right.stream,
                output_type,
                key1=left.key,
                key2=right.key,
            )
        )


def _tag(tag: object, call: str) -> OutputTag:
    if not isinstance(tag, OutputTag):
        raise refuse(f"{call} takes an OutputTag, this is {tag!r:.80}")
    return tag


def _id(tag: OutputTag | None) -> str | None:
    return None if tag is None else tag.tag_id
