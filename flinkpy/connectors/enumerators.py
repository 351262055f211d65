"""The enumerator most sources need: a queue of splits, one handed out per request."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from flinkpy.connectors.source import SourceSplit, SplitEnumerator, SplitEnumeratorContext

S = TypeVar("S", bound=SourceSplit)


class SplitQueue(SplitEnumerator[S]):
    """Hands out splits in their order to whoever asks; when none is left, says so to every reader that asks.

    ``discover(parallelism)`` finds the splits and runs once, at the start; on recovery what a checkpoint had left is taken instead. Where
    finding them takes a while (``slow``: many files to look into) it runs in the background, and readers that ask meanwhile wait.
    """

    def __init__(
        self, context: SplitEnumeratorContext[S], discover: Callable[[int], Iterable[S]], checkpoint: list[S] | None = None, *, slow: bool = False,
    ) -> None:
        self._context, self._discover, self._restored, self._slow = context, discover, checkpoint, slow
        self._left: deque[S] = deque()
        self._known = False
        self._waiting: dict[int, str] = {}  # readers that asked before the splits were known, and their hosts

    def start(self) -> None:
        parallelism = self._context.parallelism
        if self._restored is not None:
            self._found(self._restored)
        elif self._slow:
            self._context.call_async(lambda: list(self._discover(parallelism)), self._handle_found)
        else:
            self._found(self._discover(parallelism))

    def _handle_found(self, splits: list[S], error: BaseException | None) -> None:
        if error is not None:
            raise error
        self._found(splits)

    def _found(self, splits: Iterable[S]) -> None:
        self._left.extend(splits)
        self._known = True
        waiting, self._waiting = self._waiting, {}
        registered = self._context.registered_readers if waiting else {}
        for subtask, host in waiting.items():
            if subtask in registered:  # it may have failed meanwhile; its next attempt asks for itself
                self.handle_split_request(subtask, host)

    def handle_split_request(self, subtask: int, host: str) -> None:
        if not self._known:
            self._waiting[subtask] = host
        elif self._left:
            self._context.assign_splits(subtask, [self._left.popleft()])
        else:
            self._context.signal_no_more_splits(subtask)

    def add_splits_back(self, splits: list[S], subtask: int) -> None:
        self._left.extendleft(reversed(splits))

    def snapshot_state(self, checkpoint_id: int) -> Any:
        return list(self._left) if self._known else self._restored  # None: not found yet, look again

    def __repr__(self) -> str:
        return f"<SplitQueue: {len(self._left)} splits left>" if self._known else "<SplitQueue: looking for splits>"
