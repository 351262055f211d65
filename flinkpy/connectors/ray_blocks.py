"""Arrow blocks in Ray's object store as a columnar source. A split is one block and a row offset; a reader that lies on the block's node reads it
where it is, without a copy. Bounded and replayable: the blocks stay while a job runs, and while the program may run another.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.arrow import DEFAULT_BATCH_ROWS, single_batch
from flinkpy.connectors.enumerators import SplitQueue
from flinkpy.connectors.readers import SequentialReader, SplitReader
from flinkpy.connectors.source import Boundedness, ReaderContext, Source, SourceReader, SplitEnumerator, SplitEnumeratorContext
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import ResourceUnavailableError

if TYPE_CHECKING:
    import pyarrow as pa

    from flinkpy.connectors.ray_store import Store


@dataclass(frozen=True)
class BlockSplit:
    """Block ``number`` from row ``offset`` on, and the hosts it lies on."""

    split_id: str
    number: int
    hosts: tuple[str, ...] = ()
    offset: int = 0


class RayBlockSource(Source[BlockSplit]):
    """The blocks a keeper holds (see ``flinkpy.connectors.ray_store``), all of one schema.

    >>> env.from_ray_dataset(dataset)  # doctest: +SKIP
    """

    def __init__(self, keeper: str, schema: pa.Schema, hosts: Sequence[tuple[str, ...]], batch_rows: int = DEFAULT_BATCH_ROWS) -> None:
        self._keeper, self._schema, self._hosts, self._batch_rows = keeper, schema, tuple(hosts), batch_rows

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def is_columnar(self) -> bool:
        return True

    def create_enumerator(self, context: SplitEnumeratorContext[BlockSplit], checkpoint: Any = None) -> SplitEnumerator[BlockSplit]:
        splits = [BlockSplit(f"block {number}", number, hosts) for number, hosts in enumerate(self._hosts)]
        return BlockQueue(context, splits, checkpoint, self._keeper)

    def create_reader(self, context: ReaderContext) -> SourceReader[BlockSplit]:
        from flinkpy.connectors.ray_store import Store

        store = Store(self._keeper)
        return SequentialReader(context, lambda split: BlockReader(split, store, self._schema, self._batch_rows, context))

    def __repr__(self) -> str:
        return f"RayBlockSource({len(self._hosts)} blocks)"


class BlockQueue(SplitQueue[BlockSplit]):
    """Hands out blocks, those on the reader's own host first. As long as it is there, so are the blocks."""

    def __init__(self, context: SplitEnumeratorContext[BlockSplit], splits: list[BlockSplit], checkpoint: Any, keeper: str) -> None:
        super().__init__(context, lambda parallelism: splits, checkpoint)
        self._keeper = keeper
        self._store: Store | None = None

    def start(self) -> None:
        from flinkpy.connectors.ray_store import Store

        self._store = Store(self._keeper)
        self._store.job_begins()
        super().start()

    def handle_split_request(self, subtask: int, host: str) -> None:
        near = next((split for split in self._left if host in split.hosts), None)
        if near is not None:
            self._left.remove(near)
            self._left.appendleft(near)
        super().handle_split_request(subtask, host)

    def close(self) -> None:
        if self._store is not None:
            self._store.job_ended()


class BlockReader(SplitReader[BlockSplit]):
    """Slices of one block, once it is here."""

    def __init__(self, split: BlockSplit, store: Store, schema: pa.Schema, rows: int, context: ReaderContext) -> None:
        self._split, self._schema, self._rows = split, schema, rows
        self._fetched: Future[Any] = store.fetch(split.number, context.wake_up)
        self._table: Any = None
        self._next = self._last = split.offset

    def next_batch(self, limit: int) -> Batch | float | None:
        if self._table is None:
            if not self._fetched.done():
                return float("inf")
            self._table = self._conformed()
        start = self._next
        if start >= self._table.num_rows:
            return None
        self._last, self._next = start, min(start + self._rows, self._table.num_rows)
        return ColumnBatch(single_batch(self._table.slice(start, self._next - start)))

    def _conformed(self) -> Any:
        import pyarrow as pa

        try:
            block = self._fetched.result()
        except Exception as error:
            raise ResourceUnavailableError(f"{self._split.split_id} of the data handed over is lost: {str(error).splitlines()[0]}") from error
        if isinstance(block, bytes):
            block = pa.ipc.open_stream(pa.BufferReader(block)).read_all().replace_schema_metadata()
        elif not isinstance(block, pa.Table):
            block = pa.Table.from_pandas(block, preserve_index=False)
        if block.num_rows == 0:
            return self._schema.empty_table()
        return block.select(self._schema.names).cast(self._schema) if not block.schema.equals(self._schema) else block

    def snapshot(self) -> BlockSplit:
        return replace(self._split, offset=self._next)

    def position(self) -> str:
        return f"{self._split.split_id}, row {self._last}"

    def close(self) -> None:
        self._table = None
