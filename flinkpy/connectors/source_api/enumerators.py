"""Enumerators: SplitQueue, which most sources need, hands out one split per request; SplitPool is
its base class for splits that come one by one; SplitShares gives each reader its share of the
splits at the start; SplitDiscovery does so too, and looks for new ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from flinkpy.connectors.source_api.source import (
    BeginReading,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
)

S = TypeVar("S", bound=SourceSplit)


class SplitPool(SplitEnumerator[S]):
    """Holds splits that are ready, and readers that wait while more may come. Subclasses say where
    splits come from."""

    def __init__(self, context: SplitEnumeratorContext[S]) -> None:
        self._context = context
        self._left: deque[S] = deque()
        self._more_to_come = True
        # readers that asked while there was no split, and their hosts
        self._waiting: dict[int, str] = {}

    def _add(self, splits: Iterable[S], *, more_to_come: bool) -> None:
        """Adds splits that have become ready, and serves readers that wait."""
        self._left.extend(splits)
        self._more_to_come = more_to_come
        self._serve()

    def _near(self, host: str) -> S | None:
        """One of the splits left that a reader on that host should get first; None if any will
        do."""
        return None

    def _serve(self) -> None:
        """Gives splits to waiting readers: first to those that have a split near them, then to the
        rest."""
        registered = self._context.registered_readers if self._waiting else {}
        # A reader that has failed asks again itself.
        waiting = {
            subtask: host for subtask, host in self._waiting.items() if subtask in registered
        }
        for subtask in [
            subtask for subtask, host in waiting.items() if self._near(host) is not None
        ] + list(waiting):
            if subtask in self._waiting:
                self.handle_split_request(subtask, self._waiting.pop(subtask))

    def handle_split_request(self, subtask: int, host: str) -> None:
        if self._left:
            split = self._near(host)
            if split is None:
                split = self._left.popleft()
            else:
                self._left.remove(split)
            self._context.assign_splits(subtask, [split])
        elif self._more_to_come:
            self._waiting[subtask] = host
        else:
            self._context.signal_no_more_splits(subtask)

    def add_reader(self, subtask: int) -> None:
        self._waiting.pop(subtask, None)  # a request of an earlier attempt

    def add_splits_back(self, splits: list[S], subtask: int) -> None:
        self._left.extendleft(reversed(splits))
        self._serve()


class SplitQueue(SplitPool[S]):
    """Hands out splits in order, one per request; when none is left, a reader that asks gets the
    end.

    ``discover(parallelism)`` finds the splits and runs once, at the start; after a recovery the
    splits left in the checkpoint are used instead. If discovery is ``slow`` (many files to look
    into), it runs in the background, and readers that ask meanwhile wait."""

    def __init__(
        self,
        context: SplitEnumeratorContext[S],
        discover: Callable[[int], Iterable[S]],
        checkpoint: list[S] | None = None,
        *,
        slow: bool = False,
    ) -> None:
        super().__init__(context)
        self._discover = discover
        self._restored = checkpoint
        self._slow = slow

    def start(self) -> None:
        parallelism = self._context.parallelism
        if self._restored is not None:
            self._add(self._restored, more_to_come=False)
        elif self._slow:
            self._context.call_async(lambda: list(self._discover(parallelism)), self._found)
        else:
            self._add(self._discover(parallelism), more_to_come=False)

    def _found(self, splits: list[S], error: BaseException | None) -> None:
        if error is not None:
            raise error
        self._add(splits, more_to_come=False)

    def snapshot_state(self, checkpoint_id: int) -> Any:
        # None: not found yet; discover again
        return self._restored if self._more_to_come else list(self._left)

    def __repr__(self) -> str:
        return (
            "<SplitQueue: looking for splits>"
            if self._more_to_come
            else f"<SplitQueue: {len(self._left)} splits left>"
        )


@dataclass(frozen=True)
class SharesLeft(Generic[S]):
    """Splits that were not assigned yet at a checkpoint, by the reader that was to get them."""

    parallelism: int
    shares: tuple[tuple[int, tuple[S, ...]], ...]


def _saved(shares: dict[int, list[S]], parallelism: int) -> SharesLeft[S]:
    return SharesLeft(
        parallelism, tuple((subtask, tuple(splits)) for subtask, splits in shares.items())
    )


def _restored(left: Iterable[S] | SharesLeft[S], parallelism: int) -> dict[int, list[S]]:
    """The share of each reader. It stays the same with the same parallelism: watermarks of other
    readers may be in flight, which records of these splits must not come behind. Otherwise, and of
    a savepoint that does not say whose they were, the readers get them in turn."""
    if isinstance(left, SharesLeft):
        if left.parallelism == parallelism:
            return {subtask: list(splits) for subtask, splits in left.shares}
        left = [split for _, splits in left.shares for split in splits]
    shares: dict[int, list[S]] = {}
    for index, split in enumerate(left):
        shares.setdefault(index % parallelism, []).append(split)
    return shares


class SplitShares(SplitEnumerator[S]):
    """Assigns all splits at the start, to the readers in turn. For splits without end, which are
    read concurrently."""

    def __init__(
        self,
        context: SplitEnumeratorContext[S],
        discover: Callable[[int], Iterable[S]],
        checkpoint: list[S] | SharesLeft[S] | None = None,
    ) -> None:
        self._context = context
        self._discover = discover
        self._restored = checkpoint
        self._shares: dict[int, list[S]] = {}  # the shares of readers that have not registered yet

    def start(self) -> None:
        parallelism = self._context.parallelism
        splits = self._discover(parallelism) if self._restored is None else self._restored
        self._shares = _restored(splits, parallelism)

    def add_reader(self, subtask: int) -> None:
        self._context.assign_splits(subtask, self._shares.pop(subtask, []))
        self._context.signal_no_more_splits(subtask)

    def handle_split_request(self, subtask: int, host: str) -> None:
        self._context.signal_no_more_splits(subtask)

    def add_splits_back(self, splits: list[S], subtask: int) -> None:
        self._shares.setdefault(subtask, []).extend(splits)

    def snapshot_state(self, checkpoint_id: int) -> SharesLeft[S]:
        return _saved(self._shares, self._context.parallelism)

    def __repr__(self) -> str:
        return f"<SplitShares: {sum(map(len, self._shares.values()))} splits left>"


@dataclass(frozen=True)
class DiscoveredSplits(Generic[S]):
    """The state of a SplitDiscovery in a checkpoint."""

    # the ids of all splits that were found, in this order; None: it had not looked yet
    seen: tuple[str, ...] | None
    left: tuple[S, ...] | SharesLeft[S]


class SplitDiscovery(SplitEnumerator[S]):
    """Assigns the splits that are there at the start as SplitShares does, and looks for new ones
    every ``interval_s``. For splits without end that become more: partitions, tables, shards. A
    split that is no longer found is read on: its reader says when it ends.

    ``discover(parallelism)`` gives all splits there are, in a thread in the background; those whose
    ``split_id`` was seen before are dropped. What it raises fails the job. Use it with
    ``SideBySideReader(…, awaits_all=True)``."""

    def __init__(
        self,
        context: SplitEnumeratorContext[S],
        discover: Callable[[int], Iterable[S]],
        interval_s: float,
        checkpoint: DiscoveredSplits[S] | None = None,
    ) -> None:
        self._context = context
        self._discover = discover
        self._interval_s = interval_s
        self._seen: dict[str, None] = dict.fromkeys(
            (checkpoint.seen if checkpoint is not None else None) or ()
        )
        self._has_looked = checkpoint is not None and checkpoint.seen is not None
        left = checkpoint.left if checkpoint is not None else ()
        self._shares = _restored(left, context.parallelism)  # of readers not registered yet

    def start(self) -> None:
        parallelism = self._context.parallelism
        self._context.call_async(
            lambda: list(self._discover(parallelism)), self._found, self._interval_s
        )

    def _found(self, splits: list[S], error: BaseException | None) -> None:
        if error is not None:
            raise error
        for split in splits:
            if split.split_id not in self._seen:
                self._shares.setdefault(len(self._seen) % self._context.parallelism, []).append(
                    split
                )
                self._seen[split.split_id] = None
        registered = self._context.registered_readers
        began, self._has_looked = not self._has_looked, True
        for subtask in registered:
            self._assign(subtask, begin=began)

    def _assign(self, subtask: int, *, begin: bool) -> None:
        if share := self._shares.pop(subtask, None):
            self._context.assign_splits(subtask, share)
        if begin:
            self._context.send_event_to_reader(subtask, BeginReading())

    def add_reader(self, subtask: int) -> None:
        if self._has_looked:
            self._assign(subtask, begin=True)

    def handle_split_request(self, subtask: int, host: str) -> None:
        """Readers of splits without end have no need to ask."""

    def add_splits_back(self, splits: list[S], subtask: int) -> None:
        self._shares.setdefault(subtask, []).extend(splits)

    def snapshot_state(self, checkpoint_id: int) -> DiscoveredSplits[S]:
        seen = tuple(self._seen) if self._has_looked else None
        return DiscoveredSplits(seen, _saved(self._shares, self._context.parallelism))

    def __repr__(self) -> str:
        return (
            f"<SplitDiscovery: {len(self._seen)} splits seen, "
            f"{sum(map(len, self._shares.values()))} left>"
        )
