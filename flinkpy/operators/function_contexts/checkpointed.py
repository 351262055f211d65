"""CheckpointedFunction: how a user function keeps state that belongs to no key, in any operator.

``initialize_state`` is called before ``open``, ``snapshot_state`` at the start of each checkpoint,
both in the task's thread."""

from __future__ import annotations

from abc import ABC, abstractmethod

from flinkpy.operators.context import OperatorContext
from flinkpy.operators.function_contexts.keyed_state_store import KeyedStateStore
from flinkpy.operators.user_errors import user_code_error
from flinkpy.state.api import OperatorStateStore


class FunctionInitializationContext:
    """What ``initialize_state`` gets: access to the function's state."""

    def __init__(self, context: OperatorContext, keyed_state_store: KeyedStateStore) -> None:
        self._context, self._keyed_state_store = context, keyed_state_store

    def is_restored(self) -> bool:
        """Whether the operator starts from a snapshot. If so, the states hold what was saved."""
        return self._context.operator_state.restored

    def get_operator_state_store(self) -> OperatorStateStore:
        """List, union list and broadcast state of this subtask."""
        return self._context.operator_state

    def get_keyed_state_store(self) -> KeyedStateStore:
        """State per key, as the runtime context gives it; on a stream without keys its calls raise
        ProgramError."""
        return self._keyed_state_store


class FunctionSnapshotContext:
    """What ``snapshot_state`` gets: which checkpoint is being taken."""

    def __init__(self, checkpoint_id: int, timestamp_ms: int) -> None:
        self._checkpoint_id, self._timestamp_ms = checkpoint_id, timestamp_ms

    def get_checkpoint_id(self) -> int:
        return self._checkpoint_id

    def get_checkpoint_timestamp(self) -> int:
        """When the JobMaster triggered the checkpoint, in milliseconds since 1970-01-01 UTC."""
        return self._timestamp_ms


class CheckpointedFunction(ABC):
    """A second base class for a function that keeps state which belongs to no key (Flink's
    CheckpointedFunction).

    >>> from flinkpy.common import Types
    >>> from flinkpy.datastream.functions import CheckpointedFunction, SinkFunction
    >>> from flinkpy.datastream.state import ListStateDescriptor
    >>> class Buffer(SinkFunction, CheckpointedFunction):
    ...     def initialize_state(self, context):
    ...         self.saved = context.get_operator_state_store().get_list_state(
    ...             ListStateDescriptor("buffer", Types.STRING())
    ...         )
    ...         self.buffer = list(self.saved.get())
    ...
    ...     def invoke(self, value, context=None):
    ...         self.buffer.append(value)
    ...
    ...     def snapshot_state(self, context):
    ...         self.saved.update(self.buffer)
    """

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Called before ``open``: get the states, and what they hold after a restore."""

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Called at the start of a checkpoint: bring the states up to date. A source's is called
        while none of its records is under way."""


def initialize_function(
    function: object, context: OperatorContext, keyed_state_store: KeyedStateStore
) -> None:
    """Calls the function's ``initialize_state``, and registers its ``snapshot_state``. Other
    functions are left alone.

    The engine's wrappers have the user's function as ``wrapped_function``.
    """
    if not isinstance(function, CheckpointedFunction):
        function = getattr(function, "wrapped_function", None)
        if not isinstance(function, CheckpointedFunction):
            return

    def snapshot(checkpoint_id: int, timestamp_ms: int) -> None:
        try:
            function.snapshot_state(FunctionSnapshotContext(checkpoint_id, timestamp_ms))
        except BaseException as error:
            raise user_code_error(error, context) from error

    function.initialize_state(FunctionInitializationContext(context, keyed_state_store))
    context.operator_state.before_snapshot(snapshot)
