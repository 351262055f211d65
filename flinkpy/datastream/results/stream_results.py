"""The methods with which a stream ends: sinks, and results that are returned to the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from flinkpy.core.users_values import unbuilt
from flinkpy.datastream import functions as f
from flinkpy.datastream.checks import check_function, refuse
from flinkpy.datastream.results.data_stream_sink import DataStreamSink
from flinkpy.datastream.results.look_verbs import LookVerbs
from flinkpy.datastream.results.sink_operators import add_globally_committed_sink, add_sink
from flinkpy.datastream.results.write_verbs import WriteVerbs

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class StreamResults(WriteVerbs, LookVerbs):
    """The methods for results, which every public stream has."""

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Prints every record where its subtask runs. If there are several subtasks, a prefix such
        as ``2> `` names the subtask."""
        from flinkpy.common.printing import formatter, row_formatter
        from flinkpy.connectors.print_sink import PrintSink

        stream = self.recorded
        write = row_formatter() if stream.is_columnar else formatter(stream.output_type)
        return DataStreamSink(
            add_sink(stream, PrintSink(sink_identifier, formatter=write), "Sink: Print to Std. Out")
        )

    def sink_to(self, sink: object) -> DataStreamSink:
        """Writes to a sink of ``flinkpy.connectors.sinks``, or to any object with ``write(value)``.
        Raises ProgramError for anything else."""
        from flinkpy.operators.sinks.sink_port import Sink, SupportsGlobalCommitter

        if isinstance(sink, type):
            raise refuse(f"sink_to() takes a sink object, not a class: write {sink.__name__}(...)")
        transformer = sink.get_transformer() if hasattr(sink, "get_transformer") else None
        # PyFlink's SupportsPreprocessing: the sink changes the stream before it is written
        stream = self.recorded if transformer is None else transformer.apply(self).recorded
        if isinstance(sink, (Sink, SupportsGlobalCommitter)) or hasattr(sink, "write_batch"):
            sink = sink.of_type(stream.output_type) if hasattr(sink, "of_type") else sink
            if isinstance(sink, SupportsGlobalCommitter):
                return DataStreamSink(*add_globally_committed_sink(stream, sink))
            return DataStreamSink(add_sink(stream, sink, "Sink: Writer"))
        if not hasattr(sink, "write") and not isinstance(sink, f.SinkFunction):
            raise refuse(
                "sink_to() takes a sink or an object with write(value); a "
                f"{type(sink).__name__} is neither{unbuilt(sink)}"
            )
        return DataStreamSink(add_sink(stream.as_rows(), sink, "Sink: Writer"))

    def add_sink(self, sink_func: object) -> DataStreamSink:
        """Calls a SinkFunction, or a plain function, with every record."""
        from flinkpy.operators.function_contexts.sink_context import takes_context

        if not isinstance(sink_func, f.SinkFunction) and not callable(sink_func):
            return self.sink_to(sink_func)
        with_context = isinstance(sink_func, f.SinkFunction) and takes_context(sink_func.invoke)
        check_function(sink_func, f.SinkFunction, "invoke", 1 + with_context, "add_sink()")
        return DataStreamSink(add_sink(self.recorded.as_rows(), sink_func, "Sink: Unnamed"))

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> Any:
        """Runs the program and returns the records of this stream: a CloseableIterator or, with
        ``limit``, a list of the first ``limit`` records. Of running results each change is a
        record.

        >>> with (
        ...     env.from_collection([1, 2]).map(lambda x: x * 2).execute_and_collect() as results
        ... ):  # doctest: +SKIP
        ...     print(list(results))
        [2, 4]
        """
        from flinkpy.datastream.results.collecting import execute_and_collect

        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, int) or limit < 1
        ):
            raise refuse(
                f"execute_and_collect(): limit is a whole number from 1 on, this is {limit!r}"
            )
        results = execute_and_collect(self.recorded, job_execution_name)
        if limit is None:
            return results
        with results:
            return results.first(limit)

    def take(self, n: int = 10, job_name: str | None = None) -> list[Any]:
        """The first ``n`` records to arrive, or fewer if the stream ends before. The job is then
        cancelled.

        Runs a job with only what leads to this stream. With several subtasks it is chance which
        records come first. Of running results each change is a record; ``show`` and ``to_arrow``
        have the last one of each key. If the job restarts, the list starts anew. Raises
        JobExecutionError if the job fails before there are enough; Ctrl-C cancels it.

        >>> env.from_collection([1, 2, 3]).map(lambda x: x * 2).take(2)  # doctest: +SKIP
        [2, 4]
        """
        from flinkpy.datastream.results.first_records import first_records

        return first_records(self.recorded, n, job_name)

    def show(self, n: int = 20, truncate: bool | int = True, job_name: str | None = None) -> None:
        """Prints the first ``n`` records as a table with a column for each field of rows, columns,
        tuples, named tuples and dataclasses.

        Of running results these are the last row of each key if the input ends, and come then
        (``take`` gives the first changes at once); else each change.
        Values longer than ``truncate`` characters are cut, and floats of many digits rounded to six
        places. True means 20 characters; False cuts and rounds nothing. Moments are shown whole,
        with their zone.

        >>> env.from_collection([("to", 2), ("be", 1)]).show()  # doctest: +SKIP
        +----+----+
        | f0 | f1 |
        +----+----+
        | to |  2 |
        | be |  1 |
        +----+----+
        """
        from flinkpy.datastream.results.first_records import show_records

        show_records(self.recorded, n, truncate, job_name)

    def to_arrow(self, job_name: str | None = None) -> pa.Table:
        """All records as a ``pyarrow.Table``, in this process's memory. Runs a job with only what
        leads to this stream, and waits for it to end. Of running results it has the last row of
        each key. Raises ProgramError for a stream that does not end.

        >>> env.from_pandas(frame).filter(col("delay") > 60).to_arrow()  # doctest: +SKIP
        """
        from flinkpy.datastream.results.whole_results import arrow_table

        return arrow_table(self.recorded, job_name)

    def to_pandas(self, job_name: str | None = None) -> pd.DataFrame:
        """All records as a pandas frame, in this process's memory; runs a job as ``to_arrow`` does.
        Of running results it has the last row of each key. Whole numbers with nulls have pandas'
        type ``Int64`` or its like, which rounds nothing. Raises ProgramError if pandas is not
        installed.

        >>> env.from_pandas(sales).key_by("shop").aggregate(
        ...     col("amount").sum.alias("sold")
        ... ).to_pandas()  # doctest: +SKIP
        """

        from flinkpy.datastream.results.whole_results import frame_of_pandas

        return frame_of_pandas(self.recorded, job_name)

    def to_polars(self, job_name: str | None = None) -> pl.DataFrame:
        """All records as a Polars frame, in this process's memory; runs a job as ``to_arrow`` does.
        Of running results it has the last row of each key. Raises ProgramError if Polars is not
        installed.

        >>> env.from_polars(frame).filter(col("delay") > 60).to_polars()  # doctest: +SKIP
        """
        from flinkpy.datastream.results.whole_results import frame_of_polars

        return frame_of_polars(self.recorded, job_name)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """All records as a stream of Arrow's C interface, for libraries that read tables so:
        ``pyarrow.table(stream)``. Runs a job as ``to_arrow`` does."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_ray_dataset(self, job_name: str | None = None) -> Any:
        """All records as a Ray Dataset. The sinks write its blocks to Ray's object store in
        parallel; records never pass through this program. Runs a job with only what leads to this
        stream, and waits for it to end. Of running results it has the last row of each key.

        The blocks are kept as long as this program runs.

        >>> env.from_parquet("flights.parquet").to_ray_dataset().groupby(
        ...     "carrier"
        ... ).count()  # doctest: +SKIP
        """
        from flinkpy.datastream.results.whole_results import ray_dataset

        return ray_dataset(self.recorded, job_name)

    def to_spark(self, spark: SparkSession, job_name: str | None = None) -> DataFrame:
        """All records as a Spark DataFrame. The sinks write blocks to Ray's object store, where
        Spark's executors read them; records never pass through this program. Runs a job with only
        what leads to this stream, and waits for it to end. Of running results it has the last row
        of each key.

        The blocks are kept as long as this program runs.

        >>> env.from_spark(flights).filter(col("dep_delay") > 60).to_spark(spark).groupBy(
        ...     "carrier"
        ... ).count()  # doctest: +SKIP
        """
        from flinkpy.datastream.results.whole_results import spark_frame

        return spark_frame(self.recorded, spark, job_name)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a stream belongs to the program: functions run on the workers, and cannot use it"
        )
