"""Whole results as a table, a frame or a Ray Dataset; Ray Datasets as streams. Bounded streams of columns only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.core.errors import ProgramError
from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.results.first_records import alone

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from flinkpy.datastream.data_stream import DataStream


class TableResults:
    """What DataStream inherits. Each call runs a job of what leads to this stream and nothing else, as ``take`` does, and waits for its end: sinks
    defined beside it wait for ``execute``."""

    def to_arrow(self, job_name: str | None = None) -> pa.Table:
        """All records as a ``pyarrow.Table``, in this process's memory.

        >>> env.from_pandas(frame).filter(col("delay") > 60).to_arrow()  # doctest: +SKIP
        """
        import pyarrow as pa

        from flinkpy.datastream.results.collecting import execute_and_collect

        with alone(self):
            stream: Any = self._as_columns("to_arrow()")  # type: ignore[attr-defined]
            results = execute_and_collect(stream, job_name, quiet=False)
        with results:
            batches = results.gathered()
        if batches:
            return _one_table(batches)
        return stream._schema.empty_table() if stream._schema is not None else pa.table({})

    def to_pandas(self, job_name: str | None = None) -> pd.DataFrame:
        """All records as a pandas frame, in this process's memory."""
        return self.to_arrow(job_name).to_pandas()

    def to_ray_dataset(self, job_name: str | None = None) -> Any:
        """All records as a Ray Dataset: its blocks are written to Ray's object store by the sinks, in parallel, and never pass through this
        program. They stay for as long as this program runs.

        >>> env.from_parquet("flights.parquet").to_ray_dataset().groupby("carrier").count()  # doctest: +SKIP
        """
        from flinkpy.connectors.ray.block_sink import RayBlockSink
        from flinkpy.connectors.ray.object_store import dataset_of

        with alone(self):
            stream: Any = self._as_columns("to_ray_dataset()")  # type: ignore[attr-defined]
            _, blocks = write_blocks(stream, job_name, RayBlockSink)
        return dataset_of(blocks, stream._schema)

    def to_spark(self, spark: SparkSession, job_name: str | None = None) -> DataFrame:
        """All records as a Spark DataFrame, without passing through this program: the sinks write blocks into Ray's object store, and Spark's
        executors read them there. They stay for as long as this program runs.

        >>> env.from_spark(flights).filter(col("dep_delay") > 60).to_spark(spark).groupBy("carrier").count()  # doctest: +SKIP
        """
        spark = getattr(spark, "_spark_session", lambda: spark)()  # `flinkpy shell` starts it when it is used
        _require_spark(spark, "SparkSession", "to_spark()")
        from flinkpy.spark.frames import require_on_ray, spark_schema
        from flinkpy.spark.sink import SparkSink

        with located():
            require_on_ray(spark, "to_spark()")
        with alone(self):
            stream: Any = self._as_columns("to_spark()")  # type: ignore[attr-defined]
            if stream._schema is not None:
                with located():
                    spark_schema(stream._schema)
            sink, _ = write_blocks(stream, job_name, SparkSink)
        return sink.dataframe(spark, stream._schema)


def _one_table(batches: list[Any]) -> Any:
    """The batches as a table. A function of batches may have given whole numbers first and fractions later: the column is one of fractions then."""
    import pyarrow as pa

    if all(batch.schema.equals(batches[0].schema) for batch in batches):
        return pa.Table.from_batches(batches)
    try:
        schema = pa.unify_schemas([batch.schema for batch in batches], promote_options="permissive")
        return pa.concat_tables([pa.table([_exactly(batch, field) for field in schema], schema=schema) for batch in batches])
    except (pa.ArrowException, ValueError) as error:
        raise ProgramError(f"to_arrow(): batches of the stream have columns of different types: {error}; bring them into line with "
                           "select(...)") from error


def _exactly(batch: Any, field: Any) -> Any:
    """The batch's column, or nulls, in the field's type; ValueError for a number that is none of it."""
    import pyarrow as pa

    from flinkpy.columns.exact_arrays import array_of

    at = batch.schema.get_field_index(field.name)
    if at < 0:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(at)
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid:  # Arrow refuses whole numbers above 2**53 as fractions, also those that are exact
        return array_of(column.to_pylist(), field.type, field.name)


def write_blocks(stream: Any, job_name: str | None, kind: Callable[[str], Any]) -> tuple[Any, list[Any]]:
    """Runs the program with a sink that writes the stream's columns as blocks; the sink, and references of the blocks in order."""
    from flinkpy.cluster.ray.ray_connection import connect_ray

    env = stream.get_execution_environment()
    connect_ray(env._values, start=True)
    from flinkpy.connectors.ray.object_store import Store, make_keeper

    sink = kind(make_keeper())
    stream.sink_to(sink).name("Sink: Ray blocks")
    env.execute(job_name)
    return sink, Store(sink.keeper).committed()


def _require_spark(value: Any, wanted: str, call: str) -> None:
    if not type(value).__module__.startswith("pyspark.sql") or type(value).__name__ != wanted:
        raise refuse(f"{call} takes a Spark {wanted}, this is {value!r:.80}; flinkpy.spark.spark_session() makes a session")


class RaySources:
    """What the environment inherits."""

    def from_ray_dataset(self, dataset: Any, timestamp_column: str | None = None, watermark_strategy: WatermarkStrategy | None = None) -> DataStream:
        """The rows of a Ray Dataset as columns; its blocks are read where they lie. The dataset is computed now, if it was not yet.

        ``timestamp_column`` says which column is the event time. A dataset is in no order, so without a strategy time goes by only at its end.

        >>> env.from_ray_dataset(ray.data.read_parquet("flights"), timestamp_column="time_hour")  # doctest: +SKIP
        """
        from flinkpy.connectors.ray.object_store import dataset_blocks

        if not hasattr(dataset, "iter_internal_ref_bundles"):
            raise refuse(f"from_ray_dataset() takes a ray.data.Dataset, this is a {type(dataset).__name__}")
        return self.from_blocks(dataset_blocks(dataset), _arrow_schema(dataset), "Ray Dataset Source", timestamp_column, watermark_strategy)

    def from_spark(self, df: DataFrame, timestamp_column: str | None = None, watermark_strategy: WatermarkStrategy | None = None) -> DataStream:
        """The rows of a Spark DataFrame as columns. Spark begins to compute it now, once. Each partition becomes a block in Ray's object store as
        soon as Spark has it, and a stream's reader reads it where it lies, while Spark computes others. Where Spark cannot compute it, the job fails
        with Spark's reason. The session must be one of ``flinkpy.spark.spark_session()``; ``stop_spark()`` waits until all blocks are in the store.

        ``timestamp_column`` says which column is the event time. Rows are in no order, so without a strategy time goes by only at the end.

        >>> env.from_spark(spark.read.parquet("flights.parquet"), timestamp_column="time_hour")  # doctest: +SKIP
        """
        _require_spark(df, "DataFrame", "from_spark()")
        from flinkpy.spark.frames import hand_over

        strategy = _with_timestamps(watermark_strategy, timestamp_column)
        with located():
            keeper, count, schema, release = hand_over(df)
            return self._from_keeper(keeper, [None] * count, schema, "Spark Source", strategy, release)

    def from_blocks(self, refs: list[Any], schema: Any, name: str, timestamp_column: str | None = None,
                    watermark_strategy: WatermarkStrategy | None = None) -> DataStream:
        """Blocks in Ray's object store, given by their references: ``pyarrow.Table`` of one schema each."""
        from flinkpy.connectors.ray.block_keeper import hosts_of
        from flinkpy.connectors.ray.object_store import make_keeper

        strategy = _with_timestamps(watermark_strategy, timestamp_column)
        with located():
            return self._from_keeper(make_keeper(refs), hosts_of(refs), schema, name, strategy)

    def _from_keeper(self, keeper: str, hosts: Sequence[tuple[str, ...] | None], schema: Any, name: str, strategy: WatermarkStrategy | None,
                     release: Callable[[], None] | None = None) -> DataStream:
        from flinkpy.connectors.ray.block_source import RayBlockSource
        from flinkpy.connectors.ray.object_store import forget_with

        source = RayBlockSource(keeper, schema, hosts)
        forget_with(source, keeper, release)
        return self.from_source(source, strategy, name)  # type: ignore[attr-defined,no-any-return]


def _with_timestamps(strategy: WatermarkStrategy | None, column: str | None) -> WatermarkStrategy | None:
    if column is None:
        return strategy
    from flinkpy.columns.expressions import col

    return (strategy or WatermarkStrategy.no_watermarks()).with_timestamp_assigner(col(column))


def _arrow_schema(dataset: Any) -> Any:
    """The dataset's columns as Arrow sees them; blocks of pandas frames are looked at."""
    import pyarrow as pa

    schema = dataset.schema()
    base = getattr(schema, "base_schema", schema)
    if isinstance(base, pa.Schema):
        return base
    if schema is None:
        raise refuse("the Ray Dataset is empty and has no columns")
    return pa.Schema.from_pandas(dataset.limit(1).to_pandas(), preserve_index=False)
