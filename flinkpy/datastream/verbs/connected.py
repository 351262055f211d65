"""ConnectedStreams: two streams that one function reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.datastream import functions as f
from flinkpy.datastream.checks import check_type, refuse
from flinkpy.datastream.streams.operator_settings import OperatorSettings
from flinkpy.datastream.streams.recorded import RecordedStream, apply_two
from flinkpy.datastream.verbs.typed_functions import declared
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.process.process_operators import (
    CoFlatMapOperator,
    CoMapOperator,
    CoProcessOperator,
    KeyedCoProcessOperator,
)

S = TypeVar("S", bound=OperatorSettings)


class Connected(Generic[S]):
    """The methods of ConnectedStreams. ``as_stream`` makes the public stream for a recorded one."""

    def __init__(self, stream1: S, stream2: S, as_stream: Callable[[RecordedStream], S]) -> None:
        self.stream1 = stream1
        self.stream2 = stream2
        self._as_stream = as_stream

    def map(self, func: f.CoMapFunction, output_type: TypeInformation | None = None) -> S:
        """Calls ``map1`` with records of the first stream and ``map2`` with those of the second;
        None as a result adds no record."""
        _check(func, ("map1", "map2"), f.CoMapFunction, "map()")
        return self._apply(
            "CoMap", CoMapOperator(func, self._keys()), check_type(output_type, "map()")
        )

    def flat_map(self, func: f.CoFlatMapFunction, output_type: TypeInformation | None = None) -> S:
        """Calls ``flat_map1`` with records of the first stream and ``flat_map2`` with those of the
        second; each may return any number of records."""
        _check(func, ("flat_map1", "flat_map2"), f.CoFlatMapFunction, "flat_map()")
        return self._apply(
            "CoFlatMap",
            CoFlatMapOperator(func, self._keys()),
            check_type(output_type, "flat_map()"),
        )

    def process(
        self,
        func: f.CoProcessFunction | f.KeyedCoProcessFunction,
        output_type: TypeInformation | None = None,
    ) -> S:
        """Calls a CoProcessFunction with a context and side outputs; if both streams are keyed, a
        KeyedCoProcessFunction. Raises ProgramError for the wrong kind of function."""
        keys = self._keys()
        wanted: type[f.Function] = f.CoProcessFunction if keys is None else f.KeyedCoProcessFunction
        if isinstance(func, (f.CoProcessFunction, f.KeyedCoProcessFunction)) and not isinstance(
            func, wanted
        ):
            both = "both streams are" if keys is not None else "not both streams are"
            raise refuse(
                f"process() takes a {wanted.__name__} here, as {both} keyed; "
                f"{type(func).__name__} is none"
            )
        _check(func, ("process_element1", "process_element2"), wanted, "process()")
        output_type = check_type(output_type, "process()")
        if keys is None:
            return self._apply("CoProcess", CoProcessOperator(func), output_type)
        return self._apply("KeyedCoProcess", KeyedCoProcessOperator(func, *keys), output_type)

    def _keys(self) -> tuple[KeySpec, KeySpec] | None:
        key1, key2 = self.stream1.recorded.key, self.stream2.recorded.key
        return None if key1 is None or key2 is None else (key1, key2)

    def _apply(self, name: str, operator: StreamOperator, output_type: TypeInformation | None) -> S:
        key1, key2 = self._keys() or (None, None)
        return self._as_stream(
            apply_two(
                name,
                declared(operator, output_type),
                self.stream1.recorded,
                self.stream2.recorded,
                output_type,
                key1=key1,
                key2=key2,
            )
        )

    def __repr__(self) -> str:
        return f"<ConnectedStreams {self.stream1!r} {self.stream2!r}>"


def _check(function: object, methods: tuple[str, str], kind: type[f.Function], call: str) -> None:
    if isinstance(function, type):
        raise refuse(f"{call} takes a function object, not a class: write {function.__name__}()")
    missing = [name for name in methods if not callable(getattr(function, name, None))]
    if missing:
        raise refuse(
            f"{call} on connected streams takes a {kind.__name__}; {function!r:.80} has no "
            f"{missing[0]}()"
        )
