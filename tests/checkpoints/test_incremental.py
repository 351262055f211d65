"""Jobs on RocksDB whose checkpoints have files in common: they give what they give undisturbed,
start anew from them, and leave nothing behind."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import Types
from flinkpy.core.errors import JobExecutionError
from flinkpy.core.ids import JobId
from flinkpy.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from flinkpy.datastream.connectors.file_system import FileSink
from flinkpy.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from flinkpy.datastream.state_backend import EmbeddedRocksDBStateBackend
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.checkpoints.state_reader import location_of
from tests.checkpoints.paced import failing_at, run_until_it_fails, visible_lines
from tests.checkpoints.test_recovery import FAILING, InOrder, keyed, source

pytest.importorskip("rocksdict")

RETAINED = {
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.num-retained": 2,
}
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": 9,
    "restart-strategy.fixed-delay.delay": "1 ms",
}
# bytes: nothing stays in the manifest
ONE_FILE_EACH = {"execution.checkpointing.data-inline-threshold": 0}


class Gathering(KeyedProcessFunction):
    """Gives with each record all that is known of its key: how much that is says how many records
    came before."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.numbers = runtime_context.get_list_state(ListStateDescriptor("numbers", Types.LONG()))
        self.digits = runtime_context.get_map_state(
            MapStateDescriptor("digits", Types.INT(), Types.LONG())
        )
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.numbers.add(value[1])
        self.digits.put(value[1] % 10, (self.digits.get(value[1] % 10) or 0) + 1)
        self.total.update((self.total.value() or 0) + value[1])
        yield (
            len(self.numbers.get()),
            value[0],
            sorted(self.numbers.get()),
            sorted(self.digits.items()),
            self.total.value(),
        )


def last_of_keys(lines: list[str]) -> tuple[int, list[Any]]:
    """How many results there are, and the last of each key."""
    results = sorted(map(ast.literal_eval, lines))
    return len(results), sorted({result[1]: result for result in results}.values())


def environment(parallelism: int, folder: Path, **options: Any) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    env.enable_checkpointing(10)
    env.set_state_backend(EmbeddedRocksDBStateBackend(enable_incremental_checkpointing=True))
    env.program.values.update(
        {"execution.checkpointing.dir": str(folder), **ONE_FILE_EACH, **options}
    )
    return env


def run(
    env: StreamExecutionEnvironment,
    out: Path,
    fails: Any = lambda record: record,
    function: Any = Gathering,
) -> list[str]:
    """Runs a job with states of all kinds, until it fails or to its end; gives what is in the
    folder of its results then."""
    results = keyed(source(env).uid("records").map(fails)).process(function()).uid("keyed")
    results.map(str, Types.STRING()).sink_to(FileSink(out)).uid("out")
    run_until_it_fails(env)
    return sorted(visible_lines(out))


def interrupted(folder: Path, out: Path, parallelism: int = 2, **options: Any) -> Path:
    """A job that retains its last two checkpoints; its folder."""
    fails = failing_at(folder.parent / "failed", FAILING[-1])
    run(
        environment(
            parallelism, folder, **{"restart-strategy.type": "none", **RETAINED, **options}
        ),
        out,
        fails,
    )
    (job,) = folder.iterdir()
    return job


def checkpoints_in(job: Path) -> list[CompletedCheckpoint]:
    """Oldest first."""
    storage = FileCheckpointStorage(str(job.parent), JobId(job.name))
    return [
        storage.load(str(each))
        for each in sorted(job.glob("chk-*"), key=lambda each: int(each.name[4:]))
    ]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[Any]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    return last_of_keys(run(environment(1, folder / "checkpoints"), folder / "out"))


@pytest.mark.wide(but=("Gathering-2",))
@pytest.mark.parametrize("parallelism", [1, 2])
# the second one has timers too, which are not in the database
@pytest.mark.parametrize("function", [Gathering, InOrder])
def test_a_job_that_fails_again_and_again_gives_what_it_gives_undisturbed(
    parallelism: int, function: Any, tmp_path: Path
) -> None:
    undisturbed = run(
        environment(parallelism, tmp_path / "undisturbed"), tmp_path / "wanted", function=function
    )
    fails = failing_at(tmp_path / "failed", *FAILING)
    found = run(
        environment(parallelism, tmp_path / "checkpoints", **RESTARTS),
        tmp_path / "out",
        fails,
        function,
    )
    assert (
        found == undisturbed
        if function is InOrder
        else last_of_keys(found) == last_of_keys(undisturbed)
    )
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_checkpoints_have_files_in_common_and_those_that_are_kept_have_all_of_theirs(
    tmp_path: Path,
) -> None:
    job = interrupted(
        tmp_path / "checkpoints", tmp_path / "out", **{"execution.checkpointing.num-retained": 4}
    )
    files = [checkpoint.shared_files() for checkpoint in checkpoints_in(job)]
    assert {each.name for each in (job / "shared").iterdir()} == set[str]().union(*files)
    # not all: RocksDB merges files
    assert any(earlier & later for earlier, later in itertools.pairwise(files))


@pytest.mark.wide(but=("rocksdb-1-2",))
@pytest.mark.parametrize(("before", "after"), [(2, 2), (1, 2), (2, 1), (2, 3)])
@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_another_job_goes_on_from_them(
    before: int, after: int, backend: str, undisturbed: tuple[int, list[Any]], tmp_path: Path
) -> None:
    job, out = interrupted(tmp_path / "first", tmp_path / "out", before), tmp_path / "out"
    files = sorted(job.rglob("*"))
    start = {"execution.state-recovery.path": str(job), "state.backend.type": backend}
    assert last_of_keys(run(environment(after, tmp_path / "second", **start), out)) == undisturbed
    assert sorted(job.rglob("*")) == files  # they are not the second job's to delete
    assert list((tmp_path / "second").iterdir()) == []


def test_a_job_that_claims_a_checkpoint_deletes_its_files_and_none_that_another_checkpoint_has(
    undisturbed: tuple[int, list[Any]], tmp_path: Path
) -> None:
    job, out = interrupted(tmp_path / "first", tmp_path / "out"), tmp_path / "out"
    before, last = checkpoints_in(job)
    start = {
        "execution.state-recovery.path": str(last.location),
        "execution.state-recovery.claim-mode": "CLAIM",
    }
    assert last_of_keys(run(environment(2, tmp_path / "second", **start), out)) == undisturbed
    assert {each.name for each in (job / "shared").iterdir()} == before.shared_files()
    assert [each.name for each in job.glob("chk-*")] == [Path(str(before.location)).name]


def test_a_damaged_shared_file_is_reported_by_name_and_a_missing_one_leads_to_the_checkpoint_before(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    # until the last checkpoint has a file of its own: there may be no new entry since the one
    # before
    for attempt in range(10):
        (tmp_path / str(attempt)).mkdir()
        job = interrupted(tmp_path / str(attempt) / "first", out)
        before, last = checkpoints_in(job)
        new = sorted(last.shared_files() - before.shared_files())
        if new:
            break
    only = new[0]
    handle = next(each for each in last.handles() if each.shared_file == only)
    file = Path(location_of(str(last.location), handle))
    content = file.read_bytes()
    start = {"execution.state-recovery.path": str(job), "restart-strategy.type": "none"}
    file.write_bytes(content[:-9] + b"\0" * 9)
    with pytest.raises(JobExecutionError, match=f"the checkpoint is damaged: {file}"):
        run(environment(2, tmp_path / "second", **start), out)
    file.unlink()
    assert FileCheckpointStorage(str(job.parent), JobId(job.name)).latest() == before
    with pytest.raises(JobExecutionError, match=f"the checkpoint is damaged: {file}"):
        run(
            environment(
                2,
                tmp_path / "third",
                **{**start, "execution.state-recovery.path": str(last.location)},
            ),
            out,
        )
    run(environment(2, tmp_path / "fourth", **start), tmp_path / "anew")
