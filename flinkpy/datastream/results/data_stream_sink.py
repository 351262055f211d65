"""The end of a stream."""

from __future__ import annotations

from flinkpy.datastream.streams.operator_settings import OperatorSettings
from flinkpy.datastream.streams.recorded import RecordedStream

GLOBAL_COMMITTER = "Global Committer"


class DataStreamSink(OperatorSettings):
    """A sink. Like any operator it has a name, a parallelism and a slot sharing group. No operator
    reads from it.

    A sink with a global committer is two operators, writers and a committer behind them. The
    settings are those of the writers; the name and the uid of the committer follow from theirs, and
    it shares their slots."""

    def __init__(self, recorded: RecordedStream, committer: RecordedStream | None = None) -> None:
        super().__init__(recorded)
        self._committer = committer

    def name(self, name: str) -> DataStreamSink:
        """Names the sink; plans show it as ``Sink: name``."""
        super().name(name)
        if not name.startswith("Sink: "):
            self.recorded.transformation.name = f"Sink: {name}"
        if self._committer is not None:
            self._committer.transformation.name = f"{name}: {GLOBAL_COMMITTER}"
        return self

    def uid(self, uid: str) -> DataStreamSink:
        """Sets the sink's id, as for every operator; that of a global committer is made of it."""
        super().uid(uid)
        if self._committer is not None:
            self._committer.transformation.uid = f"{uid}: {GLOBAL_COMMITTER}"
        return self

    def __repr__(self) -> str:
        return f"<DataStreamSink {self.recorded.transformation.name!r}>"
