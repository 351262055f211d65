"""What operators with keyed state share: they create, snapshot, restore and close a backend for
their key groups."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from types import MappingProxyType

from flinkpy.core.elements import CheckpointBarrier
from flinkpy.core.keys import key_group_range
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.core.options.schema import read
from flinkpy.core.options.state import STATE_BACKEND, StateBackendKind, manages_state
from flinkpy.graph.partitioning import KeySpec
from flinkpy.metrics.definitions import ENTRIES, STATE_BYTES
from flinkpy.operators.base import BatchForm, StreamOperator, Work
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.function_contexts.checkpointed import CheckpointedFunction
from flinkpy.operators.functions import Function
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.snapshots.saved_state import FrozenState, SavedState


def create_backend(context: OperatorContext) -> KeyedStateBackend:
    """An empty backend for the key groups of this subtask."""
    task = context.task
    groups = key_group_range(task.subtask_index, task.max_parallelism, task.parallelism)
    if read(context.configuration, STATE_BACKEND) is StateBackendKind.ROCKSDB:
        from flinkpy.state.rocksdb.database import RocksDBConfig
        from flinkpy.state.rocksdb.rocksdb_backend import RocksDBKeyedStateBackend

        return RocksDBKeyedStateBackend(
            task.max_parallelism, groups, context.clock, RocksDBConfig.of(context.configuration)
        )
    # where a program is built no state is needed, nor what snapshots it
    from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend

    incremental = read(context.configuration, CHECKPOINT_INCREMENTAL)
    return HeapKeyedStateBackend(
        task.max_parallelism, groups, context.clock, incremental=incremental
    )


def _nothing_lent() -> None: ...


def _lend_memory(context: OperatorContext) -> Callable[[], None]:
    """RocksDB may take the operator's share of managed memory, until what this returns is
    called."""
    memory, kind = context.memory, MemoryKind.STATE_BACKEND
    share = memory.share_of(kind)
    if not share or not manages_state(context.configuration):
        return _nothing_lent
    from flinkpy.state.rocksdb.shared_memory import shared_memory

    shared = shared_memory(context.configuration)
    if shared is None or not memory.reserve(share, kind):
        return _nothing_lent
    shared.lend(share)

    def take_back() -> None:
        shared.lend(-share)
        memory.release(share, kind)

    return take_back


def may_ask_for_state(function: object) -> bool:
    """Whether the function may ask for state while it processes records, because it may have kept
    its runtime context."""
    function = getattr(function, "wrapped_function", function)
    return isinstance(function, CheckpointedFunction) or (
        isinstance(function, Function) and type(function).open is not Function.open
    )


class KeyedStateOperator(StreamOperator):
    """An operator that has keyed state from ``initialize_state`` to ``close``."""

    memory_weights = MappingProxyType({MemoryKind.STATE_BACKEND: 1})
    backend: KeyedStateBackend
    _has_backend = False
    # takes back the managed memory that RocksDB has
    _take_memory_back: Callable[[], None] = staticmethod(_nothing_lent)

    def initialize_state(self, restored: SavedState | None) -> None:
        super().initialize_state(restored)
        self._take_memory_back = _lend_memory(self.context)
        self.backend = create_backend(self.context)
        self._has_backend = True
        if restored is not None and restored.pieces is not None:
            self.backend.restore_pieces(restored.pieces)
        if restored is not None and restored.keyed is not None:
            self.backend.restore(restored.keyed)
        if restored is not None:
            self.backend.restore_chunks(restored.chunks)

    def freeze_state(self, barrier: CheckpointBarrier) -> FrozenState:
        # first: functions called for it may write keyed state
        operator = super().freeze_state(barrier).operator
        in_pieces = not barrier.options.snapshot_type.is_savepoint
        return FrozenState(
            self.backend.freeze(in_pieces) if self.backend.has_states else None, operator
        )

    def entries_held(self) -> int | None:
        """How many entries of keyed state the operator holds in a form of its own; None of one that
        leaves it all to the backend."""
        return None

    def bytes_held(self) -> int | None:
        """How many bytes these take; None if that is not known."""
        return None

    def measures(self, now_ms: int) -> dict[str, float]:
        told = {**super().measures(now_ms), **self.backend.measures()}
        entries, size = self.entries_held(), self.bytes_held()
        if entries is not None:
            told[ENTRIES] = told.get(ENTRIES, 0) + entries
        if size is not None:
            told[STATE_BYTES] = told.get(STATE_BYTES, 0) + size
        return told

    def close(self) -> None:
        if self._has_backend:
            self.backend.close()
        self._take_memory_back()
        super().close()


class EndsKeys(KeyedStateOperator):
    """An operator that must be told in a batch job when a key has no more records."""

    batch_form = BatchForm.BY_KEY
    key: KeySpec  # of operators with one input

    @abstractmethod
    def end_key(self) -> Work | None:
        """Fires the current key's timers, event time first. Timers that these set are dropped, as
        in Flink, because a timer that sets itself again would never end."""
