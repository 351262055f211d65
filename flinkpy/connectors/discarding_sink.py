"""A sink that discards what it gets."""

from __future__ import annotations

from flinkpy.core.elements import Batch
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter


class DiscardingSink(Sink):
    """Writes nothing, for jobs that are run for what they do on the way."""

    takes_kinds = True

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return _Discarding()


class _Discarding(SinkWriter):
    def write_batch(self, batch: Batch) -> None:
        pass
