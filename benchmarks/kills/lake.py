"""Kafka to Parquet on S3, as one more part of the job that is disturbed. The broker and the S3
server are left alone."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flinkpy.common import Row, Types
from flinkpy.datastream import DataStream
from flinkpy.datastream.connectors.file_system import FileSink

if TYPE_CHECKING:
    from tests.s3.server import Bucket

FOLDER = "numbers"
OUTPUT = "numbers on S3"
NUMBER = Types.ROW_NAMED(["number", "half"], [Types.LONG(), Types.DOUBLE()])


@dataclass(frozen=True)
class Lake:
    """A folder in a bucket. Its URL says who writes: the workers' environment need not."""

    bucket: Bucket

    def add_to(self, numbers: DataStream) -> None:
        rows = numbers.map(lambda number: Row(number=number, half=number / 2), output_type=NUMBER)
        rows.sink_to(FileSink(self.bucket.with_keys(FOLDER), "parquet")).uid("numbers on S3")

    def written(self) -> Counter[str]:
        """What readers see."""
        import pyarrow.parquet as pq

        parts = [
            pq.read_table(io.BytesIO(content))
            for name, content in self.bucket.objects(FOLDER).items()
            if not _is_hidden(name)
        ]
        return Counter(
            f"{row['number']} {row['half']}" for part in parts for row in part.to_pylist()
        )

    def unfinished(self) -> list[str]:
        """Parts that nobody will commit any more."""
        return [name for name in self.bucket.objects(FOLDER) if _is_hidden(name)]


def _is_hidden(name: str) -> bool:
    return name.rpartition("/")[2].startswith(".")
