"""The broadcast state pattern: in every subtask, one stream's elements meet what another stream has
sent to all subtasks.

>>> from flinkpy.common import Types
>>> from flinkpy.datastream import BroadcastProcessFunction, StreamExecutionEnvironment
>>> from flinkpy.datastream.state import MapStateDescriptor
>>> NAMES = MapStateDescriptor("names", Types.INT(), Types.STRING())
>>> class Name(BroadcastProcessFunction):
...     def process_element(self, value, ctx):
...         yield ctx.get_broadcast_state(NAMES).get(value) or "nobody"
...     def process_broadcast_element(self, value, ctx):
...         ctx.get_broadcast_state(NAMES).put(*value)
>>> env = StreamExecutionEnvironment.get_execution_environment()
>>> names = env.from_collection([(1, "Ada")]).broadcast(NAMES)
>>> env.from_collection([1, 2]).connect(names).process(Name()).get_name()
'Co-Process-Broadcast'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.datastream.checks import check_arity, check_type, located, refuse
from flinkpy.datastream.streams.operator_settings import OperatorSettings
from flinkpy.datastream.streams.recorded import RecordedStream, apply_two
from flinkpy.datastream.verbs.routing import partitioned
from flinkpy.datastream.verbs.typed_functions import declared
from flinkpy.graph.partitioning import BROADCAST
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.functions import Function
from flinkpy.operators.process.broadcast import (
    BroadcastProcessOperator,
    KeyedBroadcastProcessOperator,
)
from flinkpy.operators.process.broadcast_functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from flinkpy.state.descriptors import MapStateDescriptor

S = TypeVar("S", bound=OperatorSettings)


class Broadcast(Generic[S]):
    """The base class of BroadcastStream."""

    def __init__(
        self, input_stream: S, broadcast_state_descriptors: Sequence[MapStateDescriptor]
    ) -> None:
        self.input_stream = input_stream
        self.broadcast_state_descriptors = tuple(broadcast_state_descriptors)

    def __repr__(self) -> str:
        return f"<BroadcastStream of {self.input_stream!r}>"


class BroadcastConnected(Generic[S]):
    """The methods of BroadcastConnectedStream. ``as_stream`` makes the public stream for a recorded
    one."""

    def __init__(
        self,
        non_broadcast_stream: S,
        broadcast_stream: Broadcast[S],
        broadcast_state_descriptors: Sequence[MapStateDescriptor],
        as_stream: Callable[[RecordedStream], S],
    ) -> None:
        self.non_broadcast_stream, self.broadcast_stream = non_broadcast_stream, broadcast_stream
        self.broadcast_state_descriptors = tuple(broadcast_state_descriptors)
        self._as_stream = as_stream

    def process(
        self,
        func: BroadcastProcessFunction | KeyedBroadcastProcessFunction,
        output_type: TypeInformation | None = None,
    ) -> S:
        """Calls a BroadcastProcessFunction, or on a keyed stream a KeyedBroadcastProcessFunction,
        with the elements of both streams.

        There is no order between elements of the two streams. If an element must not miss its rule,
        keep it (in keyed state) until the rule comes. Raises ProgramError for the wrong kind of
        function."""
        output_type = check_type(output_type, "process()")
        key = self.non_broadcast_stream.recorded.key
        _check(
            func,
            BroadcastProcessFunction if key is None else KeyedBroadcastProcessFunction,
            key is not None,
        )
        if key is None:
            return self._apply(
                "Co-Process-Broadcast",
                BroadcastProcessOperator(func, self.broadcast_state_descriptors),
                output_type,
            )
        with located():
            operator = KeyedBroadcastProcessOperator(func, self.broadcast_state_descriptors, key)
        return self._apply("Co-Process-Broadcast-Keyed", operator, output_type)

    def _apply(self, name: str, operator: StreamOperator, output_type: TypeInformation | None) -> S:
        first = self.non_broadcast_stream.recorded
        second = self.broadcast_stream.input_stream.recorded
        return self._as_stream(
            apply_two(
                name, declared(operator, output_type), first, second, output_type, key1=first.key
            )
        )

    def __repr__(self) -> str:
        return f"<BroadcastConnectedStream {self.non_broadcast_stream!r} {self.broadcast_stream!r}>"


def broadcast_with_states(stream: RecordedStream, descriptors: Sequence[Any]) -> RecordedStream:
    """Implements ``stream.broadcast(*descriptors)``: sends the stream's rows to every subtask."""
    for descriptor in descriptors:
        if not isinstance(descriptor, MapStateDescriptor):
            raise refuse(f"broadcast() takes MapStateDescriptors, this is {descriptor!r:.80}")
        if descriptor.ttl is not None:
            raise refuse(
                "broadcast(): a time to live is for keyed state, the broadcast state "
                f"{descriptor.name!r} does not expire"
            )
    names = [descriptor.name for descriptor in descriptors]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise refuse(
            f"broadcast(): two of the descriptors are named {min(twice)!r}; one name is one state"
        )
    rows = stream if stream.key is not None else stream.as_rows(before_edge=True)
    return partitioned(rows, BROADCAST, "broadcast()")


def _check(function: object, wanted: type[Function], keyed: bool) -> None:
    if isinstance(function, type):
        raise refuse(f"process() takes a function object, not a class: write {function.__name__}()")
    if not isinstance(function, wanted):
        raise refuse(
            f"process() takes a {wanted.__name__} here, as the stream is "
            f"{'' if keyed else 'not '}keyed; {function!r:.80} is none"
        )
    for method in ("process_element", "process_broadcast_element"):
        check_arity(getattr(function, method), 2, f"process(): {method}()")
