"""A stream with a pattern: what ``match`` returns, and the steps up to ``process``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from flinkpy.cep.match_functions import PatternProcessFunction, Selecting, SelectingTimedOut
from flinkpy.cep.pattern import Pattern
from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.datastream.checks import check_arity, check_function, check_type, located, refuse
from flinkpy.datastream.streams.operator_settings import OperatorSettings
from flinkpy.datastream.streams.recorded import ColumnStream, RecordedStream
from flinkpy.datastream.verbs.event_time import lacks_timestamps

if TYPE_CHECKING:
    from flinkpy.cep.pattern_operator import Matched, PatternOperator

S = TypeVar("S", bound=OperatorSettings)


@dataclass(frozen=True)
class PatternStream(Generic[S]):
    """A stream in which a pattern is looked for: per key of a keyed stream, else in all records by
    one subtask. Each setting returns a new object; ``process``, ``select`` and ``flat_select``
    return the stream of results.

    >>> alarms = payments.key_by(card).match(small_then_big).select(
    ...     lambda match: match["big"][0]
    ... )  # doctest: +SKIP
    """

    _stream: S
    _pattern: Pattern
    _as_stream: Callable[[RecordedStream], S] = field(repr=False)
    _comparator: Any = None
    _late: OutputTag | None = None
    _event_time: bool = True

    def in_event_time(self) -> PatternStream[S]:
        """Events come in the order of their timestamps; the default."""
        return replace(self, _event_time=True)

    def in_processing_time(self) -> PatternStream[S]:
        """Events come as they arrive, with the machine's time."""
        return replace(self, _event_time=False)

    def side_output_late_data(self, late_data_output_tag: OutputTag) -> PatternStream[S]:
        """Sends events that come when the watermark has passed them to this side output; by default
        they are dropped."""
        return replace(self, _late=_tag(late_data_output_tag, "side_output_late_data()"))

    def process(
        self,
        pattern_process_function: PatternProcessFunction,
        output_type: TypeInformation | None = None,
    ) -> S:
        """Calls the function with every match. If it is a TimedOutPartialMatchHandler too, it is
        also called with partial matches that take too long. Results have the timestamp of the
        match's last event."""
        check_function(
            pattern_process_function, PatternProcessFunction, "process_match", 2, "process()"
        )
        return self._matched(pattern_process_function, output_type, "process()")

    def select(
        self,
        select_function: Callable[[dict[str, list[Any]]], Any],
        output_type: TypeInformation | None = None,
        timeout_tag: OutputTag | None = None,
        timeout_function: Callable[[dict[str, list[Any]], int], Any] | None = None,
    ) -> S:
        """One result for each match. With ``timeout_tag`` and ``timeout_function``, partial matches
        that take too long give a result in that side output: the function gets the match and the
        time."""
        function = _selecting(select_function, False, timeout_tag, timeout_function, "select()")
        return self._matched(function, output_type, "select()")

    def flat_select(
        self,
        flat_select_function: Callable[[dict[str, list[Any]]], Any],
        output_type: TypeInformation | None = None,
        timeout_tag: OutputTag | None = None,
        timeout_function: Callable[[dict[str, list[Any]], int], Any] | None = None,
    ) -> S:
        """Any number of results for each match: the functions return or yield them."""
        function = _selecting(
            flat_select_function, True, timeout_tag, timeout_function, "flat_select()"
        )
        return self._matched(function, output_type, "flat_select()")

    def _matched(
        self, function: PatternProcessFunction, output_type: TypeInformation | None, call: str
    ) -> S:
        from flinkpy.cep.matching_operator import Intake
        from flinkpy.cep.pattern_operator import Matched

        recorded = self._stream.recorded
        output_type = check_type(output_type, call)
        if self._event_time and lacks_timestamps(recorded.transformation):
            raise refuse(
                f"{call}: a pattern in event time needs records with timestamps, and these have "
                "none: call assign_timestamps_and_watermarks(...) before, or in_processing_time()"
            )
        late = None if self._late is None else self._late.tag_id
        matched = Matched(self._pattern, Intake(self._comparator, late, self._event_time))
        given, operator = _operator(recorded, matched, function)
        operator.declared_type = output_type
        result = given.apply("Pattern", operator, output_type, recorded.key)
        result.transformation.description = f"Pattern({self._pattern!r})"
        if recorded.key is None:
            result.make_non_parallel()
        return self._as_stream(result)


def _operator(
    recorded: RecordedStream, matched: Matched, function: PatternProcessFunction
) -> tuple[RecordedStream, PatternOperator]:
    """What the operator reads, and the operator: of columns, unless the key is a function, or a
    comparator compares rows."""
    from flinkpy.cep.pattern_operator import PatternOperator

    by_columns = recorded.key is None or recorded.key.columns is not None
    in_columns = by_columns and matched.intake.compare is None
    if not isinstance(recorded, ColumnStream) or not in_columns:
        with located():
            return recorded.as_rows(), PatternOperator(matched, function, recorded.key)
    from flinkpy.cep.column_pattern_operator import ColumnPatternOperator

    with located():
        operator = ColumnPatternOperator(matched, function, recorded.key)
        if recorded.schema is not None:
            operator.check(recorded.schema)
    return recorded, operator


def pattern_stream(
    stream: S, pattern: object, comparator: object, as_stream: Callable[[RecordedStream], S]
) -> PatternStream[S]:
    """Implements ``match``."""
    if not isinstance(pattern, Pattern):
        raise refuse(f"match() takes a Pattern, this is {pattern!r:.80}")
    return PatternStream(stream, pattern, as_stream, compare_of(comparator, "match()"))


def compare_of(comparator: Any, call: str) -> Any:
    """The function that orders records of equal time, of what the program gives."""
    if comparator is None:
        return None
    compare = getattr(comparator, "compare", None) or comparator
    if not callable(compare):
        raise refuse(f"{call}: the comparator {comparator!r:.80} cannot be called")
    check_arity(compare, 2, f"{call}: the comparator")
    return compare


def _selecting(
    function: Any, many: bool, tag: OutputTag | None, timeout_function: Any, call: str
) -> PatternProcessFunction:
    for name in ("flat_select", "select"):
        if not callable(function) and hasattr(function, name):
            function = getattr(function, name)
    if not callable(function):
        raise refuse(f"{call} takes a function of the match, this is {function!r:.80}")
    check_arity(function, 1, call)
    if not many and inspect.isgeneratorfunction(function):
        raise refuse(f"{call} takes one value from its function: return it, or call flat_select()")
    if (tag is None) != (timeout_function is None):
        raise refuse(f"{call}: timeout_tag and timeout_function belong together")
    if tag is None:
        return Selecting(function, many)
    check_arity(timeout_function, 2, f"{call}: timeout_function")
    return SelectingTimedOut(function, many, _tag(tag, call), timeout_function)


def _tag(tag: object, call: str) -> OutputTag:
    if not isinstance(tag, OutputTag):
        raise refuse(f"{call} takes an OutputTag, this is {tag!r:.80}")
    return tag
