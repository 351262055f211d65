"""Texts of set-ups: equal for equal ones, in every run."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest

from flinkpy.graph.source_identity import described

PROGRAM = """
from flinkpy.graph.source_identity import described
class Source:
    def __init__(self):
        self.paths, self.reads, self.opaque = {"a", "b", "c"}, lambda line: line, object()
print(described(Source()))
"""


def test_a_set_up_is_described_alike_in_every_run() -> None:
    texts = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(3)
    }
    assert len(texts) == 1


class Setup:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, "1"),
        (1, True),
        (1, 1.0),
        ("a", b"a"),
        ([1], (1,)),
        ([1, 2], [2, 1]),
        (timedelta(1), timedelta(2)),
        ({"a": 1}, {"a": 2}),
        (list(range(20_000)), list(range(20_001))),
        (Setup(path="a"), Setup(path="b")),
        (Setup(at=Setup(n=1)), Setup(at=Setup(n=2))),
    ],
)
def test_other_set_ups_have_other_texts(one: Any, other: Any) -> None:
    assert described(one) != described(other)


def test_what_holds_itself_is_described_too() -> None:
    looped = Setup()
    looped.__dict__["within"] = looped
    assert described(looped).startswith("Setup(")
