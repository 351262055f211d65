"""The end of a stream."""

from __future__ import annotations

from flinkpy.datastream.streams.operator_settings import OperatorSettings


class DataStreamSink(OperatorSettings):
    """A sink. Like any operator it has a name, a parallelism and a slot sharing group. No operator
    reads from it."""

    def name(self, name: str) -> DataStreamSink:
        """Names the sink; plans show it as ``Sink: name``."""
        super().name(name)
        if not name.startswith("Sink: "):
            self.recorded.transformation.name = f"Sink: {name}"
        return self

    def __repr__(self) -> str:
        return f"<DataStreamSink {self.recorded.transformation.name!r}>"
