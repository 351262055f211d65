"""Ray Datasets, Spark DataFrames and blocks in Ray's object store as sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.core.program.extras import imported
from flinkpy.datastream.checks import check_strategy, located, refuse
from flinkpy.datastream.env.source_verbs import S, Sources
from flinkpy.datastream.streams.reading import read_source
from flinkpy.datastream.streams.recorded import RecordedStream
from flinkpy.datastream.streams.recorded_program import RecordedProgram

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def require_spark(value: object, wanted: str, call: str) -> None:
    """Refuses a value that is not an instance of PySpark's class ``wanted``, without importing
    PySpark."""
    if not type(value).__module__.startswith("pyspark.sql") or type(value).__name__ != wanted:
        raise refuse(
            f"{call} takes a Spark {wanted}, this is {value!r:.80}; "
            "flinkpy.spark.spark_session() makes a session"
        )


class RaySources(Sources[S]):
    """Ray Datasets and Spark DataFrames as sources of StreamExecutionEnvironment."""

    def from_ray_dataset(
        self,
        dataset: object,
        timestamp_column: str | None = None,
        watermark_strategy: WatermarkStrategy | None = None,
    ) -> S:
        """Reads the rows of a Ray Dataset as columns; its blocks are read on the nodes that hold
        them. The dataset is computed now, unless it was already.

        ``timestamp_column`` names the column with the event time. A dataset has no order, so
        without a strategy event time advances only at its end. Raises ProgramError for anything but
        a Ray Dataset with columns.

        >>> env.from_ray_dataset(
        ...     ray.data.read_parquet("flights"), timestamp_column="time_hour"
        ... )  # doctest: +SKIP
        """
        from flinkpy.connectors.ray.object_store import dataset_blocks

        if not hasattr(dataset, "iter_internal_ref_bundles"):
            raise refuse(
                f"from_ray_dataset() takes a ray.data.Dataset, this is a {type(dataset).__name__}"
            )
        return self.from_blocks(
            dataset_blocks(dataset),
            _arrow_schema(dataset),
            "Ray Dataset Source",
            timestamp_column,
            watermark_strategy,
        )

    def from_spark(
        self,
        df: DataFrame,
        timestamp_column: str | None = None,
        watermark_strategy: WatermarkStrategy | None = None,
    ) -> S:
        """Reads the rows of a Spark DataFrame as columns. Spark begins to compute it now, once.
        Each partition becomes a block in Ray's object store as soon as Spark has computed it;
        readers read it where it lies, while Spark computes others. If Spark cannot compute it, the
        job fails with Spark's error. The session must come from ``flinkpy.spark.spark_session()``;
        ``stop_spark()`` waits until all blocks are in the store.

        ``timestamp_column`` names the column with the event time. Rows have no order, so without a
        strategy event time advances only at the end. Raises ProgramError for anything but a Spark
        DataFrame.

        >>> env.from_spark(
        ...     spark.read.parquet("flights.parquet"), timestamp_column="time_hour"
        ... )  # doctest: +SKIP
        """
        require_spark(df, "DataFrame", "from_spark()")
        from flinkpy.spark.data_frames import hand_over

        strategy = _with_timestamps(watermark_strategy, timestamp_column)
        with located():
            keeper, count, schema, release = hand_over(df)
            return self._as_stream(
                read_kept_blocks(
                    self.program, keeper, [None] * count, schema, "Spark Source", strategy, release
                )
            )

    def from_blocks(
        self,
        refs: list[Any],
        schema: pa.Schema,
        name: str,
        timestamp_column: str | None = None,
        watermark_strategy: WatermarkStrategy | None = None,
    ) -> S:
        """Reads blocks in Ray's object store, given by their references; each block is a
        ``pyarrow.Table``, and all have one schema."""
        from flinkpy.connectors.ray.block_keeper import hosts_of
        from flinkpy.connectors.ray.object_store import make_keeper

        strategy = _with_timestamps(watermark_strategy, timestamp_column)
        with located():
            return self._as_stream(
                read_kept_blocks(
                    self.program, make_keeper(refs), hosts_of(refs), schema, name, strategy
                )
            )


def read_kept_blocks(
    program: RecordedProgram,
    keeper: str,
    hosts: Sequence[tuple[str, ...] | None],
    schema: pa.Schema,
    name: str,
    strategy: WatermarkStrategy | None = None,
    release: Callable[[], None] | None = None,
) -> RecordedStream:
    """The blocks of a keeper. The keeper forgets them when the stream is no longer used or the
    program ends, and ``release`` is called."""
    from flinkpy.connectors.ray.block_source import RayBlockSource
    from flinkpy.connectors.ray.object_store import forget_with

    source = RayBlockSource(keeper, schema, hosts)
    forget_with(source, keeper, release)
    strategy = check_strategy(
        WatermarkStrategy.no_watermarks() if strategy is None else strategy, "from_source()"
    )
    return read_source(program, source, name, None, strategy)


def _with_timestamps(
    strategy: WatermarkStrategy | None, column: str | None
) -> WatermarkStrategy | None:
    if column is None:
        return strategy
    from flinkpy.columns.expression_functions import col

    return (strategy or WatermarkStrategy.no_watermarks()).with_timestamp_assigner(col(column))


def _arrow_schema(dataset: Any) -> Any:
    """The dataset's columns as Arrow's schema; for blocks of pandas frames it looks at one
    record."""
    import pyarrow as pa

    schema = dataset.schema()
    base = getattr(schema, "base_schema", schema)
    if isinstance(base, pa.Schema):
        return base
    if schema is None:
        raise refuse("the Ray Dataset is empty and has no columns")
    with located():
        imported("pandas", "pandas", "from_ray_dataset() of blocks of pandas")
    return pa.Schema.from_pandas(dataset.limit(1).to_pandas(), preserve_index=False)
