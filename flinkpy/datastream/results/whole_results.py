"""All results of a bounded stream as columns: a table, a Ray Dataset or a Spark DataFrame.

Each call runs a job with only what leads to the stream, and waits for it to end. Sinks of other
streams wait for ``execute``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.program.extras import imported
from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.env.ray_sources import require_spark
from flinkpy.datastream.env.submission import execute
from flinkpy.datastream.results.collecting import execute_and_collect
from flinkpy.datastream.results.sink_operators import add_sink
from flinkpy.datastream.streams.recorded import ColumnStream, RecordedStream
from flinkpy.datastream.streams.recorded_program import endless_source

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def arrow_table(
    stream: RecordedStream,
    job_name: str | None,
    call: str = "to_arrow()",
    made: Callable[[RecordedStream], RecordedStream] = lambda stream: stream,
) -> pa.Table:
    """Implements ``to_arrow``, and what makes other frames of its table. ``made`` says what is to
    be computed of the stream."""
    import pyarrow as pa

    refuse_endless(stream, call)
    with stream.program.only_what_leads_to(stream.transformation):
        columns = made(stream).as_columns(call)
        results = execute_and_collect(columns, job_name, quiet=False, as_table=True)
    with results:
        batches = results.gathered()
    for batch in batches:
        if batch.kinds is not None:
            raise ProgramError(
                f"{call} gives a table, whose rows have no kind, and the stream has changes "
                "(-U, +U, -D): take them with execute_and_collect(), as Rows with get_row_kind()"
            )
    if batches:
        return _one_table([batch.data for batch in batches])
    return columns.schema.empty_table() if columns.schema is not None else pa.table({})


def frame_of_pandas(stream: RecordedStream, job_name: str | None) -> pd.DataFrame:
    """Implements ``to_pandas``."""
    from flinkpy.columns.values.pandas_frames import pandas_frame

    with located():
        imported("pandas", "pandas", "to_pandas()")
        return pandas_frame(arrow_table(stream, job_name, "to_pandas()"), "to_pandas()")


def frame_of_polars(stream: RecordedStream, job_name: str | None) -> pl.DataFrame:
    """Implements ``to_polars``."""
    with located():
        polars = imported("polars", "polars", "to_polars()")
    frame: pl.DataFrame = polars.DataFrame(arrow_table(stream, job_name, "to_polars()"))
    return frame


def ray_dataset(stream: RecordedStream, job_name: str | None) -> Any:
    """Implements ``to_ray_dataset``."""
    from flinkpy.connectors.ray.block_sink import RayBlockSink
    from flinkpy.connectors.ray.object_store import dataset_of

    refuse_endless(stream, "to_ray_dataset()")
    with stream.program.only_what_leads_to(stream.transformation):
        columns = stream.as_columns("to_ray_dataset()")
        _, blocks = _write_blocks(columns, job_name, RayBlockSink)
    return dataset_of(blocks, columns.schema)


def spark_frame(stream: RecordedStream, spark: SparkSession, job_name: str | None) -> DataFrame:
    """Implements ``to_spark``."""
    # `flinkpy shell` starts the session when it is first used
    spark = getattr(spark, "_spark_session", lambda: spark)()
    require_spark(spark, "SparkSession", "to_spark()")
    from flinkpy.spark.data_frames import require_on_ray, spark_schema
    from flinkpy.spark.sink import SparkSink

    with located():
        require_on_ray(spark, "to_spark()")
    refuse_endless(stream, "to_spark()")
    with stream.program.only_what_leads_to(stream.transformation):
        columns = stream.as_columns("to_spark()")
        if columns.schema is not None:
            with located():
                spark_schema(columns.schema)
        sink, _ = _write_blocks(columns, job_name, SparkSink)
    return sink.dataframe(spark, columns.schema)


def refuse_endless(stream: RecordedStream, call: str) -> None:
    """Refuses a stream whose source does not end, as all of it will never be there."""
    endless = endless_source(stream.transformation)
    if endless is not None:
        raise refuse(
            f"{call} waits for the end of the stream, and {endless.label} does not end: call "
            "take(n) or show(n) for the first records, "
            "limit(n) before, execute_and_collect() for records as they come, or "
            "give the source an end"
        )


def _write_blocks(
    columns: ColumnStream, job_name: str | None, kind: Callable[[str], Any]
) -> tuple[Any, list[Any]]:
    """Runs the program with a sink that writes the columns as blocks; returns the sink and the
    references of the blocks, in order."""
    from flinkpy.cluster.ray.ray_connection import connect_ray

    connect_ray(columns.program.values, start=True)
    from flinkpy.connectors.ray.object_store import Store, make_keeper

    sink = kind(make_keeper())
    add_sink(columns, sink, "Sink: Ray blocks", as_table=True)
    execute(columns.program, job_name)
    return sink, Store(sink.keeper).committed_blocks()


def _one_table(batches: list[Any]) -> Any:
    """The batches as one table. If a function of batches returned integers first and fractions
    later, the column has floats."""
    import pyarrow as pa

    if all(batch.schema.equals(batches[0].schema) for batch in batches):
        return pa.Table.from_batches(batches)
    try:
        schema = pa.unify_schemas([batch.schema for batch in batches], promote_options="permissive")
        return pa.concat_tables(
            [
                pa.table([_exactly(batch, field) for field in schema], schema=schema)
                for batch in batches
            ]
        )
    except (pa.ArrowException, ValueError) as error:
        raise ProgramError(
            f"to_arrow(): batches of the stream have columns of different types: {error}; "
            "bring them into line with "
            "select(...)"
        ) from error


def _exactly(batch: Any, field: pa.Field) -> Any:
    """The batch's column in the field's type, or nulls if it has none; raises ValueError for a
    number that does not fit."""
    import pyarrow as pa

    from flinkpy.columns.values.exact_arrays import array_of

    at = batch.schema.get_field_index(field.name)
    if at < 0:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(at)
    try:
        return column.cast(field.type)
    except (
        pa.ArrowInvalid
    ):  # Arrow refuses to cast integers above 2**53 to floats, even those that are exact
        return array_of(column.to_pylist(), field.type, field.name)
