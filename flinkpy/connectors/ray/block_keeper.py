"""The keeper of blocks in Ray's object store: an actor of each program, with a set of references
for each hand-over.

Readers request blocks from it by number, so that Ray counts who borrows each. The keeper owns the
blocks that sinks write, so they outlive the workers that made them. Blocks may also be made by
calls of a ``Recipe`` (for Spark's partitions). The program reports where blocks are available; the
keeper then makes the calls, tells jobs of each block that has arrived, and calls again for a block
that is lost."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import ray

from flinkpy.connectors.ray.written_blocks import BlockRange, WrittenBlocks

TAKE_BLOCK = "take_block"
"""The name of a worker's handler (``RayRpcService.add_handler``) that returns a written block for
its token."""


class Recipe(Protocol):
    """Makes blocks: a call returns a reference to the block of that number, which is available at
    that place. Can be pickled."""

    @property
    def count(self) -> int: ...

    @property
    def at_once(self) -> int:
        """How many calls one place gets at a time."""
        ...

    def __call__(self, number: int, place: str) -> Any: ...


@dataclass(frozen=True)
class BlockUpdates:
    """Blocks that have arrived, with the hosts each lies on; ``failure`` says why the others will
    not arrive."""

    blocks: tuple[tuple[int, tuple[str, ...]], ...] = ()
    failure: str | None = None


class BlockSet:
    """The blocks of one hand-over: those to read, which have numbers, and those that a job has
    written."""

    def __init__(self, blocks: Sequence[Any]) -> None:
        self.blocks = list(blocks)
        self._recipe: Recipe | None = None
        self._places: dict[int, str] = {}  # block -> where it is available
        self._to_call: deque[int] = deque()
        self._running: dict[Any, int] = {}  # calls for blocks -> their numbers
        self._arrived: list[tuple[int, tuple[str, ...]]] = []
        self._failure: str | None = None
        self._jobs_started = self._jobs_running = 0
        self._is_needed_by_program = True
        self.written = WrittenBlocks()

    def expect_blocks(self, recipe: Recipe) -> None:
        """Announces that this recipe will make the blocks to read."""
        self._recipe, self.blocks = recipe, [None] * recipe.count

    def gather_blocks(self, places: Mapping[int, str]) -> int:
        """Starts calls for these blocks, which are available now, each at its place. Returns at
        once, with the number of blocks that have arrived so far."""
        self._places.update(places)
        self._to_call.extend(places)
        self._collect_arrived()
        self._call_recipe()
        return len(self._arrived)

    def _collect_arrived(self) -> None:
        if self._running:
            here = _stored(list(self._running), 0)
            self._arrived += zip([self._running.pop(ref) for ref in here], hosts_of(here))

    def _call_recipe(self) -> None:
        assert self._recipe is not None
        busy = Counter(self._places[number] for number in self._running.values())
        for number in list(self._to_call):
            place = self._places[number]
            if busy[place] < self._recipe.at_once:
                busy[place] += 1
                self._to_call.remove(number)
                self.blocks[number] = self._recipe(number, place)
                self._running[self.blocks[number]] = number

    def fail_missing(self, reason: str) -> None:
        """Announces that the blocks that have not arrived will never come."""
        self._failure, self._running = reason, {}
        self._to_call.clear()

    def updates(self, seen: int) -> BlockUpdates:
        """The blocks that have arrived after the first ``seen``."""
        return BlockUpdates(tuple(self._arrived[seen:]), self._failure)

    def make_again(self, number: int, lost: list[Any]) -> list[Any]:
        """A reference to replace the lost one: a new one if there is a recipe, else the same.
        Raises the recipe's error if it fails."""
        if self._recipe is not None and self.blocks[number] == lost[0]:
            again = self._recipe(number, self._places[number])
            _stored([again])
            self.blocks[number] = again
        return [self.blocks[number]]

    def job_started(self) -> None:
        """A job is going to read the blocks; they stay until ``job_ended``."""
        self._jobs_started += 1
        self._jobs_running += 1

    def job_ended(self) -> None:
        """The job no longer needs the blocks."""
        self._jobs_running -= 1

    def forgotten_by_program(self) -> None:
        """The program has dropped the stream of these blocks. If no job has started yet, one may
        still be on its way to the cluster."""
        self._is_needed_by_program = False

    @property
    def is_needed(self) -> bool:
        """Whether the program or a job can still request the blocks."""
        return self._is_needed_by_program or self._jobs_running > 0 or not self._jobs_started

    def block(self, number: int) -> list[Any]:
        """The reference of one block, in a list, because Ray would replace a bare reference by the
        block."""
        return [self.blocks[number]]


class BlockKeeper:
    """The actor with a program's block sets. It carries out a caller's calls in order, except that
    ``make_again``, which takes long, runs concurrently."""

    def __init__(self) -> None:
        self._sets: dict[str, BlockSet] = {}

    def create_set(self, name: str, blocks: list[Any]) -> None:
        """Creates a set with these blocks to read."""
        self._sets[name] = BlockSet(blocks)

    def set_names(self) -> list[str]:
        return sorted(self._sets)

    def _set(self, name: str) -> BlockSet:
        found = self._sets.get(name)
        if found is None:
            raise LookupError("the stream that stood for the blocks is gone, and so are they")
        return found

    # -- blocks to read ----------------------------------------------------------------------------

    def expect_blocks(self, name: str, recipe: Recipe) -> None:
        self._set(name).expect_blocks(recipe)

    def gather_blocks(self, name: str, places: Mapping[int, str]) -> int:
        return self._set(name).gather_blocks(places)

    def fail_missing(self, name: str, reason: str) -> None:
        self._set(name).fail_missing(reason)

    def updates(self, name: str, seen: int) -> BlockUpdates:
        return self._set(name).updates(seen)

    def block(self, name: str, number: int) -> list[Any]:
        return self._set(name).block(number)

    @ray.method(concurrency_group="making")  # type: ignore[untyped-decorator]
    def make_again(self, name: str, number: int, lost: list[Any]) -> list[Any]:
        return self._set(name).make_again(number, lost)

    # -- blocks written ----------------------------------------------------------------------------

    def add_written(self, name: str, subtask: int, attempt: int, ref: list[Any]) -> None:
        """Adds a block that a sink's subtask in the program's own process has put into the
        store."""
        self._set(name).written.add(subtask, attempt, ref[0])

    def fetch_written(self, name: str, subtask: int, attempt: int, worker: Any, token: str) -> None:
        """Fetches a block from a sink's subtask in a worker, by a call of the worker's actor; so
        the keeper owns the block."""
        self._set(name).written.add(subtask, attempt, worker.call_handler.remote(TAKE_BLOCK, token))

    def await_written(self, name: str, subtask: int, attempt: int) -> None:
        """Returns when all blocks that the attempt has written are in the store."""
        refs = self._set(name).written.of_attempt(subtask, attempt)
        if refs:
            ray.wait(refs, num_returns=len(refs), fetch_local=False)

    def commit_written(self, name: str, blocks: BlockRange) -> None:
        self._set(name).written.commit(blocks)

    def is_complete(self, name: str) -> bool:
        return self._set(name).written.is_complete

    def committed_blocks(self, name: str) -> list[Any]:
        return self._set(name).written.committed()

    # -- how long a set stays ----------------------------------------------------------------------

    def job_started(self, name: str) -> None:
        self._set(name).job_started()

    def job_ended(self, name: str) -> None:
        self._set(name).job_ended()
        self._drop_unused(name)

    def forget_set(self, name: str) -> None:
        """The program no longer needs the set."""
        self._set(name).forgotten_by_program()
        self._drop_unused(name)

    def _drop_unused(self, name: str) -> None:
        if not self._sets[name].is_needed:
            del self._sets[name]


def _stored(running: list[Any], timeout_s: float | None = None) -> list[Any]:
    """Waits until all blocks are in the store or the time is up; returns those that are. Raises the
    error of a block that failed."""
    ready, _ = ray.wait(running, num_returns=len(running), timeout=timeout_s, fetch_local=False)
    places = ray.experimental.get_object_locations(ready) if ready else {}
    # Only small values, such as errors, lie in no node's store
    ray.get([ref for ref in ready if not places[ref]["node_ids"]])
    return list(ready)


def hosts_of(refs: Sequence[Any]) -> list[tuple[str, ...]]:
    """The host names of the nodes that each block lies on; empty if Ray does not know."""
    names = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes()}
    locations = ray.experimental.get_object_locations(list(refs)) if refs else {}
    return [
        tuple(names[node] for node in locations.get(ref, {}).get("node_ids", ()) if node in names)
        for ref in refs
    ]
