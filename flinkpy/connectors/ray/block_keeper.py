"""Who keeps blocks in Ray's object store: an actor of each program, with a shelf of references for each hand-over.

Readers ask it for them by number, so that Ray knows who borrows what; and it owns the blocks sinks write, so that they outlive the workers that made
them. Where blocks come from elsewhere by calls (a ``Recipe``, as for Spark's partitions), the keeper makes those calls as the program says where
blocks can be had by now, jobs hear of each block that has come, and a block that is lost is called for again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import ray


class Recipe(Protocol):
    """How to come by blocks: calling it gives the reference of the block of that number, which is to be had at that place. Pickled."""

    @property
    def count(self) -> int: ...

    @property
    def at_once(self) -> int:
        """Calls of one place at a time."""
        ...

    def __call__(self, number: int, place: str) -> Any: ...


@dataclass(frozen=True)
class News:
    """Blocks that have come, with the hosts each lies on; and why no more will, where that is so."""

    blocks: tuple[tuple[int, tuple[str, ...]], ...] = ()
    failure: str | None = None


class Shelf:
    """The blocks of one hand-over. Blocks to read are numbered; blocks written belong to a subtask and are hidden until it commits them."""

    def __init__(self, blocks: Sequence[Any]) -> None:
        self.blocks = list(blocks)
        self._recipe: Recipe | None = None
        self._places: dict[int, str] = {}  # where the blocks are to be had
        self._to_ask: deque[int] = deque()
        self._running: dict[Any, int] = {}  # calls for blocks -> their numbers
        self._come: list[tuple[int, tuple[str, ...]]] = []
        self._failure: str | None = None
        self._jobs_begun = self._jobs_running = 0
        self._is_wanted_by_program = True
        self._written: dict[tuple[int, int], list[Any]] = {}  # (subtask, attempt) -> blocks
        self._committed: dict[int, tuple[int, list[Any]]] = {}  # subtask -> the attempt that ended well, and its blocks
        self._subtasks: int | None = None

    def expect(self, recipe: Recipe) -> None:
        """The blocks to read are going to come by this recipe."""
        self._recipe, self.blocks = recipe, [None] * recipe.count

    def gather(self, places: Mapping[int, str]) -> int:
        """These blocks can be had by now, each at its place: calls for them, and looks which have come. Returns at once, with how many are here."""
        self._places.update(places)
        self._to_ask.extend(places)
        self._receive()
        self._ask()
        return len(self._come)

    def _receive(self) -> None:
        if self._running:
            here = _stored(list(self._running), 0)
            self._come += zip([self._running.pop(ref) for ref in here], hosts_of(here))

    def _ask(self) -> None:
        assert self._recipe is not None
        busy = Counter(self._places[number] for number in self._running.values())
        for number in list(self._to_ask):
            place = self._places[number]
            if busy[place] < self._recipe.at_once:
                busy[place] += 1
                self._to_ask.remove(number)
                self.blocks[number] = self._recipe(number, place)
                self._running[self.blocks[number]] = number

    def fail(self, reason: str) -> None:
        """The blocks that are not here will not come."""
        self._failure, self._running = reason, {}
        self._to_ask.clear()

    def news(self, seen: int) -> News:
        """What has come after the first ``seen`` blocks."""
        return News(tuple(self._come[seen:]), self._failure)

    def make_again(self, number: int, lost: list[Any]) -> list[Any]:
        """The reference of a block in place of one that is lost; raises the reason where there is no recipe, or it fails."""
        if self._recipe is not None and self.blocks[number] == lost[0]:
            again = self._recipe(number, self._places[number])
            _stored([again])
            self.blocks[number] = again
        return [self.blocks[number]]

    def job_begins(self) -> None:
        """A job is going to read the blocks."""
        self._jobs_begun += 1
        self._jobs_running += 1

    def job_ended(self) -> None:
        """It has ended."""
        self._jobs_running -= 1

    def program_forgot(self) -> None:
        """The program has no stream of these blocks any more. (One that was never run may be on its way to the cluster: then a job comes yet.)"""
        self._is_wanted_by_program = False

    @property
    def is_wanted(self) -> bool:
        """Whether anybody can still ask for the blocks."""
        return self._is_wanted_by_program or self._jobs_running > 0 or not self._jobs_begun

    def block(self, number: int) -> list[Any]:
        """The reference of one block, in a list: alone Ray would send the block itself."""
        return [self.blocks[number]]

    def written(self, subtask: int, attempt: int, ref: list[Any]) -> None:
        """A sink's subtask in the program's own process put a block."""
        self._written.setdefault((subtask, attempt), []).extend(ref)

    def fetch_written(self, subtask: int, attempt: int, worker: Any, token: str) -> None:
        """A sink's subtask in a worker has a block ready."""
        self._written.setdefault((subtask, attempt), []).append(worker.take_block.remote(token))

    def commit(self, subtask: int, attempt: int, subtasks: int) -> None:
        """The subtask, one of ``subtasks``, has ended well: what it wrote counts, in place of what an earlier attempt wrote. Returns when all of it
        is in the store."""
        refs = self._written.get((subtask, attempt), [])
        if refs:
            ray.wait(refs, num_returns=len(refs), fetch_local=False)
        self._written = {key: kept for key, kept in self._written.items() if key[0] != subtask or key[1] > attempt}
        if attempt >= self._committed.get(subtask, (0, ()))[0]:
            self._committed[subtask] = attempt, refs
        self._subtasks = subtasks

    def is_complete(self) -> bool:
        """Whether all subtasks have committed."""
        return self._subtasks is not None and len(self._committed) >= self._subtasks

    def committed(self) -> list[Any]:
        """All blocks that count, by subtask, each one's in order; none before all subtasks have committed."""
        return [ref for subtask in sorted(self._committed) for ref in self._committed[subtask][1]] if self.is_complete() else []


class BlockKeeper:
    """The actor: a program's shelves. Calls of a caller are carried out in their order; making blocks, which takes its time, beside them."""

    def __init__(self) -> None:
        self._shelves: dict[str, Shelf] = {}

    def begin(self, shelf: str, blocks: list[Any]) -> None:
        """A new shelf."""
        self._shelves[shelf] = Shelf(blocks)

    def do(self, shelf: str, what: str, *arguments: Any) -> Any:
        """Calls the shelf, and clears it away when nobody can ask for it any more."""
        found = self._shelves.get(shelf)
        if found is None:
            raise LookupError("the stream that stood for the blocks is gone, and so are they")
        answer = getattr(found, what)(*arguments)
        if not found.is_wanted:
            del self._shelves[shelf]
        return answer

    @ray.method(concurrency_group="making")  # type: ignore[untyped-decorator]
    def make(self, shelf: str, what: str, *arguments: Any) -> Any:
        """``do``, in another thread."""
        return self.do(shelf, what, *arguments)

    def shelves(self) -> list[str]:
        """Those that are there."""
        return sorted(self._shelves)


def _stored(running: list[Any], timeout_s: float | None = None) -> list[Any]:
    """Those of these blocks that are in the store, when all are or the time is up; raises the error of one that failed."""
    ready, _ = ray.wait(running, num_returns=len(running), timeout=timeout_s, fetch_local=False)
    places = ray.experimental.get_object_locations(ready) if ready else {}
    ray.get([ref for ref in ready if not places[ref]["node_ids"]])  # what lies in no node's store is small: an error is
    return list(ready)


def hosts_of(refs: Sequence[Any]) -> list[tuple[str, ...]]:
    """The host names of the nodes each block lies on; empty where Ray does not know."""
    names = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes()}
    locations = ray.experimental.get_object_locations(list(refs)) if refs else {}
    return [tuple(names[node] for node in locations.get(ref, {}).get("node_ids", ()) if node in names) for ref in refs]
