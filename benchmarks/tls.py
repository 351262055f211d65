"""Records between two processes over TLS, against the same without.

By TCP, as between hosts. The network alone does nothing with the records: for rows it pickles, for
columns it does little more than to copy them, so these show what encryption costs at the most. Then
the other side sums the columns by key, as the simplest of jobs does."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import Comparison, quick
from benchmarks.network_throughput import CONFIG, run_ours
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.options.tls.tls_files import TlsFiles
from tests.web.certificates import Authority

TARGET = 0.6
OTHER_HOST = "127.0.0.2"  # so that both meet at a TCP socket


@contextmanager
def certificates() -> Iterator[TlsFiles]:
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder), "authority")
        worker = authority.sign("worker")
        yield TlsFiles(
            "security.ssl.internal",
            str(worker.certificate),
            str(worker.key),
            truststore=str(authority.certificate),
        )


Use = Callable[[Any], object]


def sum_by_key(batch: ColumnBatch) -> object:
    return pa.Table.from_batches([batch.data]).group_by("a").aggregate([("b", "sum")])


def rate(
    batches: list[Batch], times: int, config: NetworkConfig, use: Use | None
) -> tuple[float, float]:
    """Records per second, and per second of both processors' time."""
    run = run_ours(batches, times, config, replace(config, bind_host=OTHER_HOST), use)
    count = sum(map(len, batches)) * times
    return count / run.seconds, count / run.processor


def compared(
    name: str, batches: list[Batch], times: int, files: TlsFiles, use: Use | None = None
) -> Comparison:
    rounds = 1 if quick() else 7
    encrypted = replace(CONFIG, tls=files)
    pairs = [
        (rate(batches, times, encrypted, use), rate(batches, times, CONFIG, use))
        for _ in range(rounds)
    ]
    tls, clear = (statistics.median(run[0] for run in side) for side in zip(*pairs))
    processor = statistics.median(over_tls[1] / plain[1] for over_tls, plain in pairs)
    result = Comparison(
        name,
        "records/s",
        tls,
        clear,
        statistics.median(over_tls[0] / plain[0] for over_tls, plain in pairs),
        TARGET,
        f"ratio of processor time {processor:.2f}",
    )
    print(result, flush=True)
    return result


def main() -> list[Comparison]:
    times = 2 if quick() else 40
    rows: list[Batch] = [
        RowBatch([(f"word{i % 997}", i) for i in range(j * 1000, j * 1000 + 1000)])
        for j in range(50)
    ]
    columns: list[Batch] = [
        ColumnBatch(
            pa.record_batch(
                {name: np.arange(65536) * (j + 1) % 5_000 for j, name in enumerate("abc")}
            )
        )
        for _ in range(32)
    ]
    with certificates() as files:
        return [
            compared("network alone, rows, 1,000 tuples a batch", rows, times, files),
            compared("network alone, columns, 3 by 65,536", columns, times, files),
            compared("the columns summed by key", columns, times // 2, files, sum_by_key),
        ]
