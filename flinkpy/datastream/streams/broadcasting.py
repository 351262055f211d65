"""The broadcast state pattern: one stream's elements meet, in every subtask, what another stream has told all of them.

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

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.datastream.checks import caller, check_arity, check_type, located, refuse
from flinkpy.datastream.typed.typed_functions import declared
from flinkpy.graph.transformations import TwoInputTransformation
from flinkpy.operators.functions import Function
from flinkpy.operators.process.broadcast import BroadcastProcessOperator, KeyedBroadcastProcessOperator
from flinkpy.operators.process.broadcast_functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from flinkpy.state.descriptors import MapStateDescriptor

if TYPE_CHECKING:
    from flinkpy.datastream.data_stream import DataStream


class BroadcastStream:
    """Given by ``stream.broadcast(descriptor, ...)``: for ``other.connect(...)``. The descriptors name the states its elements write."""

    def __init__(self, input_stream: DataStream, broadcast_state_descriptors: Sequence[MapStateDescriptor]) -> None:
        self.input_stream, self.broadcast_state_descriptors = input_stream, tuple(broadcast_state_descriptors)

    def __repr__(self) -> str:
        return f"<BroadcastStream of {self.input_stream!r}>"


class BroadcastConnectedStream:
    """Given by ``stream.connect(broadcast_stream)``."""

    def __init__(self, non_broadcast_stream: DataStream, broadcast_stream: BroadcastStream,
                 broadcast_state_descriptors: Sequence[MapStateDescriptor]) -> None:
        self.non_broadcast_stream, self.broadcast_stream = non_broadcast_stream, broadcast_stream
        self.broadcast_state_descriptors = tuple(broadcast_state_descriptors)

    def process(self, func: BroadcastProcessFunction | KeyedBroadcastProcessFunction, output_type: TypeInformation | None = None) -> DataStream:
        """A BroadcastProcessFunction, or on a keyed stream a KeyedBroadcastProcessFunction.

        Elements of the two streams come in no order among them: keep what comes before its rule (in keyed state), if it must not be missed.
        """
        from flinkpy.datastream.streams.keyed_verbs import KeyedStream

        stream, output_type = self.non_broadcast_stream, check_type(output_type, "process()")
        keyed = isinstance(stream, KeyedStream)
        _check(func, KeyedBroadcastProcessFunction if keyed else BroadcastProcessFunction, keyed)
        if isinstance(stream, KeyedStream):
            with located():
                operator: Any = KeyedBroadcastProcessOperator(func, self.broadcast_state_descriptors, stream._key)
            return self._apply("Co-Process-Broadcast-Keyed", operator, output_type)
        return self._apply("Co-Process-Broadcast", BroadcastProcessOperator(func, self.broadcast_state_descriptors), output_type)

    def _apply(self, name: str, operator: Any, output_type: TypeInformation | None) -> DataStream:
        from flinkpy.datastream.data_stream import DataStream

        stream = self.non_broadcast_stream
        rows, env = stream._with_rows(), stream._env
        transformation = TwoInputTransformation(
            id=env._next_id(), name=name, input1=rows._transformation, input2=self.broadcast_stream.input_stream._transformation,
            operator=declared(operator, output_type), key1=getattr(stream, "_key", None), output_type=output_type, where=caller())
        env._add(transformation)
        return DataStream(env, transformation, helpers=rows._conversion())

    def __repr__(self) -> str:
        return f"<BroadcastConnectedStream {self.non_broadcast_stream!r} {self.broadcast_stream!r}>"


def broadcast_stream(stream: DataStream, descriptors: Sequence[Any]) -> BroadcastStream:
    """``stream.broadcast(*descriptors)``."""
    for descriptor in descriptors:
        if not isinstance(descriptor, MapStateDescriptor):
            raise refuse(f"broadcast() takes MapStateDescriptors, this is {descriptor!r:.80}")
        if descriptor.ttl is not None:
            raise refuse(f"broadcast(): a time to live is for keyed state, the broadcast state {descriptor.name!r} does not expire")
    names = [descriptor.name for descriptor in descriptors]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise refuse(f"broadcast(): two of the descriptors are named {min(twice)!r}; one name is one state")
    return BroadcastStream(stream._with_rows(before_edge=True).broadcast(), descriptors)


def _check(function: Any, wanted: type[Function], keyed: bool) -> None:
    if isinstance(function, type):
        raise refuse(f"process() takes a function object, not a class: write {function.__name__}()")
    if not isinstance(function, wanted):
        raise refuse(f"process() takes a {wanted.__name__} here, as the stream is {'' if keyed else 'not '}keyed; {function!r:.80} is none")
    for method in ("process_element", "process_broadcast_element"):
        check_arity(getattr(function, method), 2, f"process(): {method}()")
