"""The fenced store: leaders race for it, and die in any step. What a leader was told to be written,
every later one reads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.errors import FencingError
from flinkpy.core.ids import FencingToken
from flinkpy.state.checkpoints.fenced_store import FencedStore
from flinkpy.state.checkpoints.local_file_store import LocalFileStore
from flinkpy.testing.simulation.simulated_file_store import (
    HAPPENS,
    SimulatedFileStore,
    StorageCrash,
    StorageFault,
    fault_at,
)

FAILURES = (FencingError, OSError, StorageCrash)


class Leader:
    """A process that leads and writes. It notes what it was told to be written."""

    def __init__(self, files: SimulatedFileStore, name: str) -> None:
        self.store, self.name = FencedStore(files, "ha"), name
        self.known: set[str] = set()  # read when it took over, and written by itself
        self.written: set[str] = set()
        self.term = 0

    def take_over(self) -> None:
        term = self.store.take_term(FencingToken(self.name)).number
        names = self.store.names("jobs")
        self.known = {name for name in names if self.store.read(f"jobs/{name}") is not None}
        self.term = term  # it leads from here on

    def write(self, what: str) -> None:
        self.store.write(f"jobs/{what}", what.encode())
        self.known.add(what)
        self.written.add(what)


class Interrupted(SimulatedFileStore):
    """Others act between any two steps."""

    def __init__(self, interrupts: Callable[[], Callable[[], object] | None]) -> None:
        super().__init__()
        self._interrupts, self._depth = interrupts, 0

    def step(self, effect: Callable[[float], None]) -> None:
        action = self._interrupts() if self._depth < 3 else None
        if action is not None:
            self._depth += 1
            with suppress(FencingError):
                action()
            self._depth -= 1
        super().step(effect)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_what_any_leader_was_told_to_be_written_the_last_leader_knows(data: st.DataObject) -> None:
    leaders: list[Leader] = []
    count = 0

    def act() -> Callable[[], object]:
        nonlocal count
        count += 1
        if not leaders or data.draw(st.integers(0, 3)) == 0:
            leaders.append(Leader(files, f"leader-{count}"))
            return leaders[-1].take_over
        leader, what = data.draw(st.sampled_from(leaders)), f"job-{count}"
        return lambda: leader.write(what) if leader.term else None

    files = Interrupted(lambda: act() if count < 25 and data.draw(st.integers(0, 4)) == 0 else None)
    for _ in range(6):
        with suppress(FencingError):
            act()()
    terms = [leader.term for leader in leaders if leader.term]
    assert len(set(terms)) == len(terms)
    last = max(leaders, key=lambda leader: leader.term)
    told = {what for leader in leaders for what in leader.written}
    assert told <= last.known


@pytest.mark.parametrize("happens", HAPPENS)
@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("step", range(12))
def test_a_fault_in_any_step_loses_nothing_that_was_told_to_be_written(
    happens: str, crashes: bool, step: int
) -> None:
    files = SimulatedFileStore()
    first = Leader(files, "first")
    files.faults = fault_at(step, StorageFault(happens, crashes))  # type: ignore[arg-type]
    with suppress(*FAILURES):
        first.take_over()
        first.write("a")
        first.write("b")
    files.restart()
    second = Leader(files, "second")
    second.take_over()
    assert first.written <= second.known <= {"a", "b"}
    second.write("c")
    with pytest.raises((FencingError, StorageCrash)):
        first.store.confirm_term()


def test_a_torn_file_is_not_there_and_its_place_may_be_written_under_another_name() -> None:
    files = SimulatedFileStore()
    leader = Leader(files, "leader")
    leader.take_over()
    leader.store.write("jobs/whole", b"x" * 100)
    for length in range(len(files.files["ha/jobs/whole"])):
        files.files["ha/jobs/torn"] = files.files["ha/jobs/whole"][:length]
        assert leader.store.read("jobs/torn") is None
    assert leader.store.read("jobs/whole") == b"x" * 100
    assert leader.store.read("jobs/never") is None


def test_the_tokens_of_earlier_terms_can_go_and_an_earlier_leader_is_still_refused() -> None:
    files = SimulatedFileStore()
    leaders = [Leader(files, str(number)) for number in range(3)]
    for leader in leaders:
        leader.take_over()
    leaders[-1].store.forget_earlier_terms()
    assert [file for file in files.files if "token" in file] == ["ha/token-0000000003"]
    for leader in leaders[:-1]:
        with pytest.raises(FencingError, match="another JobManager leads there in term 3"):
            leader.write(f"late-{leader.name}")
    leaders[-1].store.confirm_term()


def test_of_many_processes_on_one_disk_each_gets_a_term_of_its_own(tmp_path: Path) -> None:
    taken: list[int] = []

    def take() -> None:
        taken.append(
            FencedStore(LocalFileStore(), str(tmp_path)).take_term(FencingToken("x")).number
        )

    threads = [threading.Thread(target=take) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 17))


def test_a_cluster_that_ended_leaves_nothing(tmp_path: Path) -> None:
    store = FencedStore(LocalFileStore(), str(tmp_path / "ha"))
    store.take_term(FencingToken("x"))
    store.write("jobs/a/graph", b"graph")
    store.delete_all()
    assert list(tmp_path.iterdir()) == []
