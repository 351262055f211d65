"""State backends, under PyFlink's module path: where keyed state lives while the job runs."""

from flinkpy.core.program.public_names import publish
from flinkpy.datastream.env.older_state_backends import FsStateBackend, MemoryStateBackend
from flinkpy.datastream.env.state_backends import (
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    StateBackend,
)

__all__ = [
    "EmbeddedRocksDBStateBackend",
    "FsStateBackend",
    "HashMapStateBackend",
    "MemoryStateBackend",
    "PredefinedOptions",
    "StateBackend",
]

publish(__name__)
