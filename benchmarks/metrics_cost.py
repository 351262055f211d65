"""What metrics cost, embedded, by processor time: q1 and f with all metrics read once a second for
Prometheus, against the same job without.

That is ten times as often as the default, which so costs a tenth of the difference: the target is 1
% of it, or 0.9 here."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks.data import bids
from benchmarks.harness import Comparison, in_turn, medians, quick
from benchmarks.keyed import f_sum
from benchmarks.probe import ReplaySource
from benchmarks.rows import in_batches, to_euro
from benchmarks.windows import row_batches
from flinkpy.cluster.embedded import stop_embedded
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.core.elements import Batch
from flinkpy.datastream import DataStream, StreamExecutionEnvironment

EVERY_S = 1.0
PORT = 9467


def main() -> list[Comparison]:
    count, times, rounds = (5_000, 2, 1) if quick() else (200_000, 150, 5)
    rows, sums = in_batches(bids(count)), row_batches(count)
    return [
        _compared("q1 map, rows", rows, times, lambda stream: stream.map(to_euro), rounds),
        _compared("f sum, rows", sums, times // 2, f_sum, rounds),
    ]


def _compared(
    name: str,
    batches: list[Batch],
    times: int,
    job: Callable[[DataStream], DataStream],
    rounds: int,
) -> Comparison:
    """Records per second of processor time, of all threads."""

    def run(options: dict[str, object]) -> float:
        return replayed(name, batches, times, job, options)

    def measured() -> float:
        with _scraped():
            return run(
                {
                    "metrics.reporters": "prom",
                    "metrics.reporter.prom.port": PORT,
                    "metrics.fetcher.update-interval": "0",
                }
            )

    return medians(
        f"{name}, metrics read each second",
        in_turn((measured, lambda: run({})), rounds),
        "records/s",
        0.9,
    )


def replayed(
    name: str,
    batches: list[Batch],
    times: int,
    job: Callable[[DataStream], DataStream],
    options: dict[str, object],
) -> float:
    """Records per second of processor time, of all threads, of a job in a cluster of its own."""
    stop_embedded()
    env = StreamExecutionEnvironment.get_execution_environment(
        {"client.progress": False, **options}
    )
    env.set_parallelism(1)
    source = ReplaySource(lambda subtask, parallelism: batches, times, "")
    job(env.from_source(source, None, "source")).sink_to(DiscardingSink())
    began = time.process_time()
    env.execute(name)
    return sum(map(len, batches)) * times / (time.process_time() - began)


@contextmanager
def _scraped() -> Iterator[None]:
    """Something reads all metrics every second, in this process: that counts too."""
    over = threading.Event()

    def scrape() -> None:
        while not over.wait(EVERY_S):
            try:
                with urllib.request.urlopen(
                    f"http://localhost:{PORT}/metrics", timeout=5
                ) as response:
                    response.read()
            except OSError:  # not there yet, or not any more
                continue

    thread = threading.Thread(target=scrape, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


if __name__ == "__main__":
    main()
