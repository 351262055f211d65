"""What the page of guarantees says, where no other test shows it; and that the tests it names
exist."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from flinkpy.common import Types
from flinkpy.datastream.functions import CheckpointedFunction, SinkFunction, SourceFunction
from flinkpy.datastream.state import ListStateDescriptor
from tests.checkpoints.paced import failing_at, failures
from tests.checkpoints.test_recovery import RECORDS, environment, source
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]


def test_the_tests_that_the_page_names_exist() -> None:
    page = (ROOT / "docs/guarantees.md").read_text()
    named = dict(re.findall(r"^- (\[\d+\]) `(\S+)`$", page, re.MULTILINE))
    for name in named.values():
        file, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / file).read_text(), name
    used = {
        each
        for line in page.splitlines()
        if line.startswith("|")
        for each in re.findall(r"\[\d+\](?!\()", line)
    }
    assert used == named.keys()


class Appending(SinkFunction):
    def __init__(self, folder: Path) -> None:
        self.file = folder / "written"

    def invoke(self, value: Any, context: Any = None) -> None:
        with self.file.open("a") as file:
            file.write(f"{value}\n")


def test_a_sink_without_a_committer_gets_each_record_at_least_once(tmp_path: Path) -> None:
    env = environment(1)
    # it fails behind some records that were written since the last checkpoint
    source(env, pace=20).map(failing_at(tmp_path / "failed", RECORDS[110][0])).add_sink(
        Appending(tmp_path)
    )
    env.execute()
    assert failures(tmp_path / "failed") == 1
    found = Counter((tmp_path / "written").read_text().splitlines())
    assert found.keys() == {str(record) for record, _ in RECORDS}
    assert max(found.values()) <= 2


class Numbers(SourceFunction):
    """0 to 9, and then 10 to 19 when a checkpoint is complete; it fails once in between."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, ctx: Any) -> None:
        for number in range(self.begin(), 20):
            if number == 10 and not (self.folder / "failed").exists():
                self.await_checkpoint()
                (self.folder / "failed").touch()
                raise ValueError("once")
            with ctx.get_checkpoint_lock():
                self.next = number + 1
                ctx.collect(number)

    def begin(self) -> int:
        return 0

    def await_checkpoint(self) -> None:
        """One that began behind all that was given."""
        before = self.newest()
        eventually(lambda: self.newest() > before + 1)

    def newest(self) -> int:
        manifests = (self.folder / "checkpoints").glob("*/chk-*/_metadata")
        return max((int(path.parent.name.removeprefix("chk-")) for path in manifests), default=0)

    def cancel(self) -> None: ...


class Remembering(Numbers, CheckpointedFunction):
    """The same; it knows which numbers were given."""

    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_list_state(
            ListStateDescriptor("next", Types.LONG())
        )
        self.next = next(iter(self.state.get()), 0)

    def snapshot_state(self, context: Any) -> None:
        self.state.update([self.next])

    def begin(self) -> int:
        return self.next


def counted(numbers: Numbers, folder: Path) -> list[Any]:
    env = environment(1, **{"execution.checkpointing.dir": str(folder / "checkpoints")})
    counts = (
        env.add_source(numbers)
        .map(lambda number: (number, 1))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    last = dict(counts.execute_and_collect())
    assert (folder / "failed").exists()
    return [last[number] for number in range(20)]


def test_a_source_function_begins_again_after_a_failure(tmp_path: Path) -> None:
    counts = counted(Numbers(tmp_path), tmp_path)
    assert counts == [2] * 10 + [1] * 10


def test_a_source_function_with_state_goes_on_where_it_says(tmp_path: Path) -> None:
    assert counted(Remembering(tmp_path), tmp_path) == [1] * 20
