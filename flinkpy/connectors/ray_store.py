"""Blocks in Ray's object store: who keeps them, how they are fetched and put. The connectors' only file that knows Ray.

A block is a ``pyarrow.Table``, or the bytes of an Arrow stream. A program has a :class:`BlockKeeper`, an actor, with a shelf of references for each
hand-over: readers ask it for them by number, so that Ray knows who borrows what; and it owns the blocks sinks write, so that they outlive the workers
that made them. Ray gives a result to whoever called for it, so the keeper calls the worker for each block (``take``), and the block goes into the
store where the worker is, once. Where blocks come from elsewhere by calls (a ``Recipe``, as for Spark's partitions), the keeper makes those calls as
the program says where blocks can be had by now, jobs hear of each block that has come, and a block that is lost is called for again.

Blocks to read stay for as long as a job reads them or the program still has the stream, which may run again; then their shelf is cleared. The keeper
itself ends with the program.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol

import ray

from flinkpy.core.errors import EngineError, ResourceUnavailableError
from flinkpy.core.ids import IdFactory

NAMESPACE = "flinkpy"
ACK_TIMEOUT_S = 60.0
_RAW = b"RAW"  # what Ray notes beside bytes


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


_keepers: dict[tuple[str, str], tuple[str, Any]] = {}  # this program's: Ray's cluster and job -> the actor's name and handle


def _own_keeper() -> tuple[str, Any]:
    context = ray.get_runtime_context()
    key = context.gcs_address, context.get_job_id()
    if key not in _keepers:
        name = f"blocks-{IdFactory().hex(16)}"
        actor: Any = ray.remote(concurrency_groups={"making": 2})(BlockKeeper)
        _keepers[key] = name, actor.options(name=name, namespace=NAMESPACE, num_cpus=0).remote()
    return _keepers[key]


def _stored(running: list[Any], timeout_s: float | None = None) -> list[Any]:
    """Those of these blocks that are in the store, when all are or the time is up; raises the error of one that failed."""
    ready, _ = ray.wait(running, num_returns=len(running), timeout=timeout_s, fetch_local=False)
    places = ray.experimental.get_object_locations(ready) if ready else {}
    ray.get([ref for ref in ready if not places[ref]["node_ids"]])  # what lies in no node's store is small: an error is
    return list(ready)


def make_keeper(refs: Sequence[Any] = ()) -> str:
    """A new shelf of this program's keeper, with the blocks to read; gives its name. It lasts as long as this program, or until it is not needed
    (``forget_with``)."""
    name, keeper = _own_keeper()
    shelf = IdFactory().hex(8)
    ray.get(keeper.begin.remote(shelf, list(refs)))
    return f"{name}/{shelf}"


def forget_with(holder: object, name: str, release: Callable[[], None] | None = None) -> None:
    """Tells the keeper when the program has let go of ``holder``, which stands for its blocks; then calls ``release``."""
    if not _forgetter.is_alive():
        _forgetter.start()
    tell = partial(_own_keeper()[1].do.remote, name.partition("/")[2], "program_forgot")
    weakref.finalize(holder, _forgotten.put, (tell, release)).atexit = False


_forgotten: SimpleQueue[tuple[Callable[[], Any] | None, ...]] = SimpleQueue()  # filled by the garbage collector: Ray and Spark are called elsewhere


def _forget() -> None:
    while True:
        for call in _forgotten.get():
            try:
                if call is not None:
                    call()
            except Exception:
                pass  # Ray is gone, or Spark, and what it kept with it


_forgetter = threading.Thread(target=_forget, name="forgotten blocks", daemon=True)


class Store:
    """A shelf as readers and writers see it."""

    def __init__(self, name: str) -> None:
        actor, _, self._shelf = name.partition("/")
        try:
            self._keeper: Any = ray.get_actor(actor, namespace=NAMESPACE)
        except (ValueError, RuntimeError) as error:
            raise ResourceUnavailableError("the blocks handed over are gone: the program that handed them over has ended, or Ray has; "
                                           "keep it running for as long as the job runs") from error
        self._acks: list[Any] = []

    def _do(self, what: str, *arguments: Any) -> Any:
        return self._keeper.do.remote(self._shelf, what, *arguments)

    def fetch(self, number: int, on_done: Callable[[], None]) -> Future[Any]:
        """The block of that number, as soon as it is here; ``on_done`` is called in another thread. A lost one is made again, once."""
        fetched: Future[Any] = Future()

        def run() -> None:
            try:
                fetched.set_result(self._block(number))
            except BaseException as error:
                fetched.set_exception(error)
            on_done()

        threading.Thread(target=run, name=f"block {number}", daemon=True).start()
        return fetched

    def _block(self, number: int) -> Any:
        refs = self._do("block", number).future().result()
        try:
            return stored(refs[0])
        except ray.exceptions.ObjectLostError:
            return stored(self._keeper.make.remote(self._shelf, "make_again", number, refs).future().result()[0])

    def _ask(self, what: str, *arguments: Any) -> Any:
        """The answer. (Not by ray.get(), of which Ray warns in a worker with an event loop, and which begins another Ray where this one is gone.)"""
        try:
            return self._do(what, *arguments).future().result(ACK_TIMEOUT_S)
        except FutureTimeout as error:
            raise ResourceUnavailableError(f"the keeper of the blocks has not answered for {ACK_TIMEOUT_S:g} s") from error

    def expect(self, recipe: Recipe) -> None:
        """The blocks to read are going to come by this recipe, as ``gather`` says that they can be had."""
        self._ask("expect", recipe)

    def gather(self, places: Mapping[int, str]) -> int:
        """These blocks can be had by now, each at its place; returns how many of all are in the store. To be called again until all are: it is what
        makes them come. Raises what Ray says where one cannot be had."""
        here: int = self._ask("gather", dict(places))
        return here

    def fail(self, reason: str) -> None:
        """The blocks that are not in the store will not come: jobs that wait for them end with this reason."""
        self._ask("fail", reason)

    def news(self, seen: int) -> News:
        """What has come after the first ``seen`` blocks."""
        news: News = self._ask("news", seen)
        return news

    def job_begins(self) -> None:
        """The blocks stay until ``job_ended``."""
        ray.get(self._do("job_begins"))

    def job_ended(self) -> None:
        """This job needs the blocks no more."""
        self._do("job_ended")

    def put(self, table: Any, subtask: int, attempt: int, on_taken: Callable[[], None]) -> None:
        """Puts a block that outlives this worker; ``on_taken`` is called, in any thread, when it is no longer held here."""
        worker = _this_worker()
        if worker is None:  # the program's own process, which keeps what it owns
            self._acks.append(self._do("written", subtask, attempt, [ray.put(table)]))
            on_taken()
            return
        token = IdFactory().hex(16)
        _ready[token] = table, on_taken
        self._acks.append(self._do("fetch_written", subtask, attempt, worker, token))

    def commit(self, subtask: int, attempt: int, subtasks: int) -> None:
        """Returns when what was put counts."""
        self._acks.append(self._do("commit", subtask, attempt, subtasks))
        acks, self._acks = self._acks, []
        try:
            for ack in acks:  # not ray.get(), of which Ray warns in a worker with an event loop: this is another thread
                ack.future().result(ACK_TIMEOUT_S)
        except FutureTimeout as error:
            raise ResourceUnavailableError(f"the keeper of the written blocks has not answered for {ACK_TIMEOUT_S:g} s") from error

    def is_complete(self) -> bool:
        """Whether the job that wrote ended well."""
        complete: bool = ray.get(self._do("is_complete"))
        return complete

    def committed(self) -> list[Any]:
        """References of all blocks that count."""
        refs: list[Any] = ray.get(self._do("committed"))
        return refs


_ready: dict[str, tuple[Any, Callable[[], None]]] = {}  # blocks of this worker that wait to be taken


def take(token: str) -> Any:
    """A block that is ready, for the keeper: the worker's actor hands it on (``RpcHost.take_block``)."""
    table, on_taken = _ready.pop(token)
    on_taken()
    return table


def _this_worker() -> Any:
    """The actor this process is; None for a program."""
    context = ray.get_runtime_context()
    return context.current_actor if context.get_actor_id() is not None else None


def sound(table: Any) -> Any:
    """The table as Ray can put it: nested columns without values may lack what Ray's serialiser looks for, and are made anew."""
    import pyarrow as pa

    if not any(map(_is_nested, table.schema.types)):
        return table if table.num_rows else table.schema.empty_table()
    columns = [pa.chunked_array([pa.concat_arrays([chunk, chunk[:0]]) for chunk in column.chunks], column.type) if _is_nested(column.type) else column
               for column in table.columns]
    return pa.table(columns, table.schema) if table.num_rows else table.schema.empty_table()


def _is_nested(kind: Any) -> bool:
    return bool(kind.num_fields)


def dataset_blocks(dataset: Any) -> list[Any]:
    """References of the blocks of a Ray Dataset, which is computed now if it was not yet."""
    return [ref for bundle in dataset.materialize().iter_internal_ref_bundles() for ref in bundle.block_refs]


def hosts_of(refs: Sequence[Any]) -> list[tuple[str, ...]]:
    """The host names of the nodes each block lies on; empty where Ray does not know."""
    names = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes()}
    locations = ray.experimental.get_object_locations(list(refs)) if refs else {}
    return [tuple(names[node] for node in locations.get(ref, {}).get("node_ids", ()) if node in names) for ref in refs]


def stored(ref: Any) -> Any:
    """The block of that reference, as soon as it is here. The bytes of a stream are given as a ``pyarrow.Buffer`` on the store itself: Ray would copy
    them, and fresh memory is what a copy costs most."""
    import pyarrow as pa
    from ray._private.worker import global_worker

    try:
        data, kind = global_worker.core_worker.get_objects([ref], -1)[0][:2]
    except (AttributeError, TypeError, ValueError):  # another Ray than this was written for
        kind = None
    if kind == _RAW and data is not None:
        return pa.py_buffer(data)
    block = ray.get(ref)
    return pa.py_buffer(block) if isinstance(block, bytes) else block


def dataset_of(refs: Sequence[Any], schema: Any) -> Any:
    """A Ray Dataset of these blocks; without any, an empty one of the schema."""
    import ray.data

    if refs:
        return ray.data.from_arrow_refs(list(refs))
    if schema is None:
        raise EngineError("no block was written, and no schema is known for an empty dataset")
    return ray.data.from_arrow(schema.empty_table())
