"""The end of a stream that goes into Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flinkpy.connectors.ray.block_sink import RayBlockSink
from flinkpy.connectors.ray.object_store import Store, make_keeper, stored
from flinkpy.core.errors import ProgramError
from flinkpy.spark.data_frames import dataframe_of, schema_of, stream_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# an executor, and the worker that makes a block, have it in memory several times
BLOCK_BYTES = 16 << 20


class SparkSink(RayBlockSink):
    """Takes a stream of columns; ``dataframe`` returns the records that are committed. The blocks
    stay as long as this program runs."""

    def __init__(self, keeper: str, block_bytes: int = BLOCK_BYTES) -> None:
        super().__init__(keeper, block_bytes)

    def block_of(self, table: pa.Table) -> Any:
        return stream_bytes(table)

    def dataframe(self, spark: SparkSession, schema: Any = None) -> DataFrame:
        """Returns the records as a DataFrame: all of a job that has ended well; of a job with
        checkpoints also those that its completed checkpoints have so far, each once. ``schema`` (a
        ``pyarrow.Schema``) is needed only if there are no records. Raises ProgramError if nothing
        is committed yet."""
        store = Store(self.keeper)
        blocks = store.committed_blocks()
        if not blocks and not store.is_complete():
            raise ProgramError(
                "no job has ended that wrote to this spark_sink(): run it first, "
                "env.execute(), then ask for the frame; "
                "a job with checkpoints shows what each has when it is complete"
            )
        if blocks:
            schema = schema_of(stored(blocks[0]))
        if schema is None:
            raise ProgramError(
                "the stream gave no record, and so no columns: say them, dataframe(spark, "
                "schema=pyarrow.schema([...]))"
            )
        return dataframe_of(spark, blocks, schema)


def spark_sink() -> SparkSink:
    """A new sink, for one job.

    >>> sink = spark_sink()  # doctest: +SKIP
    >>> stream.sink_to(sink)  # doctest: +SKIP
    >>> env.execute()  # doctest: +SKIP
    >>> frame = sink.dataframe(spark)  # doctest: +SKIP
    """
    return SparkSink(make_keeper())
