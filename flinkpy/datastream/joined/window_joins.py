"""Window joins and co-groups of two streams, as in Flink:
``a.join(b).where(key).equal_to(key).window(assigner).apply(function)``.

Nothing is recorded before ``apply`` or ``select``. Tumbling and sliding event-time windows with
their default trigger have their own operators, one for rows and one for columns. All other windows
use the general window operator, over the union of both streams as tagged records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Generic, TypeVar

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.datastream.checks import check_function, check_type, located, refuse
from flinkpy.datastream.joined.typed_joins import typed_join
from flinkpy.datastream.streams.operator_settings import OperatorSettings
from flinkpy.datastream.streams.recorded import (
    ColumnStream,
    RecordedStream,
    RowStream,
    apply_two,
    apply_two_columns,
    copy_place,
)
from flinkpy.datastream.verbs.column_verbs import select_columns
from flinkpy.datastream.verbs.event_time import refuse_unstamped
from flinkpy.datastream.verbs.key_verbs import Keyed, key_stream
from flinkpy.datastream.verbs.routing import union_of
from flinkpy.datastream.verbs.row_verbs import map_records
from flinkpy.graph.operator_port import Operator
from flinkpy.operators.functions import Function
from flinkpy.operators.process.join_functions import CoGroupFunction, FlatJoinFunction, JoinFunction
from flinkpy.windowing.arguments import Span, milliseconds_of

S = TypeVar("S", bound=OperatorSettings)
J = TypeVar("J", bound="TwoStreams[Any]")


@dataclass(frozen=True, repr=False)
class TwoStreams(Generic[S]):
    """What joins and co-groups share. Each call returns a new object with one more setting, until
    ``apply`` returns the stream of results.

    ``_as_stream`` makes the public stream for a recorded one.
    """

    _first: S
    _second: S
    _as_stream: Callable[[RecordedStream], S]
    _left: Keyed | None = None
    _right: Keyed | None = None
    _assigner: Any = None
    _trigger: Any = None
    _evictor: Any = None
    _lateness: int = 0
    _call: ClassVar[str]

    def where(self: J, *key_selector: Any, key_type: TypeInformation | None = None) -> J:
        """Sets the key of the first stream: a function of the record, a KeySelector, or the names
        of fields."""
        if self._left is not None:
            raise refuse(
                "where(): the first stream's key is known already; call equal_to(...) for the "
                "second stream's"
            )
        return replace(self, _left=_keyed(self._first.recorded, key_selector, key_type, "where()"))

    def equal_to(self: J, *key_selector: Any, key_type: TypeInformation | None = None) -> J:
        """Sets the key of the second stream. Records of both streams with equal keys are joined."""
        if self._left is None:
            raise refuse(
                "equal_to(): say the first stream's key before: "
                f"{self._call}(...).where(key).equal_to(key)"
            )
        if self._right is not None:
            raise refuse("equal_to(): the second stream's key is known already")
        right = _keyed(self._second.recorded, key_selector, key_type, "equal_to()")
        counts = [len(getattr(each.key.selector, "_fields", ())) for each in (self._left, right)]
        if 0 not in counts and counts[0] != counts[1]:
            raise refuse(
                f"equal_to(): where(...) names {counts[0]} fields, this names {counts[1]}; "
                "they are compared one by one"
            )
        return replace(self, _right=right)

    def window(self: J, assigner: object) -> J:
        """Sets the windows: records in the same window are joined. Raises ProgramError before both
        keys are set."""
        from flinkpy.windowing.assigners import WindowAssigner

        self._need_keys("window()")
        if self._assigner is not None:
            raise refuse("window(): the windows are known already")
        if not isinstance(assigner, WindowAssigner):
            raise refuse(
                "window() takes a WindowAssigner, such as "
                f"TumblingEventTimeWindows.of(Time.seconds(10)), this is {assigner!r:.80}"
            )
        if assigner.is_event_time():
            streams = {"first": self._first.recorded, "second": self._second.recorded}
            refuse_unstamped(
                streams,
                f"window(): {assigner!r} needs",
                "before, or use windows of processing time",
            )
        return replace(self, _assigner=assigner)

    def trigger(self: J, trigger: object) -> J:
        """Sets when a window is evaluated, in place of the assigner's default trigger. The trigger
        gets records as TaggedUnion."""
        from flinkpy.windowing.assigners import MergingWindowAssigner
        from flinkpy.windowing.triggers import Trigger

        self._need_window("trigger()")
        if not isinstance(trigger, Trigger):
            raise refuse(f"trigger() takes a Trigger object, this is {trigger!r:.80}")
        if isinstance(self._assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise refuse(
                f"trigger(): windows of {self._assigner!r} merge, and {trigger!r} cannot; "
                "take one with can_merge()"
            )
        return replace(self, _trigger=trigger)

    def evictor(self: J, evictor: object) -> J:
        """Sets an evictor, which removes records from a window when it is evaluated. It gets
        records as TaggedUnion."""
        from flinkpy.windowing.evictors import Evictor

        self._need_window("evictor()")
        if not isinstance(evictor, Evictor):
            raise refuse(f"evictor() takes an Evictor object, this is {evictor!r:.80}")
        return replace(self, _evictor=evictor)

    def allowed_lateness(self: J, lateness: Span) -> J:
        """Sets how long after its end an event-time window still takes records. Each late record
        makes its key's window fire again."""
        self._need_window("allowed_lateness()")
        with located():
            milliseconds = milliseconds_of(lateness, "the allowed lateness")
        if milliseconds < 0:
            raise refuse(f"allowed_lateness(): it is 0 or more, this is {lateness!r}")
        return replace(self, _lateness=milliseconds)

    # -- checks ------------------------------------------------------------------------------------

    def _need_keys(self, call: str) -> tuple[Keyed, Keyed]:
        if self._left is None or self._right is None:
            missing = "where" if self._left is None else "equal_to"
            raise refuse(
                f"{call}: say {missing}(key) before: "
                f"{self._call}(...).where(key).equal_to(key).window(assigner)"
            )
        return self._left, self._right

    def _need_window(self, call: str) -> tuple[Keyed, Keyed]:
        keyed = self._need_keys(call)
        if self._assigner is None:
            raise refuse(
                f"{call}: say window(assigner) before; a stream has no end at which all its "
                "records could be joined"
            )
        return keyed

    @property
    def _is_on_grid(self) -> bool:
        """Whether the operators for aligned windows can run it: event time, the assigner's default
        trigger, no evictor."""
        from flinkpy.windowing.slicing import slicing_of
        from flinkpy.windowing.triggers import EventTimeTrigger

        own_trigger = self._trigger is None or type(self._trigger) is EventTimeTrigger
        return (
            own_trigger
            and self._evictor is None
            and self._assigner.is_event_time()
            and slicing_of(self._assigner) is not None
        )

    # -- recording ---------------------------------------------------------------------------------

    def _on_grid(self, name: str, operator: Operator, output_type: TypeInformation | None) -> S:
        """Both streams under an operator for aligned windows."""
        left, right = self._need_window("apply()")
        return self._as_stream(
            apply_two(
                name,
                operator,
                left.stream,
                right.stream,
                output_type,
                key1=left.key,
                key2=right.key,
            )
        )

    def _as_one(self, name: str, function: object, output_type: TypeInformation | None) -> S:
        """The union of both streams as tagged records, under the general window operator."""
        from flinkpy.windowing.general.window_operator import WindowOperator
        from flinkpy.windowing.joins.tagged_union import TaggedKey, TaggedUnion
        from flinkpy.windowing.windowing_strategy import WindowingStrategy

        left, right = self._need_window("apply()")
        both = union_of(
            [
                _tagged(self._first.recorded, TaggedUnion.one),
                _tagged(self._second.recorded, TaggedUnion.two),
            ]
        )
        stream, key = key_stream(both, TaggedKey(left.key.selector, right.key.selector), (), None)
        with located():
            windows = WindowingStrategy(
                self._assigner, self._trigger, self._evictor, self._lateness
            )
            operator = WindowOperator(key, windows, window_function=function)
        return self._as_stream(stream.apply(name, operator, output_type, key))

    def __repr__(self) -> str:
        known = [field.name[1:] for field in fields(self)[3:] if getattr(self, field.name)]
        return (
            f"<{type(self).__name__} of {self._first!r} and "
            f"{self._second!r}{', with ' if known else ''}{', '.join(known)}>"
        )


class JoinedStreams(TwoStreams[S]):
    """Returned by ``DataStream.join``: pairs of records with equal keys in the same window (an
    inner join).

    >>> from flinkpy.common import Time
    >>> from flinkpy.datastream.window import TumblingEventTimeWindows
    >>> ten_seconds = TumblingEventTimeWindows.of(Time.seconds(10))
    >>> sales = (
    ...     auctions.join(persons)
    ...     .where(lambda a: a.seller)
    ...     .equal_to(lambda p: p.id)
    ...     .window(ten_seconds)
    ...     .apply(lambda auction, person: (person.name, auction.price))
    ... )  # doctest: +SKIP
    """

    _call = "join"

    def apply(self, function: object = None, output_type: TypeInformation | None = None) -> S:
        """Calls a JoinFunction, a FlatJoinFunction or a function of two records with every pair.
        Results have the window's last timestamp.

        Without a function the result is columns; then both streams must be columnar, and their keys
        columns. It has the columns of the first stream, then those of the second. A name that the
        first stream also has gets the suffix ``_right``; a key column with the same name in both is
        left out."""
        from flinkpy.windowing.joins.tagged_union import JoinPairs
        from flinkpy.windowing.joins.window_join import WindowJoinOperator

        left, right = self._need_window("apply()")
        if function is None:
            return self._as_stream(self._columns("apply() without a function"))
        flat = isinstance(function, FlatJoinFunction)
        check_function(function, FlatJoinFunction if flat else JoinFunction, "join", 2, "apply()")
        _check_kind(function, (JoinFunction, FlatJoinFunction), "join(...)")
        output_type = check_type(output_type, "apply()")
        function = typed_join(function, "join", output_type, many=flat)
        if self._is_on_grid:
            operator = WindowJoinOperator(
                function, left.key, right.key, self._assigner, self._lateness, flat=flat
            )
            return self._on_grid("Join", operator, output_type)
        return self._as_one("Join", JoinPairs(function, flat), output_type)

    def select(self, *expressions: Any) -> S:
        """Joins as columns, and selects these columns and expressions.

        >>> auctions.join(persons).where("seller").equal_to("id").window(ten_seconds).select(
        ...     "id", "price"
        ... )  # doctest: +SKIP
        """
        return self._as_stream(select_columns(self._columns("select()"), expressions))

    def _columns(self, call: str) -> ColumnStream:
        from flinkpy.windowing.joins.columnar_join import ColumnarJoinOperator

        (first, key1), (second, key2) = left, right = self._need_window(call)
        if not isinstance(first, ColumnStream) or not isinstance(second, ColumnStream):
            raise refuse(
                f"{call} joins columns, and not both streams are columnar: pass a function of "
                "two records to apply(...)"
            )
        if not self._is_on_grid:
            raise refuse(
                f"{call} joins columns in tumbling or sliding windows of event time with "
                "their own trigger; for others pass a function of "
                "two records to apply(...)"
            )
        if self._lateness:
            raise refuse(
                f"{call} joins columns without allowed lateness; leave it out, or pass a "
                "function of two records to apply(...)"
            )
        operator = ColumnarJoinOperator(left.columns(call), right.columns(call), self._assigner)
        return apply_two_columns("Join", operator, first, second, key1, key2)


class CoGroupedStreams(TwoStreams[S]):
    """Returned by ``DataStream.co_group``: all records of a key and window of both streams at once,
    even if one side has none.

    >>> orders.co_group(payments).where(lambda o: o.id).equal_to(lambda p: p.order).window(
    ...     ten_seconds
    ... ).apply(
    ...     lambda orders, payments: [order for order in orders if not payments]
    ... )  # doctest: +SKIP
    """

    _call = "co_group"

    def apply(self, function: object, output_type: TypeInformation | None = None) -> S:
        """Calls a CoGroupFunction, or a function of two lists that returns an iterable, for each
        key and window. Results have the window's last timestamp."""
        from flinkpy.windowing.joins.tagged_union import CoGroup
        from flinkpy.windowing.joins.window_co_group import WindowCoGroupOperator

        left, right = self._need_window("apply()")
        check_function(function, CoGroupFunction, "co_group", 2, "apply()")
        _check_kind(function, (CoGroupFunction,), "co_group(...)")
        output_type = check_type(output_type, "apply()")
        function = typed_join(function, "co_group", output_type, many=True)
        if self._is_on_grid:
            return self._on_grid(
                "CoGroup",
                WindowCoGroupOperator(
                    function, left.key, right.key, self._assigner, self._lateness
                ),
                output_type,
            )
        return self._as_one("CoGroup", CoGroup(function), output_type)


def _check_kind(function: object, kinds: tuple[type[Function], ...], call: str) -> None:
    if isinstance(function, Function) and not isinstance(function, kinds):
        names = " or a ".join(kind.__name__ for kind in kinds)
        raise refuse(f"apply() behind {call} takes a {names}; {type(function).__name__} is none")


def _keyed(
    stream: RecordedStream, selectors: tuple[Any, ...], key_type: TypeInformation | None, call: str
) -> Keyed:
    if not selectors or (len(selectors) == 1 and isinstance(selectors[0], TypeInformation)):
        raise refuse(
            f"{call} takes a function of the record, a KeySelector, or the names of fields"
        )
    return key_stream(stream, selectors[0], selectors[1:], key_type, call)


def _tagged(stream: RecordedStream, tag: object) -> RowStream:
    """Tags records in the subtasks that make them, so that they keep their order."""
    rows = stream.as_rows(before_edge=True)
    tagged = map_records(rows, tag, None)
    copy_place(rows.transformation, tagged.transformation)
    return tagged
