"""Blocks in Ray's object store: who keeps them, how they are fetched and put. The connectors' only file that knows Ray.

A block is a ``pyarrow.Table``. A :class:`BlockKeeper` actor holds the references of one hand-over: readers ask it for them by number, so that
Ray knows who borrows what; and it owns the blocks sinks write, so that they outlive the workers that made them. Ray gives a result to whoever called
for it, so the keeper calls the worker for each block (``take``), and the block goes into the store where the worker is, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import ray

from flinkpy.core.errors import EngineError, ResourceUnavailableError
from flinkpy.core.ids import IdFactory

NAMESPACE = "flinkpy"
ACK_TIMEOUT_S = 60.0

_handles: dict[str, Any] = {}  # of the keepers this process made: Ray ends an actor nobody refers to


class BlockKeeper:
    """The actor. Blocks to read are numbered; blocks written belong to a subtask and are hidden until it commits them."""

    def __init__(self) -> None:
        self._blocks: list[Any] = []
        self._written: dict[tuple[int, int], list[Any]] = {}  # (subtask, attempt) -> blocks
        self._committed: dict[int, list[Any]] = {}

    def keep(self, refs: list[Any]) -> None:
        """Takes the blocks a source reads."""
        self._blocks = list(refs)

    def block(self, number: int) -> list[Any]:
        """The reference of one block, in a list: alone Ray would send the block itself."""
        return [self._blocks[number]]

    def written(self, subtask: int, attempt: int, ref: list[Any]) -> None:
        """A sink's subtask in the program's own process put a block."""
        self._written.setdefault((subtask, attempt), []).extend(ref)

    def fetch_written(self, subtask: int, attempt: int, worker: Any, token: str) -> None:
        """A sink's subtask in a worker has a block ready."""
        self._written.setdefault((subtask, attempt), []).append(worker.take_block.remote(token))

    def commit(self, subtask: int, attempt: int) -> None:
        """The subtask has ended well: what it wrote counts, in place of what an earlier attempt wrote. Returns when all of it is in the store."""
        refs = self._written.pop((subtask, attempt), [])
        if refs:
            ray.wait(refs, num_returns=len(refs), fetch_local=False)
        self._committed[subtask] = refs

    def committed(self) -> list[Any]:
        """All blocks that count, by subtask, each one's in order."""
        return [ref for subtask in sorted(self._committed) for ref in self._committed[subtask]]

    def committed_block(self, number: int) -> list[Any]:
        """One of them, in a list."""
        return [self.committed()[number]]


def make_keeper(refs: Sequence[Any] = ()) -> str:
    """Starts a keeper, with the blocks to read; gives its name. It lives until ``release``, or as long as this program."""
    name = f"blocks-{IdFactory().hex(16)}"
    keeper: Any = ray.remote(BlockKeeper).options(name=name, namespace=NAMESPACE, num_cpus=0).remote()
    _handles[name] = keeper
    ray.get(keeper.keep.remote(list(refs)))
    return name


def release(name: str) -> None:
    """Lets go of the keeper's blocks; those a dataset or another reader refers to stay."""
    handle = _handles.pop(name, None)
    try:
        ray.kill(handle if handle is not None else ray.get_actor(name, namespace=NAMESPACE))
    except ValueError:
        pass  # gone already


class Store:
    """A keeper as readers and writers see it."""

    def __init__(self, name: str) -> None:
        try:
            self._keeper: Any = ray.get_actor(name, namespace=NAMESPACE)
        except (ValueError, RuntimeError) as error:
            raise ResourceUnavailableError("the blocks handed over are gone: the program that handed them over has ended, or Ray has; "
                                           "keep it running for as long as the job runs") from error
        self._acks: list[Any] = []

    def fetch(self, number: int, on_done: Callable[[], None]) -> Future[Any]:
        """The block of that number, as soon as it is here; ``on_done`` is called in one of Ray's threads."""
        fetched: Future[Any] = Future()

        def got_block(done: Any) -> None:
            try:
                fetched.set_result(done.result())
            except Exception as error:
                fetched.set_exception(error)
            on_done()

        def got_reference(done: Any) -> None:
            try:
                done.result()[0].future().add_done_callback(got_block)
            except Exception as error:
                fetched.set_exception(error)
                on_done()

        self._keeper.block.remote(number).future().add_done_callback(got_reference)
        return fetched

    def put(self, table: Any, subtask: int, attempt: int) -> None:
        """Puts a block that outlives this worker."""
        worker = _this_worker()
        if worker is None:  # the program's own process, which keeps what it owns
            self._acks.append(self._keeper.written.remote(subtask, attempt, [ray.put(table)]))
            return
        token = IdFactory().hex(16)
        _ready[token] = table
        self._acks.append(self._keeper.fetch_written.remote(subtask, attempt, worker, token))

    def commit(self, subtask: int, attempt: int) -> None:
        """Returns when what was put counts."""
        self._acks.append(self._keeper.commit.remote(subtask, attempt))
        acks, self._acks = self._acks, []
        try:
            ray.get(acks, timeout=ACK_TIMEOUT_S)
        except ray.exceptions.GetTimeoutError as error:
            raise ResourceUnavailableError(f"the keeper of the written blocks has not answered for {ACK_TIMEOUT_S:g} s") from error

    def committed(self) -> list[Any]:
        """References of all blocks that count."""
        refs: list[Any] = ray.get(self._keeper.committed.remote())
        return refs


_ready: dict[str, Any] = {}  # blocks of this worker that wait to be taken


def take(token: str) -> Any:
    """A block that is ready, for the keeper: the worker's actor hands it on (``RpcHost.take_block``)."""
    return _ready.pop(token)


def _this_worker() -> Any:
    """The actor this process is; None for a program."""
    context = ray.get_runtime_context()
    return context.current_actor if context.get_actor_id() is not None else None


def dataset_blocks(dataset: Any) -> list[Any]:
    """References of the blocks of a Ray Dataset, which is computed now if it was not yet."""
    return [ref for bundle in dataset.materialize().iter_internal_ref_bundles() for ref in bundle.block_refs]


def hosts_of(refs: Sequence[Any]) -> list[tuple[str, ...]]:
    """The host names of the nodes each block lies on; empty where Ray does not know."""
    names = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes()}
    locations = ray.experimental.get_object_locations(list(refs)) if refs else {}
    return [tuple(names[node] for node in locations.get(ref, {}).get("node_ids", ()) if node in names) for ref in refs]


def tables(refs: Sequence[Any]) -> list[Any]:
    """The blocks themselves."""
    found: list[Any] = ray.get(list(refs))
    return found


def dataset_of(refs: Sequence[Any], schema: Any) -> Any:
    """A Ray Dataset of these blocks; without any, an empty one of the schema."""
    import ray.data

    if refs:
        return ray.data.from_arrow_refs(list(refs))
    if schema is None:
        raise EngineError("no block was written, and no schema is known for an empty dataset")
    return ray.data.from_arrow(schema.empty_table())
