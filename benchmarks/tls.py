"""Records between two processes over TLS, against the same without.

By TCP, as between hosts. First the network alone, which does nothing with the records: rows, and
columns, for which it does little more than to copy them. Then a job that counts words, or sums
columns by key, with every record passing to the other process."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

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


def rate(batches: list[Batch], times: int, config: NetworkConfig) -> tuple[float, float]:
    """Records per second, and per second of both processors' time."""
    run = run_ours(batches, times, config, replace(config, bind_host=OTHER_HOST))
    count = sum(map(len, batches)) * times
    return count / run.seconds, count / run.processor


def compared(name: str, batches: list[Batch], times: int, files: TlsFiles) -> Comparison:
    rounds = 1 if quick() else 7
    pairs = [
        (rate(batches, times, replace(CONFIG, tls=files)), rate(batches, times, CONFIG))
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
            pa.record_batch({name: np.arange(65536) * (j + 1) for j, name in enumerate("abc")})
        )
        for _ in range(32)
    ]
    with certificates() as files:
        return [
            compared("network alone, rows, 1,000 tuples a batch", rows, times, files),
            compared("network alone, columns, 3 by 65,536", columns, times, files),
        ]
