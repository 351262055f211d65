"""Rows in portions that fit into memory, each with all rows of its keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from flinkpy.operators.spilling.key_partitions import KeyPartitions


def portions(rows: KeyPartitions) -> Iterator[Iterable[pa.RecordBatch]]:
    """The rows, when all have come: first those that are in memory. A portion is larger than fits
    only if its rows have few keys. Read each before you ask for the next."""
    resident = rows.seal()
    if resident:
        yield resident
    del resident
    for part in rows.spilled.values():
        if rows.fits(part) or not rows.splits_further:
            yield part
            continue
        deeper = rows.deeper()
        for data in part:
            deeper.add(data)
        yield from portions(deeper)
    rows.drop()
