"""Operator state: a function that writes several records at once, and loses none of those that it
buffers.

    python examples/operator_state.py

The buffer belongs to the function and not to a key, so it is operator state: a list whose elements
may move to other subtasks when the parallelism changes. ``snapshot_state`` updates the state when a
checkpoint begins, ``initialize_state`` gets the saved state back. The test of this example saves
one and restores two."""

from __future__ import annotations

from flinkpy.common import Types
from flinkpy.datastream import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    MapFunction,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.state import ListStateDescriptor

AT_ONCE = 4


class Bulk(MapFunction, CheckpointedFunction):
    """Buffers words and "writes" four at once: returns what it wrote, or an empty string."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.saved = context.get_operator_state_store().get_list_state(
            ListStateDescriptor("not written yet", Types.STRING())
        )
        self.waiting = list(self.saved.get())

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.saved.update(self.waiting)

    def map(self, value: str) -> str:
        self.waiting.append(value)
        if len(self.waiting) < AT_ONCE:
            return ""
        written, self.waiting = " ".join(self.waiting), []
        return written


if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    words = environment.from_collection(
        ["the", "same", "drop", "must", "always", "find", "the", "same", "wheel"], Types.STRING()
    )
    words.map(Bulk(), Types.STRING()).filter(lambda line: line != "").print("written at once")
    environment.execute("bulk")
