"""A source that plays a script: a list of values, times, watermarks, idleness and failures, in the
order in which they happen."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from flinkpy.connectors.source_api.enumerators import SplitQueue
from flinkpy.connectors.source_api.source import (
    Boundedness,
    InputStatus,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.elements import Batch, RowBatch, Watermark, WatermarkStatus
from flinkpy.operators.event_time.valid_times import milliseconds

IDLE = WatermarkStatus(True)
ACTIVE = WatermarkStatus(False)

# by the id of the Fail: how often the source failed there in this process
_failed: dict[str, int] = {}


@dataclass(frozen=True)
class At:
    """A value with its event time in milliseconds, or a datetime. Raises TypeError or ValueError
    for what is no time.

    >>> ScriptedSource([At(1000, "a"), At(2000, "b")])  # doctest: +ELLIPSIS
    <...>
    """

    timestamp: int
    value: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "timestamp", milliseconds(self.timestamp, "At()"))


@dataclass(frozen=True)
class Fail:
    """Makes the source fail here, the first ``times`` times; after that the source reads on.
    Counted in one process: for embedded jobs.

    >>> Fail("the disk is full").times
    1
    """

    message: str = "the script says so"
    times: int = 1
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


class ScriptedFailure(Exception):
    """The exception that a :class:`Fail` raises."""


@dataclass(frozen=True)
class ScriptSplit:
    """One script and the position reached in it."""

    number: int
    position: int = 0

    @property
    def split_id(self) -> str:
        return f"script-{self.number}"


class ScriptedSource(Source[ScriptSplit]):
    """Plays its items in order: plain values, :class:`At` for a value with a time,
    ``Watermark(ms)``, ``IDLE`` and ``ACTIVE``, :class:`Fail`.

    With ``batch=1`` each value is a batch of its own; by default all values up to the next other
    item form one batch. With ``bounded=False`` the source stays, silent, when its script is over.
    Checkpoints include its position: after a restart it continues from the last one.

    >>> source = ScriptedSource(
    ...     [At(10, "a"), Watermark(10), IDLE, At(20, "b"), Fail(times=1), At(30, "c")]
    ... )
    >>> stream = env.from_source(source)  # doctest: +SKIP
    """

    def __init__(
        self, items: Iterable[Any], *, bounded: bool = True, batch: int | None = None
    ) -> None:
        self._scripts = [list(items)]
        self._bounded, self._batch = bounded, batch

    @staticmethod
    def several(
        *scripts: Iterable[Any], bounded: bool = True, batch: int | None = None
    ) -> ScriptedSource:
        """Returns a source with one split per script: if the parallelism is the number of scripts,
        each subtask plays one."""
        made = ScriptedSource((), bounded=bounded, batch=batch)
        made._scripts = [list(script) for script in scripts]
        return made

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self._bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(
        self, context: SplitEnumeratorContext[ScriptSplit], checkpoint: Any = None
    ) -> SplitEnumerator[ScriptSplit]:
        return SplitQueue(
            context,
            lambda parallelism: [ScriptSplit(number) for number in range(len(self._scripts))],
            checkpoint,
        )

    def create_reader(self, context: ReaderContext) -> SourceReader[ScriptSplit]:
        return ScriptReader(context, self._scripts, self._bounded, self._batch)


class ScriptReader(SourceReader[ScriptSplit]):
    """Plays one script after the other."""

    def __init__(
        self, context: ReaderContext, scripts: list[list[Any]], bounded: bool, batch: int | None
    ) -> None:
        self._context = context
        self._scripts = scripts
        self._bounded = bounded
        self._batch = batch
        self._splits: list[ScriptSplit] = []
        self._asked = self._no_more = False

    def poll(self, limit: int) -> Batch | InputStatus | Watermark | WatermarkStatus:
        while self._splits:
            split = self._splits[0]
            script = self._scripts[split.number]
            if split.position < len(script):
                return self._play(split, script, min(limit, self._batch or limit))
            del self._splits[0]
        if self._no_more:
            return InputStatus.END_OF_INPUT if self._bounded else InputStatus.NOTHING_AVAILABLE
        if not self._asked:
            self._asked = True
            self._context.request_split()
        return InputStatus.NOTHING_AVAILABLE

    def _play(
        self, split: ScriptSplit, script: list[Any], limit: int
    ) -> Batch | Watermark | WatermarkStatus:
        item = script[split.position]
        if isinstance(item, Fail) and _failed.get(item.id, 0) < item.times:
            _failed[item.id] = _failed.get(item.id, 0) + 1
            raise ScriptedFailure(item.message)
        if not _is_value(item):
            self._splits[0] = ScriptSplit(split.number, split.position + 1)
            return item if isinstance(item, (Watermark, WatermarkStatus)) else RowBatch([])
        end, stamped = split.position, isinstance(item, At)
        while (
            end < len(script)
            and end - split.position < limit
            and _is_value(script[end])
            and isinstance(script[end], At) is stamped
        ):
            end += 1
        taken = script[split.position : end]
        self._splits[0] = ScriptSplit(split.number, end)
        return (
            RowBatch([at.value for at in taken], [at.timestamp for at in taken])
            if stamped
            else RowBatch(taken)
        )

    def add_splits(self, splits: list[ScriptSplit]) -> None:
        self._asked = False
        self._splits.extend(splits)

    def notify_no_more_splits(self) -> None:
        self._no_more = True

    def snapshot_state(self, checkpoint_id: int) -> list[ScriptSplit]:
        return list(self._splits)

    def position(self) -> str | None:
        return (
            f"{self._splits[0].split_id} at item {self._splits[0].position}"
            if self._splits
            else None
        )


def _is_value(item: object) -> bool:
    return not isinstance(item, (Fail, Watermark, WatermarkStatus))
