"""A source that replays batches held in memory, and a sink that counts: the ends of every benchmark
job.

Both write their times (one monotonic clock for all processes of a machine) to a folder: the source
when it has read a tenth, the sink when it ends. The time between is the steady state. The subtasks
of a source begin together, when the last of them has made its batches. With several subtasks the
steady state ends when the first of them has read its share: else one of them would be measured
while it runs alone."""

from __future__ import annotations

import json
import tempfile
import time
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
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
from flinkpy.core.elements import Batch


@dataclass(frozen=True)
class Share:
    """The part of the batches for one subtask."""

    index: int

    @property
    def split_id(self) -> str:
        return str(self.index)


class ShareEnumerator(SplitEnumerator[Share]):
    def __init__(self, context: SplitEnumeratorContext[Share]) -> None:
        self._context = context

    def handle_split_request(self, subtask: int, host: str) -> None:
        """Does nothing: every subtask has its share from the start."""

    def add_reader(self, subtask: int) -> None:
        self._context.assign_splits(subtask, [Share(subtask)])
        self._context.signal_no_more_splits(subtask)

    def add_splits_back(self, splits: list[Share], subtask: int) -> None: ...

    def snapshot_state(self, checkpoint_id: int) -> None: ...


class ReplaySource(Source[Share]):
    """Makes its batches once (``make(subtask, parallelism)``), then replays them ``times``
    times."""

    def __init__(
        self,
        make: Callable[[int, int], list[Batch]],
        times: int,
        folder: str,
        columnar: bool = False,
    ) -> None:
        self._make = make
        self._times = times
        self._folder = folder
        self._columnar = columnar

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @property
    def is_columnar(self) -> bool:
        return self._columnar

    def create_enumerator(
        self, context: SplitEnumeratorContext[Share], checkpoint: Any = None
    ) -> ShareEnumerator:
        return ShareEnumerator(context)

    def create_reader(self, context: ReaderContext) -> ReplayReader:
        return ReplayReader(self._make, self._times, self._folder, context)


class ReplayReader(SourceReader[Share]):
    def __init__(
        self,
        make: Callable[[int, int], list[Batch]],
        times: int,
        folder: str,
        context: ReaderContext,
    ) -> None:
        self._batches = make(context.subtask_index, context.parallelism)
        self._left = len(self._batches) * times
        self._at = 0
        self._tenth = self._left - max(1, self._left // 10)
        self._times = times
        self._folder = folder
        self._context = context
        self._started = self._together = False
        self._polled: list[float] = []  # when each batch was read, if other subtasks read too
        if folder:
            note(folder, f"ready-{context.subtask_index}")

    def add_splits(self, splits: list[Share]) -> None:
        self._started = True
        self._context.wake_up()

    def poll(self, limit: int) -> Batch | InputStatus:
        if not self._started:
            return InputStatus.NOTHING_AVAILABLE
        if not self._all_ready():
            self._context.wake_up_after(0.001)
            return InputStatus.NOTHING_AVAILABLE
        if not self._left:
            return self._ended()
        if self._context.parallelism > 1:
            self._polled.append(time.perf_counter())
        if self._left == self._tenth:
            records = (
                sum(map(len, self._batches))
                * self._times
                * self._tenth
                // (len(self._batches) * self._times)
            )
            note(
                self._folder,
                f"source-{self._context.subtask_index}",
                t10=time.perf_counter(),
                records=records,
            )
        self._left -= 1
        batch = self._batches[self._at]
        self._at = (self._at + 1) % len(self._batches)
        return batch

    def _ended(self) -> InputStatus:
        if self._polled:
            note(
                self._folder,
                f"read-{self._context.subtask_index}",
                polled=self._polled,
                each=sum(map(len, self._batches)) / len(self._batches),
            )
            self._polled = []
        return InputStatus.END_OF_INPUT

    def _all_ready(self) -> bool:
        if not self._together:
            ready = (
                sum(1 for _ in Path(self._folder).glob("ready-*.json"))
                if self._folder
                else self._context.parallelism
            )
            self._together = ready >= self._context.parallelism
        return self._together

    def snapshot_state(self, checkpoint_id: int) -> list[Share]:
        return []


class CountingSink:
    """Counts records, and writes the time of its end."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._count = 0
        self._subtask = 0

    def open(self, context: Any) -> None:
        self._subtask = (
            context.task.subtask_index if hasattr(context, "task") else context.subtask_index
        )
        self._count = 0

    def write_batch(self, batch: Any) -> None:
        self._count += len(batch)

    def flush(self) -> None:
        note(self._folder, f"sink-{self._subtask}", end=time.perf_counter(), count=self._count)

    def close(self) -> None: ...


def note(folder: str, name: str, **values: float | list[float]) -> None:
    if folder:
        (Path(folder) / f"{name}.json").write_text(json.dumps(values))


@dataclass(frozen=True)
class Steady:
    """The steady state of one run."""

    seconds: float
    records: int
    results: int

    @property
    def rate(self) -> float:
        return self.records / self.seconds


def steady_state(run: Callable[[str], None]) -> Steady:
    """Runs a job with a temporary folder, and reads the notes that its source and sink wrote
    there."""
    with tempfile.TemporaryDirectory() as folder:
        run(folder)
        notes = {path.stem: json.loads(path.read_text()) for path in Path(folder).glob("*.json")}
    results = int(
        sum(values["count"] for name, values in notes.items() if name.startswith("sink-"))
    )
    sources = [values for name, values in notes.items() if name.startswith("source-")]
    readers = [values for name, values in notes.items() if name.startswith("read-")]
    if readers:
        return _together(readers, max(values["t10"] for values in sources), results)
    end = max(values["end"] for name, values in notes.items() if name.startswith("sink-"))
    return Steady(
        end - min(values["t10"] for values in sources),
        int(sum(values["records"] for values in sources)),
        results,
    )


def _together(readers: list[dict[str, Any]], begin: float, results: int) -> Steady:
    """All records read between the moment when each reader had read its tenth and the moment when
    the first had read all."""
    end = min(values["polled"][-1] for values in readers)
    read = sum(
        (bisect(values["polled"], end) - bisect(values["polled"], begin)) * values["each"]
        for values in readers
    )
    return Steady(end - begin, int(read), results)
