"""f (running sum of prices per auction, every update emitted) and wc on columns: keyed running
aggregates against bare loops.

Rows: a reduce lambda, and the built-in ``sum``. Columns: the same sums by kernels, against numpy in
a plain loop; and the word count with a column of lines, split by Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.columns import BATCH
from benchmarks.columns import bare as bare_columns
from benchmarks.data import lines, once
from benchmarks.harness import Comparison, compare, quick
from benchmarks.rows import bare, engine
from benchmarks.windows import AUCTIONS, column_batches, row_batches
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.datastream import DataStream


def f_reduce(stream: DataStream) -> DataStream:
    return (
        stream.map(lambda bid: (bid[0], bid[2]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


def f_sum(stream: DataStream) -> DataStream:
    return stream.map(lambda bid: (bid[0], bid[2])).key_by(lambda pair: pair[0]).sum(1)


def f_columns(stream: DataStream) -> DataStream:
    return stream.select("auction", "price").key_by("auction").sum("price")


def split_lines(batch: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.split_pattern(batch.column(0), " ").flatten()
    return pa.record_batch({"word": words, "n": pa.repeat(1, len(words))})


def wc_columns(stream: DataStream) -> DataStream:
    return stream.map_batches(split_lines).key_by("word").sum("n")


def bare_sums() -> Callable[[list[Any]], int]:
    sums: dict[int, tuple[int, int]] = {}

    def loop(batch: list[Any]) -> int:
        out = []
        for bid in batch:
            auction = bid[0]
            before = sums.get(auction)
            pair = (auction, bid[2]) if before is None else (auction, before[1] + bid[2])
            sums[auction] = pair
            out.append(pair)
        return len(out)

    return loop


def bare_column_sums() -> Callable[[Any], Any]:
    import numpy as np

    sums = np.zeros(AUCTIONS + 1000, np.int64)

    def kernel(batch: Any) -> Any:
        auction, price = batch.column(0).to_numpy(), batch.column(2).to_numpy()
        order = np.argsort(auction, kind="stable")
        keys, ordered = auction[order], np.cumsum(price[order])
        first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
        before = np.where(first > 0, ordered[first - 1], 0)
        running = ordered + np.repeat(sums[keys[first]] - before, np.diff(np.r_[first, len(keys)]))
        sums[keys[first]] = running[np.r_[first[1:], len(keys)] - 1]
        result = np.empty_like(running)
        result[order] = running
        return result

    return kernel


def bare_column_words() -> Callable[[Any], Any]:
    import numpy as np

    numbers: dict[str, int] = {}
    counts = np.zeros(20_000, np.int64)

    def kernel(batch: Any) -> Any:
        encoded = split_lines(batch).column(0).dictionary_encode()
        ids = np.array(
            [numbers.setdefault(word, len(numbers)) for word in encoded.dictionary.to_pylist()]
        )[encoded.indices.to_numpy()]
        order = np.argsort(ids, kind="stable")
        keys = ids[order]
        first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
        lengths = np.diff(np.r_[first, len(keys)])
        result = np.empty_like(ids)
        result[order] = np.arange(len(keys)) + 1 + np.repeat(counts[keys[first]] - first, lengths)
        counts[keys[first]] += lengths
        return result

    return kernel


def line_columns(count: int) -> list[Batch]:
    import pyarrow as pa

    table = pa.table({"line": lines(count)})
    return [ColumnBatch(batch) for batch in table.combine_chunks().to_batches(max_chunksize=BATCH)]


def main() -> list[Comparison]:
    count, times = (50_000, 2) if quick() else (500_000, 8)
    line_count = 2_000 if quick() else 100_000

    def make_rows(subtask: int, parallelism: int) -> list[Batch]:
        return once(f"keyed rows {count}", lambda: row_batches(count))

    def make_columns(subtask: int, parallelism: int) -> list[Batch]:
        return once(f"keyed columns {count} {BATCH}", lambda: column_batches(count))

    def make_lines(subtask: int, parallelism: int) -> list[Batch]:
        return once(f"keyed lines {line_count}", lambda: line_columns(line_count))

    rows, columns, texts = make_rows(0, 1), make_columns(0, 1), make_lines(0, 1)
    return [
        compare(
            "f reduce, rows",
            engine(make_rows, times, f_reduce),
            bare(rows, times, bare_sums()),
            note="3 x Bytewax",
        ),
        compare(
            "f sum, rows",
            engine(make_rows, times, f_sum),
            bare(rows, times, bare_sums()),
            note="6 x Bytewax",
        ),
        compare(
            "f sum, columns",
            engine(make_columns, 10 * times, f_columns, columnar=True),
            bare_columns(columns, 10 * times, bare_column_sums()),
            note="1.5 x Flink Java: 9.5 M/s",
        ),
        compare(
            "wc, columns",
            engine(make_lines, times, wc_columns, columnar=True),
            bare_columns(texts, times, bare_column_words()),
            unit="lines/s",
            note="1 x Flink Java: 538 k lines/s",
        ),
    ]


if __name__ == "__main__":
    main()
