"""What CI does with tests that failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.again import tried_again


def cache_of(folder: Path, *names: str) -> Path:
    path = folder / "lastfailed"
    path.write_text(json.dumps(dict.fromkeys(names, True)))
    return path


@pytest.mark.wide
@pytest.mark.parametrize(("holds", "code"), [("True", 0), ("False", 1)])
def test_a_test_that_failed_is_tried_once_more(holds: str, code: int, tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text(f"def test_it():\n    assert {holds}\n")
    cache = cache_of(tmp_path, f"{test}::test_it")
    assert tried_again(cache) == code
    assert cache.exists() is (code != 0)


def test_many_that_failed_are_not_tried_again_nor_is_a_run_without_tests(tmp_path: Path) -> None:
    assert tried_again(cache_of(tmp_path, *(f"{number}" for number in range(4)))) == 1
    assert tried_again(tmp_path / "none") == 1
