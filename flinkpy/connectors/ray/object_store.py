"""How programs, readers and writers keep, fetch and put blocks in Ray's object store.

A block is a ``pyarrow.Table``, or the bytes of an Arrow stream. In Ray, the caller of a task owns
its result. So the keeper of a program's blocks (``flinkpy.connectors.ray.block_keeper``) calls the
worker for each written block (``take_block``), and the block is put once, into the store of the
worker's node.

Blocks to read stay as long as a job reads them, or the program has the stream and so may run it
again; then their set is dropped. The keeper itself ends with the program."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import ray

from flinkpy.connectors.ray.block_keeper import BlockKeeper, BlockUpdates, Recipe
from flinkpy.connectors.ray.written_blocks import BlockRange
from flinkpy.core.errors import EngineError, ResourceUnavailableError
from flinkpy.core.ids import IdFactory

if TYPE_CHECKING:
    import pyarrow as pa

P = ParamSpec("P")
R = TypeVar("R")

NAMESPACE = "flinkpy"
ACK_TIMEOUT_S = 60.0
_RAW = b"RAW"  # Ray's metadata for bytes

# Of this program: Ray's cluster and job -> the actor's name and handle
_keepers: dict[tuple[str, str], tuple[str, Any]] = {}


def _own_keeper() -> tuple[str, Any]:
    context = ray.get_runtime_context()
    key = context.gcs_address, context.get_job_id()
    if key not in _keepers:
        name = f"blocks-{IdFactory().hex(16)}"
        actor: Any = ray.remote(concurrency_groups={"making": 2})(BlockKeeper)
        _keepers[key] = name, actor.options(name=name, namespace=NAMESPACE, num_cpus=0).remote()
    return _keepers[key]


def make_keeper(refs: Sequence[Any] = ()) -> str:
    """Creates a set in this program's keeper, with the blocks to read; returns its name. The set
    lasts as long as the program, or until nobody needs it (``forget_with``)."""
    name, keeper = _own_keeper()
    block_set = IdFactory().hex(8)
    ray.get(keeper.create_set.remote(block_set, list(refs)))
    return f"{name}/{block_set}"


def keep(blocks: Iterable[Any]) -> str:
    """Puts these blocks into the store and creates a set of them; returns the set's name."""
    return make_keeper([ray.put(block) for block in blocks])


def is_own(name: str) -> bool:
    """Whether the set belongs to this program's keeper, on the Ray cluster that the program is
    connected to now."""
    return name.partition("/")[0] == _own_keeper()[0]


def forget_with(holder: object, name: str, release: Callable[[], None] | None = None) -> None:
    """Drops the set when ``holder``, which represents its blocks, is garbage collected; then calls
    ``release``."""
    if not _forgetter.is_alive():
        _forgetter.start()
    tell = partial(_own_keeper()[1].forget_set.remote, name.partition("/")[2])
    weakref.finalize(holder, _forgotten.put, (tell, release)).atexit = False


# Filled by the garbage collector, during which neither Ray nor Spark may be called.
_forgotten: SimpleQueue[tuple[Callable[[], Any] | None, ...]] = SimpleQueue()


def _forget() -> None:
    while True:
        for call in _forgotten.get():
            try:
                if call is not None:
                    call()
            except Exception:
                pass  # Ray or Spark has ended, and with it what it kept


_forgetter = threading.Thread(target=_forget, name="forgotten blocks", daemon=True)


class Store:
    """Access to one set of a keeper, for readers and writers."""

    def __init__(self, name: str) -> None:
        actor, _, self._set_name = name.partition("/")
        try:
            self._keeper: Any = ray.get_actor(actor, namespace=NAMESPACE)
        except (ValueError, RuntimeError) as error:
            raise ResourceUnavailableError(
                "the blocks handed over are gone: the program that handed them over has "
                "ended, or Ray has; "
                "keep it running for as long as the job runs"
            ) from error
        self._acks: list[Any] = []

    def _call(
        self,
        method: Callable[Concatenate[BlockKeeper, str, P], R],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Any:
        """Calls a method of the keeper for this set; returns the reference of its answer."""
        return getattr(self._keeper, method.__name__).remote(self._set_name, *args, **kwargs)

    def fetch(self, number: int, on_done: Callable[[], None]) -> Future[Any]:
        """The block of that number, as a future; ``on_done`` is called in another thread when it is
        done. A lost block is made again, once."""
        fetched: Future[Any] = Future()

        def run() -> None:
            try:
                fetched.set_result(self._block(number))
            except BaseException as error:
                fetched.set_exception(error)
            on_done()

        threading.Thread(target=run, name=f"block {number}", daemon=True).start()
        return fetched

    def block_ref(self, number: int) -> list[Any]:
        """The reference of that block, in a list, because Ray would replace a bare reference by the
        block."""
        refs: list[Any] = self._call(BlockKeeper.block, number).future().result()
        return refs

    def _block(self, number: int) -> Any:
        refs = self.block_ref(number)
        try:
            return stored(refs[0])
        except ray.exceptions.ObjectLostError:
            return stored(self.make_again(number, refs)[0])

    def make_again(self, number: int, lost: list[Any]) -> list[Any]:
        """A new reference in place of a lost one; raises the keeper's error if the block cannot be
        made again."""
        made: list[Any] = self._call(BlockKeeper.make_again, number, lost).future().result()
        return made

    def _ask(
        self,
        method: Callable[Concatenate[BlockKeeper, str, P], R],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        return cast(R, _answer(self._call(method, *args, **kwargs), "blocks"))

    def expect_blocks(self, recipe: Recipe) -> None:
        """Announces that this recipe will make the blocks to read; ``gather_blocks`` then reports
        where they are available."""
        self._ask(BlockKeeper.expect_blocks, recipe)

    def gather_blocks(self, places: Mapping[int, str]) -> int:
        """Reports blocks that are available now, each at its place; returns how many of all blocks
        are in the store. Call it repeatedly until all are, because these calls bring them there.
        Raises Ray's error if a block cannot be made."""
        return self._ask(BlockKeeper.gather_blocks, dict(places))

    def fail_missing(self, reason: str) -> None:
        """Announces that blocks that are not in the store will never come: jobs that wait for them
        fail with this reason."""
        self._ask(BlockKeeper.fail_missing, reason)

    def updates(self, seen: int) -> BlockUpdates:
        """The blocks that have arrived after the first ``seen``."""
        return self._ask(BlockKeeper.updates, seen)

    def job_started(self) -> None:
        """Keeps the blocks until ``job_ended``."""
        self._ask(BlockKeeper.job_started)

    def job_ended(self) -> None:
        """The job no longer needs the blocks."""
        self._call(BlockKeeper.job_ended)

    def put(
        self, table: pa.Table, subtask: int, attempt: int, on_taken: Callable[[], None]
    ) -> None:
        """Puts a block that outlives this worker; ``on_taken`` is called, in any thread, when this
        process no longer holds the block."""
        worker = _this_worker()
        if worker is None:  # the program's own process: what it puts stays as long as it
            self._acks.append(
                self._call(BlockKeeper.add_written, subtask, attempt, [ray.put(table)])
            )
            on_taken()
            return
        token = IdFactory().hex(16)
        _ready[token] = table, on_taken
        self._acks.append(self._call(BlockKeeper.fetch_written, subtask, attempt, worker, token))

    def await_written(self, subtask: int, attempt: int) -> None:
        """Returns when the blocks that this attempt has put are in the store, and the keeper's.
        Raises ResourceUnavailableError if they are not in time."""
        self._acks.append(self._call(BlockKeeper.await_written, subtask, attempt))
        acks, self._acks = self._acks, []
        for ack in acks:
            _answer(ack, "written blocks")

    def commit_written(self, blocks: BlockRange) -> None:
        """Makes these blocks count; returns when that is done."""
        _answer(self._call(BlockKeeper.commit_written, blocks), "written blocks")

    def is_complete(self) -> bool:
        """Whether all subtasks of the job that wrote the blocks have ended well, and committed
        them."""
        complete: bool = ray.get(self._call(BlockKeeper.is_complete))
        return complete

    def committed_blocks(self) -> list[Any]:
        """The references of all blocks that are committed so far."""
        refs: list[Any] = ray.get(self._call(BlockKeeper.committed_blocks))
        return refs


def _answer(call: Any, of: str) -> Any:
    """The keeper's answer to a call. Avoids ``ray.get``: it warns in a worker with an event loop,
    and starts a new Ray if the old one has ended."""
    try:
        return call.future().result(ACK_TIMEOUT_S)
    except FutureTimeout as error:
        raise ResourceUnavailableError(
            f"the keeper of the {of} has not answered for {ACK_TIMEOUT_S:g} s"
        ) from error


# written blocks of this worker, until the keeper takes them
_ready: dict[str, tuple[Any, Callable[[], None]]] = {}


def take_block(token: str) -> Any:
    """Returns a written block to the keeper, which calls the worker's actor for it. The result of
    an actor call belongs to the caller, so the block outlives this process. The cluster registers
    this function with the worker under the name ``TAKE_BLOCK``."""
    table, on_taken = _ready.pop(token)
    on_taken()
    return table


def _this_worker() -> Any:
    """The actor that this process is; None in a program."""
    context = ray.get_runtime_context()
    return context.current_actor if context.get_actor_id() is not None else None


def normalize_for_ray(table: pa.Table) -> Any:
    """The table in a form that Ray can serialise. Nested columns without values may lack buffers
    that Ray's serialiser expects, so they are rebuilt."""
    import pyarrow as pa

    if not any(map(_is_nested, table.schema.types)):
        return table if table.num_rows else table.schema.empty_table()
    columns = [
        pa.chunked_array(
            [pa.concat_arrays([chunk, chunk[:0]]) for chunk in column.chunks], column.type
        )
        if _is_nested(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, table.schema) if table.num_rows else table.schema.empty_table()


def _is_nested(kind: pa.DataType) -> bool:
    return bool(kind.num_fields)


def dataset_blocks(dataset: Any) -> list[Any]:
    """The references of a Ray Dataset's blocks; computes the dataset if that has not happened
    yet."""
    return [
        ref
        for bundle in dataset.materialize().iter_internal_ref_bundles()
        for ref in bundle.block_refs
    ]


def stored(ref: Any) -> Any:
    """The block of that reference; waits until it is here. The bytes of a stream are returned as a
    ``pyarrow.Buffer`` on the store itself. Ray would copy them, and most of a copy's cost is fresh
    memory."""
    import pyarrow as pa
    from ray._private.worker import global_worker

    try:
        data, kind = global_worker.core_worker.get_objects([ref], -1)[0][:2]
    except (
        AttributeError,
        TypeError,
        ValueError,
    ):  # a version of Ray that this was not written for
        kind = None
    if kind == _RAW and data is not None:
        return pa.py_buffer(data)
    block = ref.future().result()  # ray.get() would warn in a worker with an event loop
    return pa.py_buffer(block) if isinstance(block, bytes) else block


def dataset_of(refs: Sequence[Any], schema: pa.Schema | None) -> Any:
    """A Ray Dataset of these blocks; without blocks, an empty one with the schema."""
    import ray.data

    if refs:
        return ray.data.from_arrow_refs(list(refs))
    if schema is None:
        raise EngineError("no block was written, and no schema is known for an empty dataset")
    return ray.data.from_arrow(schema.empty_table())
