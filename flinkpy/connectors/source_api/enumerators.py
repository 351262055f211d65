"""The enumerator most sources need: a queue of splits, one handed out per request; what it shares with those whose splits come one by one; and
one that gives each reader its share of the splits at the beginning."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from flinkpy.connectors.source_api.source import SourceSplit, SplitEnumerator, SplitEnumeratorContext

S = TypeVar("S", bound=SourceSplit)


class SplitPool(SplitEnumerator[S]):
    """Splits that are there, and readers that wait while more may come. Where they come from, subclasses know."""

    def __init__(self, context: SplitEnumeratorContext[S]) -> None:
        self._context = context
        self._left: deque[S] = deque()
        self._more_to_come = True
        self._waiting: dict[int, str] = {}  # readers that asked while none was there, and their hosts

    def _add(self, splits: Iterable[S], *, more_to_come: bool) -> None:
        """These have come; those who wait are served."""
        self._left.extend(splits)
        self._more_to_come = more_to_come
        self._serve()

    def _near(self, host: str) -> S | None:
        """One of those left that a reader on that host should rather have; None when it is all the same."""
        return None

    def _serve(self) -> None:
        """Gives those who wait what is there: what lies near first, then the rest."""
        registered = self._context.registered_readers if self._waiting else {}
        waiting = {subtask: host for subtask, host in self._waiting.items() if subtask in registered}  # one that failed asks for itself again
        for subtask in [subtask for subtask, host in waiting.items() if self._near(host) is not None] + list(waiting):
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
        self._waiting.pop(subtask, None)  # an earlier attempt's

    def add_splits_back(self, splits: list[S], subtask: int) -> None:
        self._left.extendleft(reversed(splits))
        self._serve()


class SplitQueue(SplitPool[S]):
    """Hands out splits in their order to whoever asks; when none is left, says so to every reader that asks.

    ``discover(parallelism)`` finds the splits and runs once, at the start; on recovery what a checkpoint had left is taken instead. Where
    finding them takes a while (``slow``: many files to look into) it runs in the background, and readers that ask meanwhile wait.
    """

    def __init__(
        self, context: SplitEnumeratorContext[S], discover: Callable[[int], Iterable[S]], checkpoint: list[S] | None = None, *, slow: bool = False,
    ) -> None:
        super().__init__(context)
        self._discover, self._restored, self._slow = discover, checkpoint, slow

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
        return self._restored if self._more_to_come else list(self._left)  # None: not found yet, look again

    def __repr__(self) -> str:
        return "<SplitQueue: looking for splits>" if self._more_to_come else f"<SplitQueue: {len(self._left)} splits left>"


class SplitShares(SplitEnumerator[S]):
    """Deals all splits out at the start, to the readers in turn: for splits without an end, which are read side by side."""

    def __init__(self, context: SplitEnumeratorContext[S], discover: Callable[[int], Iterable[S]], checkpoint: list[S] | None = None) -> None:
        self._context, self._discover, self._restored = context, discover, checkpoint
        self._shares: dict[int, list[S]] = {}  # of the readers that have not registered

    def start(self) -> None:
        parallelism = self._context.parallelism
        for index, split in enumerate(self._discover(parallelism) if self._restored is None else self._restored):
            self._shares.setdefault(index % parallelism, []).append(split)

    def add_reader(self, subtask: int) -> None:
        self._context.assign_splits(subtask, self._shares.pop(subtask, []))
        self._context.signal_no_more_splits(subtask)

    def handle_split_request(self, subtask: int, host: str) -> None:
        self._context.signal_no_more_splits(subtask)

    def add_splits_back(self, splits: list[S], subtask: int) -> None:
        self._shares.setdefault(subtask, []).extend(splits)

    def snapshot_state(self, checkpoint_id: int) -> list[S]:
        return [split for share in self._shares.values() for split in share]

    def __repr__(self) -> str:
        return f"<SplitShares: {sum(map(len, self._shares.values()))} splits left>"
