"""Which file store a location is in: the local disk for paths and ``file:`` URLs, what Arrow knows for other URLs."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from flinkpy.core.errors import ConfigurationError
from flinkpy.state.checkpoints.arrow_file_store import ArrowFileStore
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.local_file_store import LocalFileStore
from flinkpy.state.checkpoints.locations import scheme_of

_HADOOP_NAMES = {"s3a": "s3", "s3n": "s3", "s3p": "s3"}  # Hadoop's and Presto's names of S3, which Flink takes


def file_store_of(location: str) -> FileStore:
    """The store that the location is in. Stores of Arrow are made once for each host or bucket, because making one may
    ask the network.

    >>> type(file_store_of("/tmp/checkpoints")).__name__
    'LocalFileStore'
    """
    scheme = scheme_of(location)
    if scheme is None or scheme == "file":
        return LocalFileStore()
    parts = urlsplit(location)
    return _arrow_file_store(_HADOOP_NAMES.get(scheme, scheme), parts.netloc, parts.query)


@lru_cache(maxsize=64)
def _arrow_file_store(scheme: str, host: str, options: str) -> FileStore:
    from pyarrow import fs

    root = f"{scheme}://{host}/" + (f"?{options}" if options else "")
    try:
        system, path = fs.FileSystem.from_uri(root)
    except (ValueError, NotImplementedError) as error:  # Arrow's errors of a URL it cannot read
        raise ConfigurationError(f"cannot keep checkpoints in {scheme}://{host}: {error}") from error
    return ArrowFileStore(system, path.rstrip("/"))
