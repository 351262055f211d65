"""Arrow's file systems, as flinkpy makes them and tells of their errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import fs

from flinkpy.core.files.file_systems import RETRY_S, file_system, told


@pytest.mark.parametrize(
    ("store", "made"),
    [
        ("gs://lake-1/", f"gs://lake-1/?retry_limit_seconds={RETRY_S}"),
        ("gcs://lake-1/?scheme=http", f"gcs://lake-1/?scheme=http&retry_limit_seconds={RETRY_S}"),
        ("gs://lake-1/?retry_limit_seconds=5", "gs://lake-1/?retry_limit_seconds=5"),
        ("s3://lake-1/?scheme=http", "s3://lake-1/?scheme=http"),
    ],
)
def test_googles_store_is_not_asked_for_a_quarter_of_an_hour(
    store: str, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def from_uri(url: str) -> tuple[Any, str]:
        asked.append(url)
        return object(), "lake-1/"

    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=from_uri))
    file_system.cache_clear()
    file_system(store)
    file_system.cache_clear()
    assert asked == [made]


def test_missing_credentials_of_googles_store_are_told_with_what_to_set() -> None:
    error = OSError(
        "google::cloud::Status(UNAVAILABLE: Retry policy exhausted, with a last message of Could "
        "not create a OAuth2 access token to authenticate the request. CURL error [6]=Could not "
        "resolve hostname)"
    )
    assert told(error, "gs://lake/").startswith(
        "there are no credentials for Google's store; name their file in "
        "GOOGLE_APPLICATION_CREDENTIALS"
    )
