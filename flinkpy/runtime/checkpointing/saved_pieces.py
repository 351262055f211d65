"""Keyed state that was saved in pieces, read back in the thread for files: into what the configured
backend takes over, or into a snapshot that any backend restores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.core.options.schema import read
from flinkpy.core.options.state import STATE_BACKEND, StateBackendKind
from flinkpy.graph.checkpoints import KeyedPieces
from flinkpy.state.checkpoints.state_reader import StateReader
from flinkpy.state.snapshots.saved_state import SavedState


def with_pieces(
    found: SavedState,
    saved: Sequence[KeyedPieces],
    reader: StateReader,
    max_parallelism: int,
    groups: range,
    values: Mapping[str, Any],
) -> SavedState:
    """A subtask's share of the state, whose other keyed state is in ``saved``: what all subtasks
    saved that had some of its key groups."""
    if not saved:
        return found
    forms = {pieces.form for pieces in saved}
    if forms != {"rocksdb"}:
        raise CheckpointDamagedError(
            "keyed state",
            "pieces of a RocksDB database",
            f"pieces of the form {', '.join(sorted(map(repr, forms)))}",
        )
    from flinkpy.state.rocksdb.database import RocksDBConfig, require_rocksdb
    from flinkpy.state.rocksdb.prepared_database import prepare_database
    from flinkpy.state.rocksdb.rocksdb_backend import merged_snapshot

    require_rocksdb()
    config = RocksDBConfig.of(values)
    prepared = prepare_database(reader, saved, max_parallelism, groups, config)
    if read(values, STATE_BACKEND) is StateBackendKind.ROCKSDB:
        return found._replace(pieces=prepared)
    return found._replace(
        keyed=merged_snapshot(prepared, found.keyed, max_parallelism, groups, config)
    )
