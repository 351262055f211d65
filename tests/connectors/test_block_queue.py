"""Who is given which block, and when, by a queue whose blocks may be yet to come; the keeper and
the readers are scripted."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.connectors.ray.block_keeper import BlockUpdates
from flinkpy.connectors.ray.block_source import BlockQueue, BlocksLeft, BlockSplit, RayBlockSource
from flinkpy.core.errors import ProgramError, ResourceUnavailableError


class Keeper:
    """What a queue asks its store for."""

    def __init__(self) -> None:
        self.come: list[tuple[int, tuple[str, ...]]] = []
        self.failure: str | None = None
        self.jobs = 0

    def updates(self, seen: int) -> BlockUpdates:
        return BlockUpdates(tuple(self.come[seen:]), self.failure)

    def job_started(self) -> None:
        self.jobs += 1

    def job_ended(self) -> None:
        self.jobs -= 1


class Readers:
    """A queue's context: who is there, and what was said to whom (a block's number, or None for no
    more)."""

    def __init__(self, hosts: dict[int, str]) -> None:
        self.registered_readers = dict(hosts)
        self.parallelism = len(hosts)
        self.said: list[tuple[int, int | None]] = []
        self.period_s: float | None = None

    def assign_splits(self, subtask: int, splits: list[BlockSplit]) -> None:
        assert subtask in self.registered_readers
        assert (subtask, None) not in self.said
        self.said += [(subtask, split.number) for split in splits]

    def signal_no_more_splits(self, subtask: int) -> None:
        self.said.append((subtask, None))

    def call_async(self, function: Any, handler: Any, period_s: float | None = None) -> None:
        def look() -> None:
            handler(function(), None)

        self.look = look
        self.handler = handler
        self.period_s = period_s


def block(number: int, *hosts: str, offset: int = 0) -> BlockSplit:
    return BlockSplit(f"block {number}", number, hosts, offset)


def begun(
    readers: Readers, keeper: Keeper, there: list[BlockSplit], coming: set[int]
) -> BlockQueue:
    context: Any = readers
    store: Any = keeper
    queue = BlockQueue(context, store, BlocksLeft(tuple(there), frozenset(coming)))
    queue.start()
    return queue


def test_a_reader_is_given_the_blocks_on_its_host_first_and_then_the_others() -> None:
    readers = Readers({0: "a", 1: "b"})
    queue = begun(
        readers, Keeper(), [block(0, "a"), block(1, "a", "b"), block(2, "b"), block(3)], set()
    )
    for subtask, host in ((1, "b"), (1, "b"), (1, "b"), (0, "a"), (0, "a")):
        queue.handle_split_request(subtask, host)
    assert readers.said == [(1, 1), (1, 2), (1, 0), (0, 3), (0, None)]
    assert readers.period_s is None  # with all blocks there nothing is asked for


def test_readers_wait_for_blocks_to_come_and_each_is_given_the_one_on_its_host() -> None:
    readers, keeper = Readers({0: "a", 1: "b", 2: "c"}), Keeper()
    queue = begun(readers, keeper, [], {0, 1, 2})
    for subtask, host in readers.registered_readers.items():
        queue.handle_split_request(subtask, host)
    readers.look()
    assert readers.said == []
    keeper.come += [(2, ("b",)), (0, ("a",))]
    readers.look()
    assert sorted(readers.said) == [(0, 0), (1, 2)]
    queue.handle_split_request(0, "a")
    keeper.come.append((1, ("elsewhere",)))
    readers.look()
    # who has waited longest; and the other is told that there is no more
    assert readers.said[2:] == [(2, 1), (0, None)]
    readers.look()
    queue.handle_split_request(1, "b")
    assert readers.said[4:] == [(1, None)]


def test_a_reader_that_failed_while_it_waited_is_given_nothing_until_it_asks_again() -> None:
    readers, keeper = Readers({0: "a", 1: "b"}), Keeper()
    queue = begun(readers, keeper, [], {0})
    queue.handle_split_request(1, "b")
    queue.handle_split_request(0, "a")
    del readers.registered_readers[1]
    keeper.come.append((0, ("b",)))
    readers.look()
    assert readers.said == [(0, 0)]
    readers.registered_readers[1] = "b"
    queue.add_reader(1)
    queue.add_splits_back([block(0, "b")], 0)
    assert readers.said == [(0, 0)]
    queue.handle_split_request(1, "b")
    assert readers.said == [(0, 0), (1, 0)]


def test_a_failure_ends_a_job_that_still_needs_blocks_and_no_other() -> None:
    readers, keeper = Readers({0: "a"}), Keeper()
    begun(readers, keeper, [], {0, 1})
    keeper.come.append((0, ("a",)))
    keeper.failure = "Spark has failed"
    with pytest.raises(ProgramError, match=r"^Spark has failed$"):
        readers.look()
    begun(readers, keeper, [], {0})
    readers.look()


def test_a_keeper_that_does_not_answer_ends_the_job_with_what_to_do() -> None:
    readers = Readers({0: "a"})
    begun(readers, Keeper(), [], {0})
    with pytest.raises(
        ResourceUnavailableError,
        match="do not come: it died; has the program that hands them over ended, or Ray",
    ):
        readers.handler(None, RuntimeError("it died\nand more"))


def test_the_blocks_are_held_from_the_start_to_the_end_and_only_where_there_was_a_start() -> None:
    keeper = Keeper()
    queue = begun(Readers({}), keeper, [], set())
    assert keeper.jobs == 1
    queue.close()
    assert keeper.jobs == 0
    context: Any = Readers({})
    store: Any = keeper
    BlockQueue(context, store, BlocksLeft((), frozenset())).close()
    assert keeper.jobs == 0


def test_a_source_tells_its_queue_which_blocks_are_there_and_which_are_to_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("flinkpy.connectors.ray.object_store.Store", lambda name: Keeper())
    context: Any = Readers({0: "a"})
    source = RayBlockSource("keeper/shelf", pa.schema([]), [("a",), None, ()])
    fresh = source.create_enumerator(context)
    assert fresh.snapshot_state(1) == BlocksLeft((block(0, "a"), block(2)), frozenset({1}))
    left = BlocksLeft((block(2, offset=7),), frozenset())
    assert source.create_enumerator(context, left).snapshot_state(2) == left


# what may happen, in any order: blocks come, a reader asks, a reader fails, a checkpoint is taken,
# the job goes back to the last one
KINDS = ["come", "come", "ask", "ask", "ask", "look", "fail", "checkpoint", "restore"]
events = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 2)), max_size=60)


@given(st.permutations(range(8)), st.integers(0, 8), events)
def test_every_block_is_read_once_whatever_fails_and_is_restored(
    order: list[int], there: int, events: list[tuple[str, int]]
) -> None:
    """A reader that fails gives back what no checkpoint holds. After a restore the readers have
    what they had at the checkpoint."""
    hosts = {0: "a", 1: "b", 2: "b"}
    keeper, readers = Keeper(), Readers(hosts)
    to_come = order[there:]
    queue = begun(readers, keeper, [block(number, "a") for number in order[:there]], set(to_come))
    had: list[tuple[int, int]] = []  # at the last checkpoint
    checkpoint: Any = BlocksLeft(
        tuple(block(number, "a") for number in order[:there]), frozenset(to_come)
    )

    def all_had() -> list[tuple[int, int]]:
        return had + [(subtask, number) for subtask, number in readers.said if number is not None]

    def restored(held: list[tuple[int, int]], state: Any) -> tuple[Readers, BlockQueue]:
        fresh = Readers(hosts)
        return fresh, begun(fresh, keeper, list(state.splits), set(state.coming))

    for event, subtask in events:
        if event == "come" and to_come:
            keeper.come.append((to_come.pop(), (hosts[subtask],)))
        elif event == "ask" and (subtask, None) not in readers.said:
            queue.handle_split_request(subtask, hosts[subtask])
        elif event == "look" and readers.period_s is not None:
            readers.look()
        elif event == "fail":
            back = [
                number
                for reader, number in readers.said
                if reader == subtask and number is not None
            ]
            readers.said = [
                (reader, number) for reader, number in readers.said if reader != subtask
            ]
            queue.add_reader(subtask)
            queue.add_splits_back([block(number, "a") for number in back], subtask)
        elif event == "checkpoint":
            had, checkpoint = all_had(), queue.snapshot_state(1)
            readers.said = [(reader, number) for reader, number in readers.said if number is None]
        elif event == "restore":
            readers, queue = restored(had, checkpoint)
    keeper.come += [(number, ("a",)) for number in to_come]
    for _ in range(20):
        if readers.period_s is not None:
            readers.look()
        for subtask in hosts:
            if (subtask, None) not in readers.said:
                queue.handle_split_request(subtask, hosts[subtask])
    assert sorted(number for _, number in all_had()) == list(range(8))
    assert {(subtask, None) for subtask in hosts} <= set(readers.said)
