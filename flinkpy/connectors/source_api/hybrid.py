"""Several sources, one after the other: when every reader has read the first source to its end, all
go on with the next.

The enumerator runs the current source's enumerator, and gives it a context in which "no more
splits" is a message to the reader. A reader that has finished says so; when all have, the
enumerator opens the next source and tells them. So no record of a source comes before the last
record of the source before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from flinkpy.connectors.source_api.source import (
    Boundedness,
    InputStatus,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.elements import Batch, Watermark, WatermarkStatus
from flinkpy.core.errors import ProgramError


@dataclass(frozen=True)
class HybridSplit:
    """A split of the source at ``index``."""

    split_id: str
    index: int
    split: Any


@dataclass(frozen=True)
class _Of:
    """A message between the enumerator and a reader of the source at ``index``."""

    index: int
    event: Any


_SWITCH, _NO_MORE, _DONE, _BEHIND = "switch", "no more splits", "done", "behind"


class HybridSource(Source[HybridSplit]):
    """Reads several sources one after the other. Made by
    ``HybridSource.builder(files).add_source(live).build()``. All but the last must be bounded, and
    either all give rows or all give columns; otherwise raises ProgramError.

    >>> from flinkpy.connectors.memory.ranges import NumberSequenceSource
    >>> HybridSource.builder(NumberSequenceSource(1, 3)).add_source(
    ...     NumberSequenceSource(4, 6)
    ... ).build()
    HybridSource(NumberSequenceSource(1..3), then NumberSequenceSource(4..6))
    """

    has_timestamps = True  # if one of its sources has

    def __init__(self, sources: list[Source[Any]]) -> None:
        for source in sources[:-1]:
            if source.boundedness is not Boundedness.BOUNDED:
                raise ProgramError(
                    f"{source!r:.80} never ends, so nothing can come behind it; only the last "
                    "source may be unbounded"
                )
        if len({source.is_columnar for source in sources}) > 1:
            raise ProgramError(
                "a hybrid source reads rows or columns, not one behind the other: read them "
                "as two streams and union these"
            )
        self._sources = sources
        self.has_timestamps = any(source.has_timestamps for source in sources)
        self.can_replay = all(source.can_replay for source in sources)

    @staticmethod
    def builder(first_source: Source[Any]) -> HybridSourceBuilder:
        return HybridSourceBuilder(first_source)

    @property
    def boundedness(self) -> Boundedness:
        return self._sources[-1].boundedness

    @property
    def is_columnar(self) -> bool:
        return self._sources[0].is_columnar

    def create_enumerator(
        self, context: SplitEnumeratorContext[HybridSplit], checkpoint: Any = None
    ) -> SplitEnumerator[HybridSplit]:
        return _HybridEnumerator(self._sources, context, checkpoint)

    def create_reader(self, context: ReaderContext) -> SourceReader[HybridSplit]:
        return _HybridReader(self._sources, context)

    def without_data(self) -> Source[HybridSplit]:
        return HybridSource([source.without_data() for source in self._sources])

    def __repr__(self) -> str:
        return f"HybridSource({', then '.join(map(repr, self._sources))})"


class HybridSourceBuilder:
    """Collects the sources, in order."""

    def __init__(self, first_source: Source[Any]) -> None:
        self._sources: list[Source[Any]] = []
        self.add_source(first_source)

    def add_source(self, source: Source[Any]) -> HybridSourceBuilder:
        """Adds the source to read next. Raises ProgramError if it is not a Source."""
        if not isinstance(source, Source):
            raise ProgramError(f"a hybrid source is made of sources, this is {source!r:.80}")
        self._sources.append(source)
        return self

    def build(self) -> HybridSource:
        """The hybrid source. Raises ProgramError if a source before the last one is unbounded, or
        if some give rows and others columns."""
        return HybridSource(list(self._sources))


# -- in the JobMaster ------------------------------------------------------------------------------


class _ContextOf:
    """What one source's enumerator sees of the job: the readers that are at its source."""

    def __init__(
        self, outer: SplitEnumeratorContext[HybridSplit], index: int, at: dict[int, int]
    ) -> None:
        self._outer = outer
        self._index = index
        self._at = at

    @property
    def parallelism(self) -> int:
        return self._outer.parallelism

    @property
    def registered_readers(self) -> dict[int, str]:
        return {
            subtask: host
            for subtask, host in self._outer.registered_readers.items()
            if self._at.get(subtask) == self._index
        }

    def assign_splits(self, subtask: int, splits: list[Any]) -> None:
        self._outer.assign_splits(
            subtask,
            [
                HybridSplit(f"{self._index}:{split.split_id}", self._index, split)
                for split in splits
            ],
        )

    def signal_no_more_splits(self, subtask: int) -> None:
        self._outer.send_event_to_reader(subtask, _Of(self._index, _NO_MORE))

    def send_event_to_reader(self, subtask: int, event: Any) -> None:
        self._outer.send_event_to_reader(subtask, _Of(self._index, (event,)))

    def call_async(
        self,
        function: Callable[[], Any],
        handler: Callable[[Any, BaseException | None], None],
        period_s: float | None = None,
    ) -> None:
        self._outer.call_async(function, handler, period_s)


class _HybridEnumerator(SplitEnumerator[HybridSplit]):
    """Runs the current source's enumerator, and those of earlier sources, to which splits may come
    back."""

    def __init__(
        self,
        sources: list[Source[Any]],
        context: SplitEnumeratorContext[HybridSplit],
        checkpoint: tuple[int, Any] | None,
    ) -> None:
        self._sources, self._context = sources, context
        self._index: int = 0 if checkpoint is None else checkpoint[0]
        self._restored: Any = None if checkpoint is None else checkpoint[1]
        self._at: dict[int, int] = {}  # subtask -> index of the source its reader is at
        self._done: set[int] = set()  # readers that have finished the current source
        # subtask -> index of the earliest source whose splits have come back from it
        self._back: dict[int, int] = {}
        self._enumerators: dict[int, SplitEnumerator[Any]] = {}

    def start(self) -> None:
        self._open(self._index, self._restored)

    def _open(self, index: int, checkpoint: Any = None) -> None:
        context: Any = _ContextOf(self._context, index, self._at)
        self._enumerators[index] = self._sources[index].create_enumerator(context, checkpoint)
        self._enumerators[index].start()

    def add_reader(self, subtask: int) -> None:
        self._send_to(subtask, self._back.pop(subtask, self._index))

    def _send_to(self, subtask: int, index: int) -> None:
        self._at[subtask] = index
        self._done.discard(subtask)
        self._context.send_event_to_reader(subtask, _Of(index, _SWITCH))
        self._enumerators[index].add_reader(subtask)

    def handle_split_request(self, subtask: int, host: str) -> None:
        self._enumerators[self._at.get(subtask, self._index)].handle_split_request(subtask, host)

    def handle_source_event(self, subtask: int, event: Any) -> None:
        if event.event == _DONE:
            self._reader_done(subtask, event.index)
        elif event.event == _BEHIND:  # it was restored with splits of an earlier source
            self._send_to(subtask, event.index)
        elif event.index in self._enumerators:
            self._enumerators[event.index].handle_source_event(subtask, event.event[0])

    def _reader_done(self, subtask: int, index: int) -> None:
        if self._at.get(subtask) != index:
            return
        if index < self._index:  # it had to read splits of an earlier source again
            self._send_to(subtask, index + 1)
            return
        self._done.add(subtask)
        if index + 1 == len(self._sources):
            self._context.signal_no_more_splits(subtask)
        elif len(self._done) == self._context.parallelism:
            self._index += 1
            self._open(self._index)
            for each in sorted(self._done):
                self._send_to(each, self._index)

    def add_splits_back(self, splits: list[HybridSplit], subtask: int) -> None:
        for index in sorted({split.index for split in splits}):
            if index in self._enumerators:
                self._enumerators[index].add_splits_back(
                    [split.split for split in splits if split.index == index], subtask
                )
                self._back[subtask] = min(index, self._back.get(subtask, index))
        self._at.pop(subtask, None)
        self._done.discard(subtask)

    def snapshot_state(self, checkpoint_id: int) -> tuple[int, Any]:
        return self._index, self._enumerators[self._index].snapshot_state(checkpoint_id)

    def close(self) -> None:
        for enumerator in self._enumerators.values():
            enumerator.close()


# -- in the task -----------------------------------------------------------------------------------


class _HybridReader(SourceReader[HybridSplit]):
    """Runs the current source's reader."""

    def __init__(self, sources: list[Source[Any]], context: ReaderContext) -> None:
        self._sources, self._context = sources, context
        self._index = -1
        self._reader: SourceReader[Any] | None = None
        # restored splits, until the enumerator has named the current source
        self._early: list[HybridSplit] = []
        self._no_more = self._told = False

    def _switch(self, index: int) -> None:
        if self._reader is not None:
            self._reader.close()
        self._index, self._told = index, False
        self._reader = self._sources[index].create_reader(
            replace(
                self._context,
                send_source_event=lambda event: self._context.send_source_event(
                    _Of(index, (event,))
                ),
            )
        )
        self._reader.start()
        early, self._early = self._early, []
        self.add_splits(early)
        self._context.wake_up()

    def poll(self, limit: int) -> Batch | InputStatus | Watermark | WatermarkStatus:
        if self._no_more:
            return InputStatus.END_OF_INPUT
        if self._reader is None or self._told:
            return InputStatus.NOTHING_AVAILABLE
        found = self._reader.poll(limit)
        if found is not InputStatus.END_OF_INPUT:
            return found
        self._told = True
        self._context.send_source_event(_Of(self._index, _DONE))
        return InputStatus.NOTHING_AVAILABLE

    def handle_source_event(self, event: Any) -> None:
        if event.event == _SWITCH:
            earliest = min((split.index for split in self._early), default=event.index)
            if earliest < event.index:
                self._context.send_source_event(_Of(earliest, _BEHIND))
            elif event.index != self._index:
                self._switch(event.index)
        elif self._reader is None or event.index != self._index:
            return
        elif event.event == _NO_MORE:
            self._reader.notify_no_more_splits()
            self._context.wake_up()
        else:
            self._reader.handle_source_event(event.event[0])

    def add_splits(self, splits: list[HybridSplit]) -> None:
        if self._reader is None and splits:
            self._early.extend(splits)
            return
        now = [split.split for split in splits if split.index == self._index]
        self._early.extend(split for split in splits if split.index > self._index)
        if now and self._reader is not None:
            self._told = False
            self._reader.add_splits(now)

    def notify_no_more_splits(self) -> None:
        self._no_more = True

    def snapshot_state(self, checkpoint_id: int) -> list[HybridSplit]:
        current = self._reader.snapshot_state(checkpoint_id) if self._reader is not None else []
        return [
            *(
                HybridSplit(f"{self._index}:{split.split_id}", self._index, split)
                for split in current
            ),
            *self._early,
        ]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        if self._reader is not None:
            self._reader.notify_checkpoint_complete(checkpoint_id)

    def position(self) -> str | None:
        return self._reader.position() if self._reader is not None else None

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
