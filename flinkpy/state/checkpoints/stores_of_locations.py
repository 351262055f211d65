"""Which file store a location is in: the local disk for paths and ``file:`` URLs, what Arrow knows
for other URLs."""

from __future__ import annotations

from functools import lru_cache

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.files.file_systems import file_system, shown, split_url
from flinkpy.state.checkpoints.arrow_file_store import ArrowFileStore
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.local_file_store import LocalFileStore
from flinkpy.state.checkpoints.locations import scheme_of


def file_store_of(location: str) -> FileStore:
    """The store that the location is in.

    >>> type(file_store_of("/tmp/checkpoints")).__name__
    'LocalFileStore'
    """
    scheme = scheme_of(location)
    return (
        LocalFileStore()
        if scheme is None or scheme == "file"
        else _arrow_file_store(split_url(location)[0])
    )


def private_file_store_of(location: str) -> FileStore:
    """The same for files that nobody but their user may read, as those of a session: on a disk
    their mode says so. Who reads those of an object store is that store's to say."""
    store = file_store_of(location)
    return LocalFileStore(is_private=True) if isinstance(store, LocalFileStore) else store


@lru_cache(maxsize=64)
def _arrow_file_store(store: str) -> FileStore:
    try:
        return ArrowFileStore(*file_system(store))
    except (ValueError, NotImplementedError) as error:  # Arrow's errors of a URL it cannot read
        reason = str(error).replace(store, shown(store))  # Arrow shows credentials
        raise ConfigurationError(f"cannot keep checkpoints in {shown(store)}: {reason}") from None
