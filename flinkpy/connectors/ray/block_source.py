"""Arrow blocks in Ray's object store as a columnar source. A split is one block and a row offset; a
reader on the block's node reads it in place, without a copy. The source is bounded and replayable:
the blocks stay while a job runs, and while the program may run another.

Some blocks, such as Spark's partitions, may still be on their way when the job begins. Their
numbers are known, and each is assigned when the keeper reports that it has arrived."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS, single_batch
from flinkpy.connectors.source_api.enumerators import SplitPool
from flinkpy.connectors.source_api.readers import (
    UNTIL_WOKEN,
    NothingYet,
    SequentialReader,
    SplitReader,
)
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import ProgramError, ResourceUnavailableError

if TYPE_CHECKING:
    import pyarrow as pa

    from flinkpy.connectors.ray.block_keeper import BlockUpdates
    from flinkpy.connectors.ray.object_store import Store

UPDATE_PERIOD_S = 0.04  # how often the enumerator asks the keeper which blocks have arrived


@dataclass(frozen=True)
class BlockSplit:
    """Block ``number`` from row ``offset`` on, and the hosts that it lies on."""

    split_id: str
    number: int
    hosts: tuple[str, ...] = ()
    offset: int = 0


@dataclass(frozen=True)
class BlocksLeft:
    """The state of a BlockQueue in a checkpoint: unassigned splits, and the numbers of blocks that
    have not arrived."""

    splits: tuple[BlockSplit, ...]
    coming: frozenset[int]


class RayBlockSource(Source[BlockSplit]):
    """Reads the blocks of a keeper (see ``flinkpy.connectors.ray.block_keeper``), which all have
    one schema. ``hosts`` are the hosts of each block; None for a block that has not arrived.

    >>> env.from_ray_dataset(dataset)  # doctest: +SKIP
    """

    has_timestamps = False

    def __init__(
        self,
        keeper: str,
        schema: pa.Schema,
        hosts: Sequence[tuple[str, ...] | None],
        batch_rows: int = DEFAULT_BATCH_ROWS,
    ) -> None:
        self._keeper = keeper
        self._schema = schema
        self._hosts = tuple(hosts)
        self._batch_rows = batch_rows

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def is_columnar(self) -> bool:
        return True

    def create_enumerator(
        self, context: SplitEnumeratorContext[BlockSplit], checkpoint: Any = None
    ) -> SplitEnumerator[BlockSplit]:
        from flinkpy.connectors.ray.object_store import Store

        return BlockQueue(
            context, Store(self._keeper), checkpoint if checkpoint is not None else self._all()
        )

    def _all(self) -> BlocksLeft:
        there = tuple(
            _split(number, hosts) for number, hosts in enumerate(self._hosts) if hosts is not None
        )
        return BlocksLeft(
            there, frozenset(number for number, hosts in enumerate(self._hosts) if hosts is None)
        )

    def create_reader(self, context: ReaderContext) -> SourceReader[BlockSplit]:
        from flinkpy.connectors.ray.object_store import Store

        store = Store(self._keeper)
        return SequentialReader(
            context,
            lambda split: BlockReader(split, store, self._schema, self._batch_rows, context),
        )

    def __repr__(self) -> str:
        return f"RayBlockSource({len(self._hosts)} blocks)"


def _split(number: int, hosts: tuple[str, ...]) -> BlockSplit:
    return BlockSplit(f"block {number}", number, hosts)


class BlockQueue(SplitPool[BlockSplit]):
    """Assigns blocks to readers, preferring those on the reader's host; readers wait for blocks
    that have not arrived. Keeps all blocks alive until it is closed."""

    def __init__(
        self, context: SplitEnumeratorContext[BlockSplit], store: Store, left: BlocksLeft
    ) -> None:
        super().__init__(context)
        self._store, self._coming = store, set(left.coming)
        self._add(left.splits, more_to_come=bool(self._coming))
        self._seen = 0  # how many of the keeper's updates were handled
        self._began = False

    def start(self) -> None:
        self._store.job_started()
        self._began = True
        if self._coming:
            self._context.call_async(self._fetch_updates, self._handle_updates, UPDATE_PERIOD_S)

    def _fetch_updates(self) -> BlockUpdates | None:
        return self._store.updates(self._seen) if self._coming else None

    def _handle_updates(self, updates: BlockUpdates | None, error: BaseException | None) -> None:
        if error is not None:
            raise ResourceUnavailableError(
                f"the blocks handed over do not come: {str(error).splitlines()[0]}; has the "
                "program that hands them over "
                "ended, or Ray? Keep both running for as long "
                "as the job runs"
            ) from error
        if updates is None:
            return
        self._seen += len(updates.blocks)
        # A restored checkpoint may contain some of them already.
        come = [_split(number, hosts) for number, hosts in updates.blocks if number in self._coming]
        coming = self._coming - {split.number for split in come}
        if updates.failure is not None and coming:
            raise ProgramError(updates.failure)  # a restart of the job would not help
        self._coming = coming
        self._add(come, more_to_come=bool(coming))

    def _near(self, host: str) -> BlockSplit | None:
        return next((split for split in self._left if host in split.hosts), None)

    def snapshot_state(self, checkpoint_id: int) -> BlocksLeft:
        return BlocksLeft(tuple(self._left), frozenset(self._coming))

    def close(self) -> None:
        if self._began:
            self._store.job_ended()

    def __repr__(self) -> str:
        return f"<BlockQueue: {len(self._left)} blocks left, {len(self._coming)} to come>"


class BlockReader(SplitReader[BlockSplit]):
    """Reads one block in slices, as soon as it is here."""

    def __init__(
        self, split: BlockSplit, store: Store, schema: pa.Schema, rows: int, context: ReaderContext
    ) -> None:
        self._split = split
        self._schema = schema
        self._rows = rows
        self._fetched: Future[Any] = store.fetch(split.number, context.wake_up)
        self._table: Any = None
        self._next = self._last = split.offset

    def next_batch(self, limit: int) -> Batch | NothingYet | None:
        if self._table is None:
            if not self._fetched.done():
                return UNTIL_WOKEN
            self._table = self._conformed()
        start = self._next
        if start >= self._table.num_rows:
            return None
        self._last, self._next = start, min(start + self._rows, self._table.num_rows)
        return ColumnBatch(single_batch(self._table.slice(start, self._next - start)))

    def _conformed(self) -> Any:
        import pyarrow as pa

        from flinkpy.connectors.memory.block_schema import conformed

        try:
            block = self._fetched.result()
        except Exception as error:
            raise ResourceUnavailableError(
                f"{self._split.split_id} of the data handed over is lost: "
                f"{str(error).splitlines()[0]}"
            ) from error
        if isinstance(block, pa.Buffer):
            block = pa.ipc.open_stream(block).read_all()
            if block.schema.names:  # without columns this would lose the number of rows
                block = block.replace_schema_metadata()
        elif not isinstance(block, pa.Table):
            block = pa.Table.from_pandas(block, preserve_index=False)
        if block.num_rows == 0:
            return self._schema.empty_table()
        return conformed(block, self._schema)

    def snapshot(self) -> BlockSplit:
        return replace(self._split, offset=self._next)

    def position(self) -> str:
        return f"{self._split.split_id}, row {self._last}"

    def close(self) -> None:
        self._table = None
