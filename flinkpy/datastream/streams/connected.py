"""ConnectedStreams: two streams read by one function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.datastream import functions as f
from flinkpy.datastream.checks import caller, check_type, refuse
from flinkpy.datastream.typed.typed_functions import declared
from flinkpy.graph.transformations import TwoInputTransformation
from flinkpy.operators.process.process_operators import CoFlatMapOperator, CoMapOperator, CoProcessOperator, KeyedCoProcessOperator

if TYPE_CHECKING:
    from flinkpy.datastream.data_stream import DataStream
    from flinkpy.graph.partitioning import KeySpec


class ConnectedStreams:
    """Given by ``connect``. The function has a method for each input, and what both need is its own attributes.

    >>> orders.connect(rates).map(Convert())  # doctest: +SKIP
    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self.stream1, self.stream2 = stream1, stream2

    def key_by(self, key_selector1: Any, key_selector2: Any, key_type: TypeInformation | None = None) -> ConnectedStreams:
        """Records of one key, from both, meet in one subtask."""
        return ConnectedStreams(self.stream1.key_by(key_selector1, key_type=key_type), self.stream2.key_by(key_selector2, key_type=key_type))

    def map(self, func: f.CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """``map1`` for records of the first stream, ``map2`` for those of the second; None gives no record."""
        _check(func, ("map1", "map2"), f.CoMapFunction, "map()")
        return self._apply("CoMap", CoMapOperator(func, self._keys()), check_type(output_type, "map()"))

    def flat_map(self, func: f.CoFlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """The same with any number of records for each."""
        _check(func, ("flat_map1", "flat_map2"), f.CoFlatMapFunction, "flat_map()")
        return self._apply("CoFlatMap", CoFlatMapOperator(func, self._keys()), check_type(output_type, "flat_map()"))

    def process(self, func: f.CoProcessFunction | f.KeyedCoProcessFunction, output_type: TypeInformation | None = None) -> DataStream:
        """With a context and side outputs; a KeyedCoProcessFunction where both streams are keyed."""
        keys = self._keys()
        wanted: type[f.Function] = f.CoProcessFunction if keys is None else f.KeyedCoProcessFunction
        if isinstance(func, (f.CoProcessFunction, f.KeyedCoProcessFunction)) and not isinstance(func, wanted):
            both = "both streams are" if keys is not None else "not both streams are"
            raise refuse(f"process() takes a {wanted.__name__} here, as {both} keyed; {type(func).__name__} is none")
        _check(func, ("process_element1", "process_element2"), wanted, "process()")
        output_type = check_type(output_type, "process()")
        if keys is None:
            return self._apply("CoProcess", CoProcessOperator(func), output_type)
        return self._apply("KeyedCoProcess", KeyedCoProcessOperator(func, *keys), output_type)

    def _keys(self) -> tuple[KeySpec, KeySpec] | None:
        from flinkpy.datastream.streams.keyed_verbs import KeyedStream

        if isinstance(self.stream1, KeyedStream) and isinstance(self.stream2, KeyedStream):
            return self.stream1._key, self.stream2._key
        return None

    def _apply(self, name: str, operator: Any, output_type: TypeInformation | None) -> DataStream:
        from flinkpy.datastream.data_stream import DataStream

        first, second, env, keys = self.stream1._with_rows(), self.stream2._with_rows(), self.stream1._env, self._keys()
        transformation = TwoInputTransformation(
            id=env._next_id(), name=name, input1=first._transformation, input2=second._transformation, operator=declared(operator, output_type),
            key1=keys[0] if keys else None, key2=keys[1] if keys else None, output_type=output_type, where=caller())
        env._add(transformation)
        return DataStream(env, transformation, helpers=first._conversion() + second._conversion())

    def __repr__(self) -> str:
        return f"<ConnectedStreams {self.stream1!r} {self.stream2!r}>"


def _check(function: Any, methods: tuple[str, str], kind: type[f.Function], call: str) -> None:
    if isinstance(function, type):
        raise refuse(f"{call} takes a function object, not a class: write {function.__name__}()")
    missing = [name for name in methods if not callable(getattr(function, name, None))]
    if missing:
        raise refuse(f"{call} on connected streams takes a {kind.__name__}; {function!r:.80} has no {missing[0]}()")
