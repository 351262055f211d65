"""Blocks in Ray's object store, as programs, readers and writers have them: how they are kept, fetched and put.

A block is a ``pyarrow.Table``, or the bytes of an Arrow stream. Ray gives a result to whoever called for it, so the keeper of a program's blocks
(``flinkpy.connectors.ray.block_keeper``) calls the worker for each block that is written (``take``), and the block goes into the store where the
worker is, once.

Blocks to read stay for as long as a job reads them or the program still has the stream, which may run again; then their shelf is cleared. The keeper
itself ends with the program.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from queue import SimpleQueue
from typing import Any

import ray

from flinkpy.connectors.ray.block_keeper import BlockKeeper, News, Recipe
from flinkpy.core.errors import EngineError, ResourceUnavailableError
from flinkpy.core.ids import IdFactory

NAMESPACE = "flinkpy"
ACK_TIMEOUT_S = 60.0
_RAW = b"RAW"  # what Ray notes beside bytes

_keepers: dict[tuple[str, str], tuple[str, Any]] = {}  # this program's: Ray's cluster and job -> the actor's name and handle


def _own_keeper() -> tuple[str, Any]:
    context = ray.get_runtime_context()
    key = context.gcs_address, context.get_job_id()
    if key not in _keepers:
        name = f"blocks-{IdFactory().hex(16)}"
        actor: Any = ray.remote(concurrency_groups={"making": 2})(BlockKeeper)
        _keepers[key] = name, actor.options(name=name, namespace=NAMESPACE, num_cpus=0).remote()
    return _keepers[key]


def make_keeper(refs: Sequence[Any] = ()) -> str:
    """A new shelf of this program's keeper, with the blocks to read; gives its name. It lasts as long as this program, or until it is not needed
    (``forget_with``)."""
    name, keeper = _own_keeper()
    shelf = IdFactory().hex(8)
    ray.get(keeper.begin.remote(shelf, list(refs)))
    return f"{name}/{shelf}"


def keep(blocks: Iterable[Any]) -> str:
    """A new shelf with these blocks to read, which are put into the store now."""
    return make_keeper([ray.put(block) for block in blocks])


def is_own(name: str) -> bool:
    """Whether this program's keeper has that shelf, on the Ray it is connected to now."""
    return name.partition("/")[0] == _own_keeper()[0]


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
        return _answer(self._do(what, *arguments), "blocks")

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
        self._ask("job_begins")

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
        for ack in acks:
            _answer(ack, "written blocks")

    def is_complete(self) -> bool:
        """Whether the job that wrote ended well."""
        complete: bool = ray.get(self._do("is_complete"))
        return complete

    def committed(self) -> list[Any]:
        """References of all blocks that count."""
        refs: list[Any] = ray.get(self._do("committed"))
        return refs


def _answer(call: Any, of: str) -> Any:
    """Of the keeper. (Not by ray.get(), of which Ray warns in a worker with an event loop, and which begins another Ray where this one is gone.)"""
    try:
        return call.future().result(ACK_TIMEOUT_S)
    except FutureTimeout as error:
        raise ResourceUnavailableError(f"the keeper of the {of} has not answered for {ACK_TIMEOUT_S:g} s") from error


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
    block = ref.future().result()  # in a worker ray.get() warns of its event loop
    return pa.py_buffer(block) if isinstance(block, bytes) else block


def dataset_of(refs: Sequence[Any], schema: Any) -> Any:
    """A Ray Dataset of these blocks; without any, an empty one of the schema."""
    import ray.data

    if refs:
        return ray.data.from_arrow_refs(list(refs))
    if schema is None:
        raise EngineError("no block was written, and no schema is known for an empty dataset")
    return ray.data.from_arrow(schema.empty_table())
