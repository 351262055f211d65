"""Locations: paths of the local disk, and URLs. Every process of a cluster must understand them
alike, so paths are absolute."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def scheme_of(location: str) -> str | None:
    """What a URL begins with, in lower case; None for a path.

    >>> scheme_of("s3://bucket/checkpoints"), scheme_of("/tmp/checkpoints")
    ('s3', None)
    """
    match = _URL.match(location)
    return match[1].lower() if match else None


def absolute(location: str) -> str:
    """The location without slashes at its end; a path from the root on.

    >>> absolute("s3://bucket/checkpoints/"), absolute("/tmp/checkpoints/../other/")
    ('s3://bucket/checkpoints', '/tmp/other')
    """
    if scheme_of(location) is None:
        return os.path.abspath(location)
    path, mark, query = location.partition("?")
    return path.rstrip("/") + mark + query


def join(location: str, *names: str) -> str:
    """What has these names below the location. A URL's options (``?region=…``) stay at its end.

    >>> join("s3://bucket/checkpoints?region=eu-west-1", "job", "chk-1")
    's3://bucket/checkpoints/job/chk-1?region=eu-west-1'
    """
    path, mark, query = location.partition("?") if scheme_of(location) else (location, "", "")
    return "/".join([path.rstrip("/"), *names]) + mark + query


def name_of(location: str) -> str:
    """Its last name.

    >>> name_of("s3://bucket/checkpoints/job?region=eu-west-1")
    'job'
    """
    path = location.partition("?")[0] if scheme_of(location) else location
    return path.rstrip("/").rpartition("/")[2]


def folder_of(location: str) -> str:
    """The folder it is in.

    >>> folder_of("s3://bucket/checkpoints/job?region=eu-west-1")
    's3://bucket/checkpoints?region=eu-west-1'
    """
    path, mark, query = location.partition("?") if scheme_of(location) else (location, "", "")
    return path.rstrip("/").rpartition("/")[0] + mark + query


def local_path(location: str) -> str:
    """The path on this machine's disk that a path or a ``file:`` URL means.

    >>> local_path("file:///tmp/my%20checkpoints"), local_path("/tmp/100%")
    ('/tmp/my checkpoints', '/tmp/100%')
    """
    return location if scheme_of(location) is None else unquote(urlsplit(location).path)


def is_file(location: str) -> bool:
    """Whether a file is there, and no folder can be: on this machine's disk, as object stores have
    no folders.

    >>> is_file("/etc/passwd"), is_file("s3://bucket/etc/passwd")
    (True, False)
    """
    return scheme_of(location) in (None, "file") and os.path.isfile(local_path(location))


def shared_folder(job_dir: str) -> str:
    """Where a job keeps the files that several of its checkpoints use.

    >>> shared_folder("/tmp/checkpoints/job")
    '/tmp/checkpoints/job/shared'
    """
    return join(job_dir, "shared")
