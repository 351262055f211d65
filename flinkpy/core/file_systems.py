"""Arrow's file systems by URL: S3, Google's and Azure's stores, HDFS. Where an object store is, and who asks, stands in
the URL's query or in the store's own environment variables."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

_HADOOP_NAMES = {"s3a": "s3", "s3n": "s3", "s3p": "s3"}  # Hadoop's and Presto's names of S3, which Flink takes
_OBJECT_STORES = ("s3", "gcs", "abfs")


def split_url(url: str) -> tuple[str, str]:
    """The file system's own URL, with its options, and the path in it.

    >>> split_url("s3://lake/sales/part%201.csv?scheme=http")
    ('s3://lake/?scheme=http', '/sales/part 1.csv')
    """
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"{_HADOOP_NAMES.get(parts.scheme, parts.scheme)}://{parts.netloc}/{query}", unquote(parts.path)


def shown(store: str) -> str:
    """What error messages and file names call the file system: its URL without credentials and options.

    >>> shown("s3://key:secret@lake/?scheme=http")
    's3://lake'
    """
    parts = urlsplit(store)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


@lru_cache(maxsize=64)
def file_system(store: str) -> tuple[Any, str]:
    """Arrow's file system, and what its paths begin with: of S3 the bucket. Each is made once, because making one may
    ask the network. Raises Arrow's ValueError or NotImplementedError for a URL that it cannot read."""
    from pyarrow import fs

    system, root = fs.FileSystem.from_uri(store)
    return system, root.rstrip("/")


def is_object_store(system: Any) -> bool:
    """Whether the file system has objects and neither folders nor renames."""
    return system.type_name in _OBJECT_STORES
