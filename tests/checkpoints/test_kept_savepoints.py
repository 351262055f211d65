"""Savepoints that earlier versions wrote are restored by this one. What stands under ``kept`` is
never written again: a version that cannot read it must convert it, or say that it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from flinkpy.state.inspection.checkpoint_contents import contents_of
from tests.checkpoints.kept_job import FORMS, KEPT, run_rest

SAVEPOINTS = [version / form for version in sorted(KEPT.iterdir()) for form in FORMS]


def test_there_is_one_of_each_form() -> None:
    assert [path.name for path in SAVEPOINTS if path.parent.name == "0.1.0"] == [
        "native",
        "canonical",
    ]


@pytest.mark.wide(but=("1-hashmap", "2-rocksdb-0.1.0-native"))
@pytest.mark.parametrize(
    "savepoint", SAVEPOINTS, ids=lambda path: f"{path.parent.name}-{path.name}"
)
@pytest.mark.parametrize(
    ("parallelism", "backend"), [(1, "hashmap"), (2, "rocksdb"), (3, "hashmap")]
)
def test_a_job_goes_on_from_a_kept_savepoint(
    savepoint: Path, parallelism: int, backend: str
) -> None:
    wanted = (savepoint.parent / "wanted.txt").read_text().splitlines()
    assert run_rest(savepoint, parallelism, backend) == wanted


@pytest.mark.parametrize(
    "savepoint", SAVEPOINTS, ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_a_kept_savepoint_is_listed(savepoint: Path) -> None:
    found = contents_of(str(savepoint), show=1)
    assert found.damaged == []
    kinds = {state.kind for operator in found.operators for state in operator.states}
    assert kinds >= {
        "value state",
        "list state",
        "map state",
        "reducing state",
        "aggregating state",
        "state of the engine",
        "region",
        "operator list state",
        "operator union list state",
        "operator broadcast state",
    }
    sizes = [path.stat().st_size for path in savepoint.parent.rglob("*") if path.is_file()]
    assert sum(sizes) < 200_000
