"""Channel selection, for whole batches of rows and of columns.

A selector splits a batch into parts, one for each channel that gets records; records keep their
order. Rows and columns are split alike: the n-th record of a stream goes to the same channels in
either form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import length_hint
from typing import TYPE_CHECKING, Any

from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import (
    canonical_key,
    channel_of_key_group,
    default_max_parallelism,
    key_group,
)
from flinkpy.graph.partitioning import KeySpec, Partitioning, PartitioningKind
from flinkpy.network.partitioning.key_loops import KeyLoops

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MEMOISED_KEYS = 1 << 18  # the number of keys whose channel a writer caches

Parts = Iterable[tuple[int, Batch]]


class ChannelSelector(ABC):
    """Splits batches over ``channels``."""

    name = ""

    def __init__(self, channels: int) -> None:
        if channels < 1:
            raise ValueError(f"a selector needs at least one channel, not {channels}")
        self.channels = channels

    def split(self, batch: Batch) -> Parts:
        """Returns (channel, part) for every channel that gets records; the batch must not be
        empty."""
        return self.split_rows(batch) if isinstance(batch, RowBatch) else self.split_columns(batch)

    @abstractmethod
    def split_rows(self, batch: RowBatch) -> Parts: ...

    @abstractmethod
    def split_columns(self, batch: ColumnBatch) -> Parts: ...

    def __repr__(self) -> str:
        return f"{self.name or type(self).__name__}({self.channels} channels)"


class SingleChannel(ChannelSelector):
    """Sends everything to channel 0, by reference: forward, global, and every partitioning with one
    channel."""

    def split(self, batch: Batch) -> Parts:
        return ((0, batch),)

    split_rows = split
    split_columns = split


class Broadcast(ChannelSelector):
    """Sends every record to every channel; all get the same batch object."""

    name = "BROADCAST"

    def split(self, batch: Batch) -> Parts:
        return [(channel, batch) for channel in range(self.channels)]

    split_rows = split
    split_columns = split


class RoundRobin(ChannelSelector):
    """Sends each record to the next channel: rebalance and rescale. Subtasks begin at different
    channels, so that short streams are spread too."""

    name = "REBALANCE"

    def __init__(self, channels: int, first: int = 0) -> None:
        super().__init__(channels)
        self._next = first % channels

    def split_rows(self, batch: RowBatch) -> Parts:
        values, stamps, n = batch.values, batch.timestamps, self.channels
        first = self._advance(len(values))
        for i in range(min(n, len(values))):
            yield (
                (first + i) % n,
                RowBatch(values[i::n], stamps[i::n] if stamps is not None else None),
            )

    def split_columns(self, batch: ColumnBatch) -> Parts:
        import numpy as np

        rows, n = len(batch), self.channels
        first = self._advance(rows)
        for i in range(min(n, rows)):
            yield (first + i) % n, batch.take(np.arange(i, rows, n))

    def _advance(self, rows: int) -> int:
        first, self._next = self._next, (self._next + rows) % self.channels
        return first


class Shuffle(ChannelSelector):
    """Sends each record to a channel drawn at random (seeded, so that a run can be repeated)."""

    name = "SHUFFLE"

    def __init__(self, channels: int, seed: int = 0) -> None:
        super().__init__(channels)
        import numpy as np

        self._random = np.random.default_rng(seed)

    def split_rows(self, batch: RowBatch) -> Parts:
        return _split_rows_by(batch, self._draw(len(batch)).tolist(), self.channels)

    def split_columns(self, batch: ColumnBatch) -> Parts:
        return _split_columns_by(batch, self._draw(len(batch)), self.channels)

    def _draw(self, rows: int) -> npt.NDArray[np.int64]:
        return self._random.integers(0, self.channels, rows, dtype="int64")


class KeyGroupSelector(ChannelSelector):
    """Sends each record to the channel whose subtask owns the key group of its key. Caches the
    channels of up to ``memoised`` keys."""

    name = "HASH"

    def __init__(
        self, channels: int, key: KeySpec, max_parallelism: int, memoised: int = MEMOISED_KEYS
    ) -> None:
        super().__init__(channels)
        if max_parallelism < channels:
            raise ProgramError(
                f"a keyed stream over {channels} channels needs a maximum parallelism of at "
                f"least that, not {max_parallelism}"
            )
        self._key = key
        self._max_parallelism = max_parallelism
        # A key leads directly to the append method of its channel's list: one look-up and one call
        # per record. All keys of a channel share one method object, which stays in the processor's
        # cache; one object per key would not.
        self._boxes: list[list[Any]] = [[] for _ in range(channels)]
        self._stamp_boxes: list[list[int]] = [[] for _ in range(channels)]
        append_of = [box.append for box in self._boxes]
        # A bound method would form a cycle and keep the keys alive for long
        channel_of = partial(_channel_of, max_parallelism, channels)
        self._appends = _Memo(lambda key: append_of[channel_of(key)], memoised)
        self._channels = _Memo(channel_of, memoised)
        self._loops: KeyLoops | None = None  # made for the first rows

    def channel_of(self, key: Any) -> int:
        """The channel of one key."""
        return _channel_of(self._max_parallelism, self.channels, key)

    def split_rows(self, batch: RowBatch) -> Parts:
        try:
            if batch.timestamps is None:
                self._fill(batch.values)
            else:
                self._fill_timestamped(batch.values, batch.timestamps)
            return self._empty_boxes(batch.timestamps is not None)
        except BaseException:
            self._empty_boxes(True)
            raise

    def _fill(self, values: list[Any]) -> None:
        memo = self._appends
        memo.bound()
        self._key_loops().plain(values, memo)

    def _fill_timestamped(self, values: list[Any], timestamps: list[int]) -> None:
        memo = self._channels
        memo.bound()
        self._key_loops().stamped(
            values,
            timestamps,
            memo,
            [box.append for box in self._boxes],
            [box.append for box in self._stamp_boxes],
        )

    def _key_loops(self) -> KeyLoops:
        if self._loops is None:
            self._loops = KeyLoops(_row_selector(self._key))
        return self._loops

    def _empty_boxes(self, stamped: bool) -> list[tuple[int, Batch]]:
        """Empties the boxes, and returns their contents as parts. The boxes stay the same lists,
        because the memo refers to them."""
        parts: list[tuple[int, Batch]] = []
        for channel, box in enumerate(self._boxes):
            if box:
                stamps = self._stamp_boxes[channel]
                parts.append((channel, RowBatch(box[:], stamps[:] if stamped else None)))
                box.clear()
                stamps.clear()
        return parts

    def split_columns(self, batch: ColumnBatch) -> Parts:
        import numpy as np

        from flinkpy.network.partitioning.column_hashes import key_hashes

        if self._key.columns is None:
            select = _row_selector(self._key)
            keys = [select(row) for row in rows_of(batch)]
            memo = self._channels
            memo.bound()
            return _split_columns_by(
                batch,
                np.fromiter(map(memo.__getitem__, keys), dtype=np.int64, count=len(batch)),
                self.channels,
            )
        groups = key_hashes(batch.data, self._key.columns) % np.uint64(self._max_parallelism)
        return _split_columns_by(
            batch,
            (groups * np.uint64(self.channels) // np.uint64(self._max_parallelism)).astype(
                np.int64
            ),
            self.channels,
        )


def _channel_of(max_parallelism: int, channels: int, key: Any) -> int:
    return channel_of_key_group(key_group(key, max_parallelism), max_parallelism, channels)


def _name_record(
    error: BaseException, function: object, asked: list[Any], upcoming: Iterator[Any]
) -> None:
    """Names what a function failed on, for ``user_code_error``; the iterator knows how far it
    got."""
    error.function_at_fault = function  # type: ignore[attr-defined]
    error.record_at_fault = asked[-length_hint(upcoming) - 1]  # type: ignore[attr-defined]


class CustomSelector(ChannelSelector):
    """Sends each record to the channel that the user's function of key and number of channels
    returns."""

    name = "CUSTOM"

    def __init__(
        self, channels: int, function: Callable[[Any, int], int], key: KeySpec | None
    ) -> None:
        super().__init__(channels)
        self._function, self._key = function, key

    def split_rows(self, batch: RowBatch) -> Parts:
        return _split_rows_by(
            batch, self._call_function(self._keys_of_rows(batch.values)), self.channels
        )

    def split_columns(self, batch: ColumnBatch) -> Parts:
        import numpy as np

        return _split_columns_by(
            batch,
            np.array(self._call_function(self._keys_of(batch)), dtype=np.int64),
            self.channels,
        )

    def _keys_of(self, batch: ColumnBatch) -> Iterable[Any]:
        if self._key is not None and self._key.columns is not None:
            columns = [batch.data.column(name).to_pylist() for name in self._key.columns]
            return columns[0] if len(columns) == 1 else zip(*columns)
        return self._keys_of_rows(rows_of(batch))

    def _keys_of_rows(self, rows: Iterable[Any]) -> Iterable[Any]:
        if self._key is None:
            return rows
        select, asked = _row_selector(self._key), list(rows)
        upcoming = iter(asked)
        try:
            return [select(row) for row in upcoming]
        except BaseException as error:
            _name_record(error, select, asked, upcoming)
            raise

    def _call_function(self, keys: Iterable[Any]) -> list[int]:
        function, n = self._function, self.channels
        asked = list(keys)
        upcoming = iter(asked)
        try:
            channels = [function(key, n) for key in upcoming]
        except BaseException as error:
            _name_record(error, function, asked, upcoming)
            raise
        right = set(range(n))
        if {int}.issuperset(map(type, channels)) and right.issuperset(channels):
            return channels
        return [_checked(channel, key, right, function) for key, channel in zip(asked, channels)]


def _checked(channel: Any, key: Any, right: set[int], function: object) -> int:
    """The channel as a plain int (the function may return one of numpy's)."""
    number = channel if isinstance(channel, int) else getattr(channel, "__index__", lambda: None)()
    if number not in right:
        error = ValueError(
            f"the partitioner of partition_custom returned {channel!r:.80} for the key "
            f"{key!r:.80}; where there are {len(right)} "
            f"channels it must return a whole number from 0 to {len(right) - 1}"
        )
        error.function_at_fault = function  # type: ignore[attr-defined]
        raise error
    return int(number)


class _Memo(dict[Any, Any]):
    """Caches the results of ``make`` for a bounded number of keys, each in its canonical form."""

    __slots__ = ("_limit", "_make")

    def __init__(self, make: Callable[[Any], Any], limit: int) -> None:
        super().__init__()
        self._make, self._limit = make, limit

    def __missing__(self, key: Any) -> Any:
        form = canonical_key(key)
        if form is not key:
            return self[form]
        found = self[key] = self._make(key)
        return found

    def bound(self) -> None:
        """Drops all entries when there are too many. That is cheaper than keeping an LRU order,
        from which a stream with so many keys would gain nothing."""
        if len(self) > self._limit:
            self.clear()


def make_selector(
    partitioning: Partitioning, channels: int, subtask_index: int = 0
) -> ChannelSelector:
    """The selector of a partitioning, for one subtask with that many channels. Raises ProgramError
    if the partitioning is incomplete.

    >>> from flinkpy.graph.partitioning import REBALANCE
    >>> [
    ...     (channel, part.values)
    ...     for channel, part in make_selector(REBALANCE, 2).split(RowBatch([7, 8, 9]))
    ... ]
    [(0, [7, 9]), (1, [8])]
    """
    kind = partitioning.kind
    if kind is PartitioningKind.CUSTOM:
        if partitioning.custom is None:
            raise ProgramError("a custom partitioning needs its function")
        return CustomSelector(channels, partitioning.custom, partitioning.key)
    if kind is PartitioningKind.HASH and (
        partitioning.key is None
        or (partitioning.key.selector is None and partitioning.key.columns is None)
    ):
        raise ProgramError("a hash partitioning needs a key selector or key columns")
    if kind in (PartitioningKind.FORWARD, PartitioningKind.GLOBAL) or (
        channels == 1 and not _reads_all_keys(partitioning)
    ):
        selector: ChannelSelector = SingleChannel(channels)
    elif kind in (PartitioningKind.REBALANCE, PartitioningKind.RESCALE):
        selector = RoundRobin(channels, subtask_index)
    elif kind is PartitioningKind.SHUFFLE:
        selector = Shuffle(channels, subtask_index)
    elif kind is PartitioningKind.BROADCAST:
        selector = Broadcast(channels)
    else:
        assert partitioning.key is not None
        return KeyGroupSelector(
            channels,
            partitioning.key,
            partitioning.max_parallelism or default_max_parallelism(channels),
        )
    selector.name = kind.value
    return selector


def _reads_all_keys(partitioning: Partitioning) -> bool:
    """Whether every record's key is read, although it can go to one channel only: a record whose
    key cannot be had must fail with every parallelism. Columns can always be had."""
    key = partitioning.key
    return partitioning.reads_all_keys and key is not None and key.columns is None


def rows_of(batch: ColumnBatch) -> Iterable[tuple[Any, ...]]:
    """The batch's records as tuples."""
    return (
        zip(*(column.to_pylist() for column in batch.data.columns))
        if batch.data.num_columns
        else (() for _ in range(len(batch)))
    )


def _row_selector(key: KeySpec) -> Callable[[Any], Any]:
    if key.selector is None:
        named = ", ".join(key.columns or ())
        raise ProgramError(
            f"rows arrived where the key is said only by columns ({named}); give the keyed "
            "stream a key selector too"
        )
    return key.selector


def _split_rows_by(batch: RowBatch, channels: list[int], n: int) -> Parts:
    boxes: list[list[Any]] = [[] for _ in range(n)]
    appends = [box.append for box in boxes]
    for channel, value in zip(channels, batch.values):
        appends[channel](value)
    if batch.timestamps is None:
        return [(channel, RowBatch(box)) for channel, box in enumerate(boxes) if box]
    stamps: list[list[int]] = [[] for _ in range(n)]
    for channel, stamp in zip(channels, batch.timestamps):
        stamps[channel].append(stamp)
    return [(channel, RowBatch(box, stamps[channel])) for channel, box in enumerate(boxes) if box]


def _split_columns_by(batch: ColumnBatch, channels: npt.NDArray[np.int64], n: int) -> Parts:
    """One stable sort by channel and one take; the parts are slices of the result."""
    import numpy as np

    counts = np.bincount(channels, minlength=n)
    full = int(counts.argmax())
    if counts[full] == len(batch):
        return [(full, batch)]
    # numpy sorts narrow integers by radix
    narrow = channels.astype(np.uint8 if n <= 256 else np.uint16 if n <= 65536 else np.int64)
    taken = batch.take(np.argsort(narrow, kind="stable"))
    parts: list[tuple[int, Batch]] = []
    begin = 0
    for channel, count in enumerate(counts.tolist()):
        if count:
            parts.append((channel, taken.slice(begin, count)))
            begin += count
    return parts
