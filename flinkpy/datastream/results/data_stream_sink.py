"""The end of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.datastream.streams.operator_settings import OperatorSettings
from flinkpy.graph.transformations import Transformation

if TYPE_CHECKING:
    from flinkpy.datastream.stream_execution_environment import StreamExecutionEnvironment


class DataStreamSink(OperatorSettings):
    """A sink: named, placed and parallelised like any operator; nothing reads it."""

    def __init__(self, env: StreamExecutionEnvironment, transformation: Transformation, helpers: tuple[Transformation, ...] = ()) -> None:
        self._env, self._transformation, self._helpers = env, transformation, helpers

    def name(self, name: str) -> DataStreamSink:
        """Names the sink; plans show it as ``Sink: name``."""
        super().name(name)
        if not name.startswith("Sink: "):
            self._transformation.name = f"Sink: {name}"
        return self

    def __repr__(self) -> str:
        return f"<DataStreamSink {self._transformation.name!r}>"
