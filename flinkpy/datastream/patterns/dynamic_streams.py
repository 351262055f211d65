"""A stream with patterns that come, change and go while the job runs: what ``match_dynamic``
returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.dynamic.dynamic_calls import SelectingByPattern
from flinkpy.cep.dynamic.pattern_updates import PatternUpdate, update_of
from flinkpy.cep.match_functions import PatternProcessFunction
from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.datastream.checks import check_arity, check_function, check_type, located, refuse
from flinkpy.datastream.patterns.pattern_streams import compare_of
from flinkpy.datastream.streams.operator_settings import OperatorSettings
from flinkpy.datastream.streams.recorded import RecordedStream, apply_two
from flinkpy.datastream.verbs.event_time import lacks_timestamps
from flinkpy.datastream.verbs.routing import partitioned
from flinkpy.graph.partitioning import BROADCAST, KeySpec

S = TypeVar("S", bound=OperatorSettings)


@dataclass(frozen=True)
class DynamicPatternStream(Generic[S]):
    """A stream in which the patterns of another stream are looked for: per key of a keyed stream,
    else in all records by one subtask. Each setting returns a new object; ``process``, ``select``
    and ``flat_select`` return the stream of results."""

    _stream: S
    _updates: S
    _as_stream: Callable[[RecordedStream], S] = field(repr=False)
    _initial: tuple[PatternUpdate, ...] = ()
    _comparator: Any = None
    _late: OutputTag | None = None
    _refused: OutputTag | None = None
    _event_time: bool = True

    def in_event_time(self) -> DynamicPatternStream[S]:
        """Events come in the order of their timestamps; the default."""
        return replace(self, _event_time=True)

    def in_processing_time(self) -> DynamicPatternStream[S]:
        """Events come as they arrive, with the machine's time."""
        return replace(self, _event_time=False)

    def side_output_late_data(self, late_data_output_tag: OutputTag) -> DynamicPatternStream[S]:
        """Sends events that come when the watermark has passed them to this side output; by default
        they are dropped."""
        return replace(self, _late=_tag(late_data_output_tag, "side_output_late_data()"))

    def side_output_refused_patterns(self, output_tag: OutputTag) -> DynamicPatternStream[S]:
        """Sends a RefusedPattern to this side output for each update that cannot be carried out; by
        default it is only logged and counted. The job goes on, with the version before."""
        return replace(self, _refused=_tag(output_tag, "side_output_refused_patterns()"))

    def process(
        self,
        pattern_process_function: PatternProcessFunction,
        output_type: TypeInformation | None = None,
    ) -> S:
        """Calls the function with every match of every pattern; its context has ``pattern_id()``
        and ``pattern_version()``. If it is a TimedOutPartialMatchHandler too, it is also called
        with partial matches that take too long."""
        check_function(
            pattern_process_function, PatternProcessFunction, "process_match", 2, "process()"
        )
        return self._matched(pattern_process_function, output_type, "process()")

    def select(
        self,
        select_function: Callable[[str, dict[str, list[Any]]], Any],
        output_type: TypeInformation | None = None,
    ) -> S:
        """One result for each match: the function gets the pattern's id and the match."""
        _check_selecting(select_function, "select()")
        if inspect.isgeneratorfunction(select_function):
            raise refuse("select() takes one value from its function: return it")
        return self._matched(SelectingByPattern(select_function, False), output_type, "select()")

    def flat_select(
        self,
        flat_select_function: Callable[[str, dict[str, list[Any]]], Any],
        output_type: TypeInformation | None = None,
    ) -> S:
        """Any number of results for each match: the function returns or yields them."""
        _check_selecting(flat_select_function, "flat_select()")
        function = SelectingByPattern(flat_select_function, True)
        return self._matched(function, output_type, "flat_select()")

    def _matched(
        self, function: PatternProcessFunction, output_type: TypeInformation | None, call: str
    ) -> S:
        from flinkpy.cep.dynamic.dynamic_operator import (
            DynamicPatternOperator,
            UpdatesOperator,
            Watched,
        )
        from flinkpy.cep.matching_operator import Intake
        from flinkpy.cep.pattern_operator import single_key

        events, updates = self._stream.recorded, self._updates.recorded
        events.refuse_stranger(updates, "match_dynamic()")
        output_type = check_type(output_type, call)
        if self._event_time and lacks_timestamps(events.transformation):
            raise refuse(
                f"{call}: patterns in event time need records with timestamps, and these have "
                "none: call assign_timestamps_and_watermarks(...) before, or in_processing_time()"
            )
        watched = Watched(
            self._initial,
            Intake(
                self._comparator,
                None if self._late is None else self._late.tag_id,
                self._event_time,
            ),
            None if self._refused is None else self._refused.tag_id,
        )
        with located():
            operator = DynamicPatternOperator(
                watched, function, KeySpec(single_key) if events.key is None else events.key
            )
        operator.declared_type = output_type
        timeless = updates.as_rows().apply("Pattern updates", UpdatesOperator())
        everywhere = partitioned(timeless, BROADCAST, "match_dynamic()")
        result = apply_two(
            "Dynamic patterns", operator, events, everywhere, output_type, key1=events.key
        )
        if events.key is None:
            result.make_non_parallel()
        return self._as_stream(result)


def dynamic_pattern_stream(
    stream: S,
    updates: object,
    initial: Iterable[object],
    comparator: Any,
    as_stream: Callable[[RecordedStream], S],
) -> DynamicPatternStream[S]:
    """Implements ``match_dynamic``."""
    if not isinstance(getattr(updates, "recorded", None), RecordedStream):
        raise refuse(f"match_dynamic() takes a stream of updates, this is {updates!r:.80}")
    with located():
        first = tuple(update_of(each) for each in initial)
    for each in first:
        if each.pattern is not None:
            compiled(each.pattern)  # refuses it while the program is built
    of_updates: Any = updates
    compare = compare_of(comparator, "match_dynamic()")
    return DynamicPatternStream(stream, of_updates, as_stream, first, compare)


def _check_selecting(function: object, call: str) -> None:
    if not callable(function):
        raise refuse(f"{call} takes a function of pattern id and match, this is {function!r:.80}")
    check_arity(function, 2, call)


def _tag(tag: object, call: str) -> OutputTag:
    if not isinstance(tag, OutputTag):
        raise refuse(f"{call} takes an OutputTag, this is {tag!r:.80}")
    return tag
