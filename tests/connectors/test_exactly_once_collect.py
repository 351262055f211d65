"""The program is given each record of a job with checkpoints once, whatever fails, and all of what
is complete."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.connectors.collect import collect_server, held_results
from flinkpy.connectors.collect.collect_server import CollectServer
from flinkpy.core.elements import RowBatch
from flinkpy.core.errors import JobRestartedError
from flinkpy.core.files import spool
from flinkpy.network.wire.client_channel import Complete, Marker
from tests.connectors.sink_world import SinkWorld
from tests.waiting import eventually

STEP = st.one_of(
    st.tuples(st.just("feed"), st.integers(1, 12)),
    st.tuples(st.just("barrier"), st.just(0)),
    st.tuples(st.just("feed and barrier"), st.integers(1, 5)),
    st.tuples(st.just("complete"), st.integers(0, 7)),  # which subtasks are told, by bits
    st.tuples(st.just("told all"), st.just(0)),
    st.tuples(st.just("abort"), st.integers(0, 2)),
    st.tuples(st.just("crash"), st.integers(0, 1)),
    st.tuples(st.just("rescale"), st.integers(1, 3)),
)


class Client:
    """The program that iterates, in a thread of its own."""

    def __init__(self, server: CollectServer) -> None:
        self.server = server
        self.seen: list[int] = []
        self.thread = threading.Thread(target=self._iterate, daemon=True)
        self.thread.start()

    def _iterate(self) -> None:
        for record in self.server:
            self.seen.append(record)

    def check(self, world: SinkWorld, everything: bool) -> None:
        allowed = 0 if world.completed is None else world.completed.position
        if everything:
            eventually(lambda: len(self.seen) >= allowed)
        seen = sorted(self.seen)
        assert len(set(seen)) == len(seen)
        assert not seen or seen[-1] < allowed
        if everything:
            assert seen == list(range(allowed))


@contextmanager
def collecting() -> Iterator[CollectServer]:
    with pytest.MonkeyPatch.context() as patch, CollectServer() as server:
        patch.setattr(collect_server, "EARLIER_TIMEOUT_S", 0.02)
        yield server


def step(world: SinkWorld, client: Client, name: str, number: int) -> None:
    told: Callable[[int], bool] = lambda subtask: name == "told all" or bool(number >> subtask & 1)  # noqa: E731
    if "feed" in name:
        world.feed(number)
    if "barrier" in name:
        world.barrier()
    elif name == "abort":
        world.abort(world.barrier(number))
    elif name in ("complete", "told all") and world.running:
        world.complete(world.running[0], told)
    elif name in ("crash", "rescale"):
        world.crash(number if name == "rescale" else None, closed=number > 0)
    client.check(world, everything=name == "told all" or name in ("crash", "rescale"))


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(STEP, min_size=10, max_size=25), parallelism=st.integers(1, 3))
def test_each_record_is_given_once_whatever_fails(
    steps: list[tuple[str, int]], parallelism: int
) -> None:
    told = False  # to all, since the last notice that some did not get
    with collecting() as server:
        client = Client(server)
        world = SinkWorld(server.sink(), parallelism)
        try:
            for name, number in steps:
                if name == "told all" and not world.running and not told:
                    continue
                step(world, client, name, number)
                told = name in ("told all", "crash", "rescale") or (told and name != "complete")
            world.feed(5)
            world.end_input()
            client.check(world, everything=False)
            world.last_checkpoint()
        finally:
            world.close()
        server.job_ended()
        client.thread.join(20)
        assert sorted(client.seen) == list(range(world.position))
        if all(name != "rescale" for name, _ in steps):
            for subtask in range(parallelism):
                mine = [value for value in client.seen if value % parallelism == subtask]
                assert mine == sorted(mine)


def test_what_no_complete_checkpoint_has_is_not_given_when_the_job_fails() -> None:
    with collecting() as server:
        world = SinkWorld(server.sink())
        world.feed(3)
        world.complete(world.barrier())
        world.feed(3)
        world.barrier()
        world.close()
        server.job_ended(ValueError("job failed"))
        seen: list[int] = []
        with pytest.raises(ValueError, match="job failed"):
            seen.extend(server)
        assert seen == [0, 1, 2]


def test_what_a_complete_checkpoint_has_is_given_when_the_job_fails_before_its_tasks_are_told() -> (
    None
):
    """A job that starts from it does not make it again."""
    with collecting() as server:
        world = SinkWorld(server.sink(), parallelism=2)
        world.feed(6)
        world.complete(world.barrier(), told=lambda subtask: subtask == 0)
        world.crash()
        world.feed(6)
        world.abort(world.barrier())
        world.feed(6)
        complete = world.barrier()
        world.complete(complete, told=lambda subtask: subtask == 1)
        world.feed(6)
        world.barrier()
        world.close()
        server.job_ended(ValueError("job failed"), complete.checkpoint_id)
        seen: list[int] = []
        with pytest.raises(ValueError, match="job failed"):
            seen.extend(server)
        assert sorted(seen) == list(range(complete.position))


def test_what_was_made_again_since_is_not_given_when_the_job_fails() -> None:
    with collecting() as server:
        world = SinkWorld(server.sink())
        world.feed(3)
        complete = world.barrier()
        world.complete(complete)
        world.feed(3)
        world.barrier()
        world.crash()
        world.feed(3)
        newer = world.barrier()
        world.complete(newer, told=lambda subtask: False)
        world.close()
        server.job_ended(ValueError("job failed"), newer.checkpoint_id)
        seen: list[int] = []
        with pytest.raises(ValueError, match="job failed"):
            seen.extend(server)
        assert seen == [0, 1, 2, 3, 4, 5]


def test_a_checkpoint_of_another_programs_job_says_nothing_of_what_this_one_collects() -> None:
    """The other job's streams have the same subtasks and attempts. If they were taken for these,
    records would be given whose checkpoint is not complete, and come again after a failure."""
    with collecting() as first, collecting() as second:
        world = SinkWorld(first.sink())
        for _ in range(3):
            world.feed(3)
            world.complete(world.barrier(), told=lambda subtask: False)
        world.sink, world.attempt = second.sink(), -1
        world.crash()
        client = Client(second)
        world.feed(3)
        world.barrier()
        world.crash()
        assert client.seen == []
        world.feed(3)
        world.complete(world.barrier())
        world.close()
        second.job_ended()
        client.thread.join(20)
        assert client.seen == [9, 10, 11]


def test_a_job_that_begins_again_from_its_beginning_is_told_if_records_were_given() -> None:
    with collecting() as server:
        world = SinkWorld(server.sink())
        world.feed(3)
        world.complete(world.barrier())
        records = iter(server)
        assert next(records) == 0
        world.completed = None  # lost
        world.crash()
        with pytest.raises(JobRestartedError):
            list(records)
        world.close()


def test_without_checkpoints_records_are_given_at_once() -> None:
    with collecting() as server:
        world = SinkWorld(server.sink(), configuration={})
        world.feed(3)
        assert next(iter(server)) == 0
        world.end_input()
        world.close()


def test_batches_of_an_earlier_stream_that_come_late_are_shown_up_to_the_marker_and_no_further() -> (
    None
):
    held = held_results.HeldResults()
    assert held.take(0, 0, 1, [b"a"]) == []
    assert held.take(0, 1, 1, [Complete(0, 0, 1), b"a again"]) == []
    assert held.take(0, 0, 1, [Marker(1, 1), b"b", Marker(2, 2), Complete(0, 0, 1)]) == [(0, b"a")]
    assert held.take(0, 0, 1, [b"c", Marker(3, 3)]) == []
    assert not held._stream(0, 0).parts  # nothing is kept that nobody will see


def test_a_later_attempt_may_say_of_several_checkpoints_that_they_are_complete() -> None:
    held = held_results.HeldResults()
    assert held.take(0, 0, 1, [b"a", Marker(1, 1), b"b", Marker(2, 2), b"c"]) == []
    assert held.take(0, 1, 1, [Complete(0, 0, 1), Complete(0, 0, 2), b"c again"]) == [
        (0, b"a"),
        (0, b"b"),
    ]


def test_attempts_before_one_that_begins_from_the_beginning_are_forgotten() -> None:
    held = held_results.HeldResults()
    held.take(0, 0, 1, [b"a"])
    held.take(1, 0, 1, [b"b"])
    held.forget(0)
    assert list(held._streams) == [(1, 0)]


def test_batches_that_are_held_do_not_stop_the_reading() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect_server, "EARLIER_TIMEOUT_S", 0.02)
        with CollectServer(queue_bytes=1000) as server:
            world = SinkWorld(server.sink())
            for _ in range(20):
                world.operators[0].process_batch(RowBatch(["x" * 1000]))
            world.complete(world.barrier())
            world.close()
            server.job_ended()
            assert len(list(server)) == 20


def test_batches_that_wait_for_a_checkpoint_lie_in_a_file_beyond_some_megabytes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY", 10)
    held = held_results.HeldResults([str(tmp_path)])
    before = len(os.listdir("/dev/fd"))
    batches = [bytes([at]) * 6 for at in range(5)]
    assert held.take(0, 0, 1, [*batches, Marker(1, 1)]) == []
    assert len(os.listdir("/dev/fd")) == before + 1
    shown = [batch for _, batch in held.take(0, 0, 1, [Complete(0, 0, 1)])]
    assert [type(each) for each in shown] == [bytes, *[spool.OnDisk] * 4]
    assert list(map(spool.contents, shown)) == batches
    assert list(map(len, shown)) == [6] * 5
    del shown
    assert len(os.listdir("/dev/fd")) == before


def test_a_program_is_given_what_waited_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY", 1_000)
    with collecting() as server:
        world = SinkWorld(server.sink())
        for at in range(20):
            world.operators[0].process_batch(RowBatch([f"{at}" * 1000]))
        world.complete(world.barrier())
        world.end_input()
        world.close()
        server.job_ended()
        assert list(server) == [f"{at}" * 1000 for at in range(20)]


def test_what_a_paused_program_has_not_read_of_an_earlier_attempt_comes_before_the_later_ones() -> (
    None
):
    with CollectServer(queue_bytes=1000) as server:
        world = SinkWorld(server.sink())

        def write(letter: str, times: int) -> None:
            for _ in range(times):
                world.operators[0].process_batch(RowBatch([letter * 100_000]))

        write("a", 1)
        world.complete(world.barrier())
        eventually(lambda: server.statistics().queued_bytes > 1000)  # it reads no more
        write("b", 6)
        world.complete(world.barrier(), told=lambda subtask: False)
        world.crash()
        write("c", 1)
        world.complete(world.barrier())
        world.close()
        server.job_ended()
        assert "".join(record[0] for record in server) == "abbbbbbc"
