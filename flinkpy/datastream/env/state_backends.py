"""Where keyed state is kept while the job runs, under PyFlink's names. What survives a failure is
in checkpoints, whichever backend is chosen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any

from flinkpy.core.options import compatibility as kept
from flinkpy.core.options import state as options
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.core.options.schema import Option, read
from flinkpy.core.program.program_line import refuse


class StateBackend(ABC):
    """The base class of :class:`HashMapStateBackend` and :class:`EmbeddedRocksDBStateBackend`; see
    ``env.set_state_backend(...)``."""

    @abstractmethod
    def kind(self) -> options.StateBackendKind:
        """The value of option ``state.backend.type``."""

    def settings(self) -> dict[str, Any]:
        """The options that the backend sets."""
        return {options.STATE_BACKEND.key: self.kind()}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class HashMapStateBackend(StateBackend):
    """Keeps state in memory, as Python objects: the fastest backend, for as much state as memory
    holds. The default.

    >>> HashMapStateBackend().kind().value
    'hashmap'
    """

    def kind(self) -> options.StateBackendKind:
        return options.StateBackendKind.HASHMAP


class PredefinedOptions(Enum):
    """RocksDB's options for a kind of disk. Stored and returned by its getter; they have no effect
    yet."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """Keeps state in a RocksDB database on local disk, for more state than memory holds. Each
    access pickles what it reads or writes.

    Needs ``pip install 'flinkpy[rocksdb]'``. With ``enable_incremental_checkpointing`` a checkpoint
    writes only the files of the database that the one before does not have. A job may start from
    the checkpoints of either kind, and from those of the HashMapStateBackend, and that one from
    these.

    >>> backend = EmbeddedRocksDBStateBackend(enable_incremental_checkpointing=True)
    >>> backend.set_db_storage_paths("/tmp/states", "/data/states")
    >>> backend.get_db_storage_paths(), backend.is_incremental_checkpoints_enabled()
    (['/tmp/states', '/data/states'], True)
    """

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        if not isinstance(enable_incremental_checkpointing, (bool, type(None))):
            raise refuse(
                "EmbeddedRocksDBStateBackend() takes whether checkpoints are incremental, "
                "True or False, "
                f"not {enable_incremental_checkpointing!r:.80}"
            )
        self._settings: dict[str, Any] = {}
        self._keep(CHECKPOINT_INCREMENTAL, enable_incremental_checkpointing)

    def kind(self) -> options.StateBackendKind:
        return options.StateBackendKind.ROCKSDB

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Whether a checkpoint writes only what changed since the one before."""
        return bool(read(self._settings, CHECKPOINT_INCREMENTAL))

    def set_db_storage_paths(self, *paths: str) -> None:
        """Sets the local folders for working files; the databases of a process use several in turn.
        Raises ProgramError for anything but folders as text."""
        if not paths or not all(isinstance(path, str) and path.strip() for path in paths):
            raise refuse(
                "set_db_storage_paths() takes one folder or several, as text; this is "
                f"{paths!r:.80}"
            )
        self._keep(options.ROCKSDB_DIRECTORY, ",".join(path.strip() for path in paths))

    def get_db_storage_paths(self) -> list[str] | None:
        """The folders that were set; None for the default, which is under ``io.tmp.dirs``."""
        return options.folders(read(self._settings, options.ROCKSDB_DIRECTORY)) or None

    # PyFlink's name of the parameter
    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Stored; has no effect yet."""
        if not isinstance(options, PredefinedOptions):
            raise refuse(
                f"set_predefined_options() takes one of PredefinedOptions, this is {options!r:.80}"
            )
        self._keep(kept.ROCKSDB_PREDEFINED_OPTIONS, options.name)

    def get_predefined_options(self) -> PredefinedOptions:
        """The options that were set, or ``PredefinedOptions.DEFAULT``."""
        name = read(self._settings, kept.ROCKSDB_PREDEFINED_OPTIONS)
        if name not in PredefinedOptions.__members__:
            raise refuse(
                f"option {kept.ROCKSDB_PREDEFINED_OPTIONS.key} is one of "
                f"{', '.join(PredefinedOptions.__members__)}, not {name!r:.80}"
            )
        return PredefinedOptions[name]

    def set_options(self, options_factory_class_name: str) -> None:
        """Stored without effect: it names a Java class, and there is no Java here."""
        if not isinstance(options_factory_class_name, str):
            raise refuse(
                "set_options() takes the name of a class, as text; this is "
                f"{options_factory_class_name!r:.80}"
            )
        self._keep(kept.ROCKSDB_OPTIONS_FACTORY, options_factory_class_name)

    def get_options(self) -> str | None:
        """The name that was set, or None."""
        name: str | None = read(self._settings, kept.ROCKSDB_OPTIONS_FACTORY)
        return name

    def set_number_of_transfer_threads(self, number_of_transfer_threads: int) -> None:
        """Stored; checkpoints are not taken yet."""
        if (
            isinstance(number_of_transfer_threads, bool)
            or not isinstance(number_of_transfer_threads, int)
            or number_of_transfer_threads < 1
        ):
            raise refuse(
                "set_number_of_transfer_threads() takes a number of threads, 1 or more, not "
                f"{number_of_transfer_threads!r:.80}"
            )
        self._keep(kept.ROCKSDB_TRANSFER_THREADS, number_of_transfer_threads)

    def get_number_of_transfer_threads(self) -> int:
        """The number of threads that would transfer the files of a checkpoint."""
        return int(read(self._settings, kept.ROCKSDB_TRANSFER_THREADS))

    def settings(self) -> dict[str, Any]:
        from flinkpy.state.rocksdb.database import require_rocksdb

        require_rocksdb()
        return super().settings() | self._settings

    def _keep(self, option: Option[Any], value: object) -> None:
        if value is not None:
            self._settings[option.key] = value

    @classmethod
    def _of(cls, values: dict[str, Any]) -> EmbeddedRocksDBStateBackend:
        """The backend that the options describe."""
        made = cls()
        for option in (
            options.ROCKSDB_DIRECTORY,
            CHECKPOINT_INCREMENTAL,
            kept.ROCKSDB_PREDEFINED_OPTIONS,
            kept.ROCKSDB_OPTIONS_FACTORY,
            kept.ROCKSDB_TRANSFER_THREADS,
        ):
            made._keep(option, read(values, option))
        return made


def state_backend_of(values: dict[str, Any]) -> StateBackend:
    """The backend that the options describe."""
    if read(values, options.STATE_BACKEND) is options.StateBackendKind.HASHMAP:
        return HashMapStateBackend()
    return EmbeddedRocksDBStateBackend._of(values)
