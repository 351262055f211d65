"""A fast source and a sink that stalls for a minute: memory stays flat, and afterwards nothing is
lost or out of order.

Embedded, the sink passes its records to a client that stops reading (the slot's loop continues); on
Ray the sink blocks, in another process than the source."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, quick
from benchmarks.on_ray import ray_cluster
from benchmarks.probe import ReplayReader, ReplaySource, note
from flinkpy.connectors.source_api.source import InputStatus, ReaderContext
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.datastream import StreamExecutionEnvironment


class CountingReader(ReplayReader):
    """Emits numbers with a payload, as fast as they are taken; writes down its process id."""

    def __init__(self, total: int, folder: str, context: ReaderContext) -> None:
        super().__init__(lambda subtask, parallelism: [RowBatch([0])], 1, folder, context)
        self._at, self._total = 0, total
        note(folder, "source-pid", pid=os.getpid())

    def poll(self, limit: int) -> Batch | InputStatus:
        if not self._started:
            return InputStatus.NOTHING_AVAILABLE
        if self._at >= self._total:
            return InputStatus.END_OF_INPUT
        start, self._at = self._at, min(self._total, self._at + 1000)
        return RowBatch([(number, b"x" * 100) for number in range(start, self._at)])


class CountingSource(ReplaySource):
    def __init__(self, total: int, folder: str) -> None:
        super().__init__(lambda subtask, parallelism: [], 1, folder)
        self._total = total

    def create_reader(self, context: ReaderContext) -> CountingReader:
        return CountingReader(self._total, self._folder, context)


class StallingSink:
    """Takes a fifth of the records, blocks until a file appears, then takes the rest; checks that
    all come in order."""

    def __init__(self, total: int, folder: str) -> None:
        self._total, self._folder = total, folder

    def open(self, context: Any) -> None:
        self._expected, self._stalled = 0, False
        note(self._folder, "sink-pid", pid=os.getpid())

    def write_batch(self, batch: Any) -> None:
        for number, _ in batch.values:
            if number != self._expected:
                raise AssertionError(f"expected {self._expected}, got {number}")
            self._expected += 1
        if not self._stalled and self._expected >= self._total // 5:
            self._stalled = True
            note(self._folder, "stalled", at=self._expected)
            while not (Path(self._folder) / "go-on").exists():
                time.sleep(0.05)

    def flush(self) -> None:
        note(self._folder, "done", count=self._expected)

    def close(self) -> None: ...


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def watched(pids: set[int], seconds: float) -> tuple[float, float]:
    """Returns the resident memory two seconds from now, and its maximum in the ``seconds`` after
    that."""
    time.sleep(2)
    first = sum(map(resident_mb, pids))
    samples, end = [first], time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.5)
        samples.append(sum(map(resident_mb, pids)))
    return first, max(samples)


def report(
    name: str, first: float, largest: float, processes: int, done: int, total: int, seconds: float
) -> Comparison:
    verdict = "reached" if largest <= 1.05 * first and done == total else "NOT REACHED"
    note = (
        f"over {seconds:.0f} s in {processes} process(es), {done:,} of {total:,} records in "
        f"order; target ≤ 1.05: {verdict}"
    )
    result = Comparison(f"stalled sink, {name}", "MB", largest, first, largest / first, None, note)
    print(result, flush=True)
    return result


def embedded(seconds: float, total: int) -> Comparison:
    with tempfile.TemporaryDirectory() as folder:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        expected = 0
        first = largest = 0.0
        with (
            env.from_source(CountingSource(total, folder), None, "numbers")
            .rebalance()
            .map(lambda value: value)
            .execute_and_collect() as records
        ):
            for number, _ in records:
                if number != expected:
                    raise AssertionError(f"expected {expected}, got {number}")
                expected += 1
                if expected == total // 5:
                    first, largest = watched({os.getpid()}, seconds)
    return report("embedded", first, largest, 1, expected, total, seconds)


def two_processes(seconds: float, total: int) -> Comparison:
    with tempfile.TemporaryDirectory() as folder:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        stream = env.from_source(CountingSource(total, folder), None, "numbers").rebalance()
        stream.map(lambda value: value).slot_sharing_group("other").sink_to(
            StallingSink(total, folder)
        ).slot_sharing_group("other")
        job = threading.Thread(target=env.execute, args=("stalled sink",))
        job.start()
        while not (Path(folder) / "stalled.json").exists():
            time.sleep(0.05)
        pids = {
            json.loads((Path(folder) / f"{end}-pid.json").read_text())["pid"]
            for end in ("source", "sink")
        }
        first, largest = watched(pids, seconds)
        (Path(folder) / "go-on").touch()
        job.join()
        done = json.loads((Path(folder) / "done.json").read_text())["count"]
    return report("two processes", first, largest, len(pids), done, total, seconds)


def main() -> list[Comparison]:
    seconds, total = (3, 200_000) if quick() else (60, 5_000_000)
    results = [embedded(seconds, total)]
    with ray_cluster():
        results.append(two_processes(seconds, total))
    return results


if __name__ == "__main__":
    main()
