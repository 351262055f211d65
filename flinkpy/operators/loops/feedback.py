"""The feedback edge of a loop: an in-process channel from the loop's tail to its head, one for each
subtask.

The graph has no cycle: the head of a loop is a source, its tail is a sink, and the head emits again
what the tail takes. Both run in one slot (their vertices are co-located), so the channel is a queue
in memory. As in Flink it is not bounded: a bounded queue could fill up while the head waits for
room in an output that only the tail, further down, can clear. But the entry takes no further input
while many records are in the channel. The loop can go on without that input, so it cannot deadlock,
and only a loop that by itself makes ever more records fills the memory.

Barriers do not pass through the channel, so a checkpoint would lack its records; programs with
loops and checkpoints are refused.

Termination: when all input has ended, the heads' coordinator finds out whether the loop is empty.
Round ``k`` is a watermark ``BEYOND_TIME + k``, which each head emits after all its records. An
operator's watermark is the minimum over its channels, so a tail sees a round only after everything
emitted before it. If no tail gets a record between two rounds, the loop is empty."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from flinkpy.core.elements import RowBatch
from flinkpy.core.ids import ExecutionAttemptId

ENOUGH_RECORDS = 8192


class RoundPassed(NamedTuple):
    """The tail saw round ``number``; ``records`` is how many records came to it since the round
    before."""

    number: int
    records: int


class InputEnded(NamedTuple):
    """The loop's input has ended in this subtask, and all of it has entered the loop."""


Item: TypeAlias = "RowBatch | RoundPassed | InputEnded"


class FeedbackChannel:
    """The channel from tail (and entry) to head. ``put`` and ``take`` may be called from different
    threads."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._hungry = False
        self._wake_head: Callable[[], None] | None = None
        self._call_entry: Callable[[], None] | None = None
        self._put_records = self._taken_records = 0  # the latter is written by the head only
        self._lock = threading.Lock()
        self._full = False
        self.over = False  # set by the head: what is put from now on is not emitted again

    @property
    def has_head(self) -> bool:
        return self._wake_head is not None

    def listen(self, wake_head: Callable[[], None]) -> None:
        """Connects the head: ``wake_head`` is called, from any thread, when something arrives after
        the head found the channel empty."""
        self._wake_head = wake_head

    def call_when_room(self, call_entry: Callable[[], None]) -> None:
        """Connects the entry: ``call_entry`` is called, from any thread, when there is room after
        ``has_room`` was False."""
        self._call_entry = call_entry

    @property
    def has_room(self) -> bool:
        """Whether the entry may take more input."""
        if self.records < ENOUGH_RECORDS:
            return True
        self._full = True
        return self.records < ENOUGH_RECORDS // 2  # the head may have emptied the channel meanwhile

    @property
    def records(self) -> int:
        """The number of records in the channel."""
        return self._put_records - self._taken_records

    def put(self, item: Item) -> None:
        """Adds an item; never waits."""
        if isinstance(item, RowBatch):
            with self._lock:  # tail and entry may be in two threads
                self._put_records += len(item.values)
        self._items.append(item)
        if self._hungry and self._wake_head is not None:
            self._hungry = False
            self._wake_head()

    def take(self) -> Item | None:
        """The next item. If there is none, returns None, and the head is woken when one arrives."""
        if not self._items:
            self._hungry = True
            if not self._items:  # else an item came before ``_hungry`` was set
                return None
        self._hungry = False
        return self._items.popleft()

    def take_batch(self, first: RowBatch, limit: int) -> RowBatch:
        """The batch just taken, joined with those after it that fit, because loops make small
        batches."""
        items, values, stamps = self._items, first.values, first.timestamps
        while (
            items
            and isinstance(following := items[0], RowBatch)
            and len(values) + len(following.values) <= limit
        ):
            if (following.timestamps is None) != (stamps is None):
                break
            items.popleft()
            values = values + following.values
            stamps = (
                stamps + following.timestamps
                if stamps is not None and following.timestamps is not None
                else None
            )
        self._taken_records += len(values)
        if self._full and self.records < ENOUGH_RECORDS // 2 and self._call_entry is not None:
            self._full = False
            self._call_entry()
        return RowBatch(values, stamps)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<FeedbackChannel: {len(self._items)} items{', over' if self.over else ''}>"


Key: TypeAlias = tuple[Any, ...]
_LOCK = threading.Lock()
_CHANNELS: dict[Key, tuple[FeedbackChannel, int]] = {}  # with the number of users


def channel_key(iteration: str, attempt_id: ExecutionAttemptId) -> Key:
    """The key of a channel: there is one per job, loop, subtask and attempt. The tasks of a loop
    start together, so their attempts are equal."""
    return attempt_id.job_id, iteration, attempt_id.subtask_index, attempt_id.attempt


def attach(key: Key) -> FeedbackChannel:
    """The channel of that key in this process; the first call creates it."""
    with _LOCK:
        channel, users = _CHANNELS.get(key) or (FeedbackChannel(), 0)
        _CHANNELS[key] = channel, users + 1
        return channel


def detach(key: Key) -> None:
    """Call it once for each ``attach``; the last call removes the channel."""
    with _LOCK:
        channel, users = _CHANNELS.pop(key)
        if users > 1:
            _CHANNELS[key] = channel, users - 1


def open_channels() -> int:
    """The number of channels in use in this process."""
    return len(_CHANNELS)
