"""One server for all tests of a worker process; every test has a bucket of its own on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.s3.server import KEY, SECRET, Bucket, new_bucket, running_s3


@pytest.fixture(scope="session")
def s3_host() -> Iterator[str]:
    """Host and port of the server."""
    with running_s3() as host:
        yield host


@pytest.fixture
def bucket(s3_host: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    return new_bucket(s3_host)
