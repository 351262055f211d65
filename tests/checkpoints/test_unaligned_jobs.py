"""Whole jobs with unaligned checkpoints, whose slow functions keep the buffers before them full."""

from __future__ import annotations

import ast
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import Types
from flinkpy.core.errors import ConfigurationError, JobExecutionError
from flinkpy.core.options.checkpointing import CheckpointSettings
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.connectors.file_system import FileSink
from flinkpy.state.canonical.rewriting import rewrite
from flinkpy.state.inspection.checkpoint_contents import contents_of
from flinkpy.state_processor import SavepointWriter
from tests.checkpoints.paced import run_until_it_fails, visible_lines
from tests.checkpoints.test_recovery import COUNT, keyed, last_of_keys, source, totals
from tests.checkpoints.test_starting_from_a_checkpoint import NEVER, environment

UNALIGNED = {
    "execution.checkpointing.unaligned.enabled": True,
    "execution.checkpointing.num-retained": 100,
}
# longer than the sources take to their end: their barriers overtake the ends of their partitions
AFTER_A_WHILE = {**UNALIGNED, "execution.checkpointing.aligned-checkpoint-timeout": "200 ms"}


class SlowAtFirst:
    """Computes longer for each record, and fails when a checkpoint with records in flight is
    complete; from then on it is fast. So the records last as long as the checkpoints need, however
    busy the machine is."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.failed = folder, folder.parent / "failed"
        self.calls = 0

    def __call__(self, record: Any) -> Any:
        if self.failed.exists():
            return record
        self.calls += 1
        until = time.perf_counter() + 0.02 * self.calls
        while time.perf_counter() < until:
            pass
        if len(_with_records_in_flight(self.folder)) > 1:  # the last one may be discarded yet
            self.failed.touch()
            raise ValueError(f"cannot take {record!r} for the first time")
        return record


def _with_records_in_flight(folder: Path) -> list[Path]:
    return [
        manifest.parent
        for manifest in sorted(folder.glob("*/chk-*/_metadata"))
        if b'"in_flight"' in manifest.read_bytes()
    ]


def with_records_in_flight(folder: Path) -> Path:
    """A checkpoint of the job that failed."""
    found = _with_records_in_flight(folder)
    assert found, "the job ended before a checkpoint with records in flight was complete"
    return found[-1]


def run(
    env: StreamExecutionEnvironment, out: Path, slow: SlowAtFirst, by_broadcast: bool = False
) -> list[Any]:
    """Runs a job until it fails, or to its end; gives what is in the folder of its results then."""
    records = source(env, pace=100).uid("records").set_buffer_timeout(0)
    slowed = (records.broadcast() if by_broadcast else records.rebalance()).map(slow).uid("slow")
    sums = keyed(slowed).sum(1).uid("sums")
    sums.map(str, Types.STRING()).sink_to(FileSink(out)).uid("out")
    run_until_it_fails(env)
    return list(map(ast.literal_eval, visible_lines(out)))


@pytest.mark.parametrize(
    ("before", "after", "options"), [(2, 2, UNALIGNED), (1, 3, UNALIGNED), (3, 2, AFTER_A_WHILE)]
)
def test_a_job_goes_on_with_the_records_that_were_in_flight(
    before: int, after: int, options: dict[str, Any], tmp_path: Path
) -> None:
    slow = SlowAtFirst(tmp_path / "first")
    out = tmp_path / "out"
    run(environment(before, tmp_path / "first", **NEVER, **options), out, slow)
    job = with_records_in_flight(tmp_path / "first")
    assert contents_of(str(job)).in_flight.channels > 0
    assert contents_of(str(job)).damaged == []
    found = run(
        environment(
            after, tmp_path / "second", **{"execution.state-recovery.path": str(job), **options}
        ),
        out,
        slow,
    )
    assert last_of_keys(found) == (COUNT, sorted(totals().items()))


def test_records_on_their_way_in_a_broadcast_go_to_the_same_subtasks_or_the_job_is_refused(
    tmp_path: Path,
) -> None:
    slow = SlowAtFirst(tmp_path / "first")
    run(
        environment(2, tmp_path / "first", **NEVER, **UNALIGNED),
        tmp_path / "out",
        slow,
        by_broadcast=True,
    )
    path = {"execution.state-recovery.path": str(with_records_in_flight(tmp_path / "first"))}
    with pytest.raises(
        JobExecutionError,
        match=(
            r"on their BROADCAST way from .* to .*, which cannot go to other subtasks: start "
            r"with"
        ),
    ):
        run(environment(3, tmp_path / "second", **path), tmp_path / "out", slow, by_broadcast=True)
    found = run(
        environment(2, tmp_path / "third", **path), tmp_path / "out", slow, by_broadcast=True
    )
    assert len(found) == 2 * COUNT


def test_a_program_that_connects_its_operators_otherwise_is_refused(tmp_path: Path) -> None:
    slow = SlowAtFirst(tmp_path / "first")
    run(environment(2, tmp_path / "first", **NEVER, **UNALIGNED), tmp_path / "out", slow)
    env = environment(
        2,
        tmp_path / "second",
        **{"execution.state-recovery.path": str(with_records_in_flight(tmp_path / "first"))},
    )
    records = source(env, pace=100).uid("records")
    keyed(records.rebalance().map(str).map(ast.literal_eval).rebalance().map(slow).uid("slow")).sum(
        1
    ).uid("sums").map(str, Types.STRING()).sink_to(FileSink(tmp_path / "out")).uid("out")
    with pytest.raises(
        JobExecutionError,
        match=(
            r"is unaligned, and has records on their way between operators that the job .* from a "
            r"savepoint"
        ),
    ):
        env.execute()


def test_one_at_a_time_and_only_exactly_once() -> None:
    def timeout_of(**values: Any) -> int | None:
        options = {
            f"execution.checkpointing.{key.replace('_', '-')}": value
            for key, value in values.items()
        }
        return CheckpointSettings.of(options).alignment_timeout_ms

    both = {"unaligned.enabled": True, "aligned_checkpoint_timeout": "2 s"}
    assert timeout_of() is None
    assert timeout_of(aligned_checkpoint_timeout="2 s") is None
    assert timeout_of(**both) == 2000
    assert timeout_of(**{"unaligned.enabled": True}) == 0
    assert timeout_of(**both, mode="AT_LEAST_ONCE") is None
    with pytest.raises(ConfigurationError, match="unaligned checkpoints are taken one at a time"):
        timeout_of(**both, max_concurrent_checkpoints=2)


def by_converting(source: str, target: str) -> None:
    rewrite(source, target)


def by_the_state_processor(source: str, target: str) -> None:
    SavepointWriter.from_existing_savepoint(source).write(target)


@pytest.mark.wide
@pytest.mark.parametrize("threshold", [0, 20 << 10])
@pytest.mark.parametrize("copy", [by_converting, by_the_state_processor])
def test_a_copy_of_an_unaligned_checkpoint_has_the_records_in_flight(
    copy: Callable[[str, str], None], threshold: int, tmp_path: Path
) -> None:
    slow = SlowAtFirst(tmp_path / "first")
    out = tmp_path / "out"
    run(
        environment(
            2,
            tmp_path / "first",
            **NEVER,
            **UNALIGNED,
            **{"execution.checkpointing.data-inline-threshold": threshold},
        ),
        out,
        slow,
    )
    copy(str(with_records_in_flight(tmp_path / "first")), str(tmp_path / "copy"))
    shutil.rmtree(tmp_path / "first")
    assert contents_of(str(tmp_path / "copy")).damaged == []
    found = run(
        environment(
            2,
            tmp_path / "second",
            **{"execution.state-recovery.path": str(tmp_path / "copy")},
            **UNALIGNED,
        ),
        out,
        slow,
    )
    assert last_of_keys(found) == (COUNT, sorted(totals().items()))
