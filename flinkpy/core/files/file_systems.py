"""Arrow's file systems by URL: S3, Google's and Azure's stores, HDFS. Where an object store is, and
who asks, stands in the URL's query or in the store's own environment variables."""

from __future__ import annotations

import errno
import os
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from flinkpy.core.errors import ConfigurationError, FlinkpyError
from flinkpy.core.secrets.hidden_secrets import HIDDEN, without_secrets

# Hadoop's and Presto's names of S3, which Flink takes
_HADOOP_NAMES = {"s3a": "s3", "s3n": "s3", "s3p": "s3"}
_OBJECT_STORES = ("s3", "gcs", "abfs")
_RETRY_LIMIT = "retry_limit_seconds"  # an option of Arrow's, in the URL
RETRY_S = 30


def split_url(url: str) -> tuple[str, str]:
    """The file system's own URL, with its options, and the path in it.

    >>> split_url("s3://lake/sales/part%201.csv?scheme=http")
    ('s3://lake/?scheme=http', '/sales/part 1.csv')

    Raises ConfigurationError for a URL that was copied from where its credentials are hidden.
    """
    if HIDDEN in url:
        raise ConfigurationError(
            f"{url} has {HIDDEN} where flinkpy hides credentials: write them in again, or "
            "set them in "
            "the environment of the workers (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) "
            "and leave them out"
        )
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"{_HADOOP_NAMES.get(parts.scheme, parts.scheme)}://{parts.netloc}/{query}", unquote(
        parts.path
    )


def shown(store: str) -> str:
    """What error messages and file names call the file system: its URL without credentials and
    options.

    >>> shown("s3://key:secret@lake/?scheme=http")
    's3://lake'
    """
    parts = urlsplit(store)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


@lru_cache(maxsize=64)
def file_system(store: str) -> tuple[Any, str]:
    """Arrow's file system, and what its paths begin with: of S3 the bucket. Each is made once,
    because making one may ask the network. Raises Arrow's ValueError or NotImplementedError for a
    URL that it cannot read."""
    from pyarrow import fs

    system, root = fs.FileSystem.from_uri(with_bounded_retries(store))
    return system, root.rstrip("/")


def with_bounded_retries(store: str) -> str:
    """The URL; of Google's store with an end to its retries. By itself it tries for a quarter of an
    hour where there is no server, and where there are no credentials.

    >>> with_bounded_retries("gs://lake/")
    'gs://lake/?retry_limit_seconds=30'
    >>> with_bounded_retries("gs://lake/?retry_limit_seconds=5"), with_bounded_retries("s3://lake/")
    ('gs://lake/?retry_limit_seconds=5', 's3://lake/')
    """
    parts = urlsplit(store)
    if parts.scheme not in ("gs", "gcs") or _RETRY_LIMIT in parts.query:
        return store
    return f"{store}{'&' if parts.query else '?'}{_RETRY_LIMIT}={RETRY_S}"


class StoreError(FlinkpyError):
    """An object store does not answer, or refuses. A job that restarts asks it again."""


_NO_GOOGLE_CREDENTIALS = "OAuth2 access token"
_NO_ANSWER = (
    "NETWORK_CONNECTION",
    "REQUEST_TIMEOUT",
    "curlCode",
    "Could not connect",
    "Couldn't resolve",
    "timed out",
)


def told(error: Exception, store: str) -> str:
    """What Arrow says, for the end of a sentence. Of a server that does not answer it also says
    where it was looked for, and what says so.

    >>> error = OSError("curlCode: 7, Could not connect to server")
    >>> store = "s3://lake/?endpoint_override=minio:9000&scheme=http"
    >>> told(error, store)  # doctest: +ELLIPSIS
    'no server answers at minio:9000; check endpoint_override= and scheme= in the URL ...'
    """
    if _NO_GOOGLE_CREDENTIALS in str(error):
        return without_secrets(
            "there are no credentials for Google's store; name their file in "
            "GOOGLE_APPLICATION_CREDENTIALS, in the environment of the workers too, or write "
            f"anonymous@ before the name of a public bucket ({error})"
        )
    if not is_without_answer(error):
        return without_secrets(str(error))
    endpoint = parse_qs(urlsplit(store).query).get("endpoint_override")
    variable = next(
        (name for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") if os.environ.get(name)), None
    )
    if endpoint:
        where = f"at {endpoint[0]}; check endpoint_override= and scheme= in the URL"
    elif variable is not None:
        where = f"at {os.environ[variable]}; check the variable {variable}"
    else:
        where = (
            "; check region= in the URL, or say where the server is with endpoint_override= "
            "in the URL or the variable AWS_ENDPOINT_URL"
        )
    return without_secrets(f"no server answers {where} ({error})".replace("answers ;", "answers;"))


def is_without_answer(error: Exception) -> bool:
    """Whether Arrow says that no server has answered."""
    return any(sign in str(error) for sign in _NO_ANSWER)


def is_object_store(system: Any) -> bool:
    """Whether the file system has objects and neither folders nor renames."""
    return system.type_name in _OBJECT_STORES


_LASTING = {
    errno.ENOENT,  # the folder was just made: it cannot be
    errno.ENOTDIR,
    errno.EEXIST,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EINVAL,
}
_SAID_BY_OBJECT_STORES = (
    "NO_SUCH_BUCKET",
    "ACCESS_DENIED",
    "ACCESS DENIED",
    "INVALID_ACCESS_KEY_ID",
    "SIGNATURE_DOES_NOT_MATCH",
)


def is_lasting(error: OSError) -> bool:
    """Whether an attempt a moment later would meet the same: nobody may write there, or something
    else is in the place.

    >>> (
    ...     is_lasting(NotADirectoryError(20, "Not a directory")),
    ...     is_lasting(OSError(28, "No space left on device")),
    ... )
    (True, False)
    """
    return error.errno in _LASTING or any(
        sign in str(error).upper() for sign in _SAID_BY_OBJECT_STORES
    )
