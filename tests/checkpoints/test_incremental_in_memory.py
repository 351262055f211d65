"""Jobs with state in memory whose checkpoints write only key groups that have changed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from flinkpy.core.elements import SavepointFormatType
from flinkpy.state.canonical.rewriting import rewrite
from flinkpy.state.inspection.checkpoint_contents import contents_of
from flinkpy.state_processor import SavepointReader, SavepointWriter
from tests.checkpoints.paced import failing_at
from tests.checkpoints.test_incremental import (
    RESTARTS,
    Gathering,
    checkpoints_in,
    environment,
    interrupted,
    last_of_keys,
    run,
)
from tests.checkpoints.test_recovery import FAILING, InOrder

IN_MEMORY = {"state.backend.type": "hashmap"}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[Any]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    return last_of_keys(run(environment(1, folder / "checkpoints", **IN_MEMORY), folder / "out"))


@pytest.mark.wide(but=("Gathering-2",))
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("function", [Gathering, InOrder])  # the second one has timers too
def test_a_job_that_fails_again_and_again_gives_what_it_gives_undisturbed(
    parallelism: int, function: Any, tmp_path: Path
) -> None:
    wanted = run(
        environment(parallelism, tmp_path / "undisturbed", **IN_MEMORY),
        tmp_path / "wanted",
        function=function,
    )
    fails = failing_at(tmp_path / "failed", *FAILING)
    found = run(
        environment(parallelism, tmp_path / "checkpoints", **RESTARTS, **IN_MEMORY),
        tmp_path / "out",
        fails,
        function,
    )
    assert found == wanted if function is InOrder else last_of_keys(found) == last_of_keys(wanted)
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_checkpoints_have_pieces_in_common_and_those_that_are_kept_have_all_of_theirs(
    tmp_path: Path,
) -> None:
    job = interrupted(
        tmp_path / "checkpoints",
        tmp_path / "out",
        2,
        **IN_MEMORY,
        **{"execution.checkpointing.num-retained": 4},
    )
    found = checkpoints_in(job)
    files = [checkpoint.shared_files() for checkpoint in found]
    assert {each.name for each in (job / "shared").iterdir()} == set[str]().union(*files)
    assert any(
        set(earlier.handles()) & set(later.handles())
        for earlier, later in itertools.pairwise(found)
    )


@pytest.mark.wide(but=("None-hashmap-2-3", "NATIVE-rocksdb-1-2"))
@pytest.mark.parametrize(("before", "after"), [(2, 2), (1, 2), (2, 3)])
@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
@pytest.mark.parametrize("form", [None, *SavepointFormatType])  # written anew, if there is one
def test_another_job_goes_on_from_them(
    before: int,
    after: int,
    backend: str,
    form: SavepointFormatType | None,
    undisturbed: tuple[int, list[Any]],
    tmp_path: Path,
) -> None:
    job = interrupted(tmp_path / "first", tmp_path / "out", before, **IN_MEMORY)
    out = tmp_path / "out"
    files = sorted(job.rglob("*"))
    if form is None:
        start = str(job)
    else:
        start = str(
            rewrite(str(checkpoints_in(job)[-1].location), str(tmp_path / "anew"), form).location
        )
    options = {"execution.state-recovery.path": start, "state.backend.type": backend}
    assert last_of_keys(run(environment(after, tmp_path / "second", **options), out)) == undisturbed
    assert sorted(job.rglob("*")) == files


def test_they_are_read_and_copied_without_a_job(
    undisturbed: tuple[int, list[Any]], tmp_path: Path
) -> None:
    job, out = interrupted(tmp_path / "first", tmp_path / "out", 2, **IN_MEMORY), tmp_path / "out"
    reader = SavepointReader.read(str(job))
    numbers = {key: sorted(values) for key, values in reader.read_keyed_state("keyed", "numbers")}
    assert dict(reader.read_keyed_state("keyed", "total")) == {
        key: sum(values) for key, values in numbers.items()
    }
    copy = SavepointWriter.from_existing_savepoint(str(job)).write(str(tmp_path / "copy"))
    options = {"execution.state-recovery.path": copy, **IN_MEMORY}
    assert last_of_keys(run(environment(3, tmp_path / "second", **options), out)) == undisturbed


def test_what_is_in_the_pieces_is_shown(tmp_path: Path) -> None:
    job = interrupted(tmp_path / "first", tmp_path / "out", 2, **IN_MEMORY)
    (keyed,) = [
        operator
        for operator in contents_of(str(job), show=3).operators
        if any(state.name == "numbers" for state in operator.states)
    ]
    found = {
        state.name: (state.entries, len(state.first))
        for state in keyed.states
        if not state.name.startswith("_")
    }
    assert found == dict.fromkeys(["numbers", "digits", "total"], (7, 3))
    assert keyed.damaged == []
