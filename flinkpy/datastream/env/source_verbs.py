"""The sources that an environment offers by name. All other sources are read with
``from_source``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.common.time import Duration, checked_milliseconds
from flinkpy.common.typeinfo import TypeInformation, Types
from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.core.errors import ProgramError
from flinkpy.core.users_values import unbuilt
from flinkpy.datastream.checks import check_arity, check_strategy, check_type, located, refuse
from flinkpy.datastream.streams.reading import read_function, read_source
from flinkpy.datastream.streams.recorded import RecordedStream
from flinkpy.datastream.streams.recorded_program import RecordedProgram
from flinkpy.datastream.verbs.failing_records import set_error_policy

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from flinkpy.connectors.files.paths import PathArgument
    from flinkpy.connectors.files.reading.broken_lines import OnBroken, OnError
    from flinkpy.connectors.files.reading.text_files import OnBrokenText
    from flinkpy.connectors.source_api.source import Source
    from flinkpy.operators.functions import SourceFunction

S = TypeVar("S")


class Sources(ABC, Generic[S]):
    """The sources of StreamExecutionEnvironment."""

    program: RecordedProgram

    @abstractmethod
    def _as_stream(self, recorded: RecordedStream) -> S:
        """The public stream for a recorded one."""

    # -- rows --------------------------------------------------------------------------------------

    def from_collection(
        self, collection: Iterable[Any], type_info: TypeInformation | None = None
    ) -> S:
        """Reads the values of a collection as they are now, in order; one subtask reads them unless
        ``set_parallelism`` says otherwise. With a declared type every value is checked now, and
        rows may be written as tuples or dicts. Raises ProgramError for a collection of columns,
        such as a DataFrame, and for values that are not of the declared type.

        >>> env.from_collection(
        ...     [("a", 1)], Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.INT()])
        ... )  # doctest: +SKIP
        """
        from flinkpy.connectors.memory.ranges import CollectionSource

        if (instead := _source_of_columns(collection)) is not None:
            raise refuse(
                f"from_collection() takes records, this is a {type(collection).__name__}: "
                f"call {instead}"
            )
        if isinstance(collection, (str, bytes)) or not isinstance(collection, Iterable):
            raise refuse(
                "from_collection() takes a list or another iterable of records, this is a "
                f"{type(collection).__name__}"
            )
        type_info = check_type(type_info, "from_collection()")
        with located():
            values = collection if type_info is None else _of_type(collection, type_info)
            recorded = read_source(
                self.program, CollectionSource(values), "Collection Source", type_info
            )
        recorded.transformation.parallelism = 1
        return self._as_stream(recorded)

    def from_sequence(self, start: int, end: int) -> S:
        """Reads the integers from ``start`` to ``end``, both included."""
        from flinkpy.connectors.memory.ranges import NumberSequenceSource

        with located():
            return self._read(NumberSequenceSource(start, end), "Sequence Source", Types.LONG())

    def generate_sequence(self, start: int, end: int) -> S:
        """Flink's older name for :meth:`from_sequence`."""
        return self.from_sequence(start, end)

    def generate(
        self,
        function: Callable[[Any], Any],
        count: int | None = None,
        rate: float | None = None,
        *,
        columns: bool = False,
        type_info: TypeInformation | None = None,
    ) -> S:
        """Reads ``function(index)`` for 0, 1, 2 … below ``count`` (None: without end), at ``rate``
        records a second over all subtasks (None: as fast as they are consumed).

        With ``columns`` the function gets an array of indices and returns a ``pyarrow.RecordBatch``
        or a dict of columns.

        >>> env.generate(lambda index: (index % 7, index), count=1000)  # doctest: +SKIP
        """
        from flinkpy.connectors.memory.datagen import DataGeneratorSource

        if not callable(function):
            raise refuse(
                f"generate() takes a function of the index, this is {function!r:.80}; "
                "from_sequence(0, 4) gives five numbers"
            )
        check_arity(function, 1, "generate()")
        if count is not None and (isinstance(count, bool) or not isinstance(count, int)):
            raise refuse(f"generate() takes a number of records as count, this is {count!r:.80}")
        if rate is not None and (isinstance(rate, bool) or not isinstance(rate, (int, float))):
            raise refuse(
                f"generate() takes a number of records a second as rate, this is {rate!r:.80}"
            )
        type_info = check_type(type_info, "generate()")
        with located():
            return self._read(
                DataGeneratorSource(function, count, rate, columns=columns),
                "Data Generator Source",
                type_info,
            )

    def read_text_file(
        self,
        file_path: str,
        charset_name: str = "UTF-8",
        *,
        on_error: OnBrokenText | ErrorPolicy = "fail",
    ) -> S:
        """Reads the lines of a text file, of all files in a folder, or of files that match a
        pattern with ``*``; also of compressed files. Raises ProgramError if there is no such file.

        A line with bytes that are not in the charset fails the job. With ``on_error="skip"`` it is
        left out, with ``"replace"`` it has U+FFFD in their place, as in Flink, and with
        ``ErrorPolicy.divert(tag)`` it goes to a side output as the dead letter of a
        ``BrokenLine``."""
        from flinkpy.connectors.files.reading.text_files import TextFileSource

        with located():
            source = TextFileSource(
                file_path,
                charset_name,
                on_error="fail" if isinstance(on_error, ErrorPolicy) else on_error,
            )
            return self._read_lines(source, "Text File Source", on_error, Types.STRING())

    def socket_text_stream(
        self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0
    ) -> S:
        """Reads text from a TCP server, cut at the delimiter. The stream is unbounded; it ends when
        the server closes the connection and ``max_retry`` attempts to connect again have failed."""
        from flinkpy.connectors.sockets.socket_text import SocketTextSource

        with located():
            return self._read(
                SocketTextSource(hostname, port, delimiter, max_retry),
                "Socket Stream",
                Types.STRING(),
            )

    # -- columns -----------------------------------------------------------------------------------

    def from_parquet(
        self,
        paths: PathArgument,
        columns: list[str] | None = None,
        batch_rows: int | None = None,
        *,
        schema: pa.Schema | None = None,
        watch_interval: Duration | timedelta | int | None = None,
    ) -> S:
        """Reads Parquet files as columns: a file, a folder, a pattern, or a list of these; only
        ``columns`` are read from disk.

        Types come from ``schema``, or from the files: all columns that any of them has, null where
        a file does not have them. Folders such as ``city=Oslo`` become columns too, also with
        ``from_csv`` and ``from_json_lines``. With ``watch_interval`` (milliseconds, if a number),
        also with those, the stream never ends: new files are read when they appear. Raises
        ProgramError if there is no such file or column.

        >>> from flinkpy.table.expressions import col
        >>> env.from_parquet("flights.parquet").filter(col("dep_delay") > 60)  # doctest: +SKIP
        """
        from flinkpy.connectors.files.reading.column_files import ParquetSource
        from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS

        with located():
            source = ParquetSource(
                paths,
                columns,
                DEFAULT_BATCH_ROWS if batch_rows is None else batch_rows,
                schema=schema,
                watch_interval_ms=_interval(watch_interval),
            )
            return self._read(source, "Parquet Source")

    def from_csv(
        self,
        paths: PathArgument,
        columns: list[str] | None = None,
        schema: pa.Schema | None = None,
        delimiter: str = ",",
        header: bool = True,
        batch_rows: int | None = None,
        *,
        null_values: Sequence[str] = ("",),
        encoding: str = "utf-8",
        quote_char: str | None = '"',
        column_names: Sequence[str] | None = None,
        skip_rows: int = 0,
        comment: str | None = None,
        newlines_in_values: bool = True,
        split_bytes: int | None = None,
        on_error: OnError | ErrorPolicy = "fail",
        watch_interval: Duration | timedelta | int | None = None,
        infer_all: bool = False,
        escape: str | None = None,
        decimal_point: str = ".",
    ) -> S:
        """Reads CSV files with a header line as columns. ``schema`` (a ``pyarrow.Schema``) gives
        the types; by default the beginnings of the files show them, and with ``infer_all`` the
        whole of all files. Raises ProgramError if there is no such file or column.

        A field without quotes whose text is one of ``null_values`` is null; text in quotes is never
        null, not even empty text. ``column_names`` are the names of columns without a header line,
        or instead of those in it. ``skip_rows`` lines come before the header; lines that begin with
        ``comment`` are no records. ``escape="\\\\"`` is for files in which a backslash makes a
        quote, a delimiter or a line end text, as dumps of MySQL, Hive and Spark do; then
        ``null_values=["\\\\N"]`` are nulls of theirs. ``decimal_point=","`` reads 1,5 as a number.

        With ``newlines_in_values=False`` every line end ends a record. Then large UTF-8 files are
        cut into parts of about ``split_bytes``, which several subtasks read.

        A line with too many or too few fields, or with a value that is not of its column's type,
        fails the job. With ``on_error="null"`` such values are null, with ``"skip"`` such lines are
        left out, and with ``ErrorPolicy.divert(tag)`` they go to a side output as dead letters of a
        ``BrokenLine``.

        >>> env.from_csv(
        ...     "cities.csv", null_values=["", "NA"], encoding="latin-1", on_error="null"
        ... )  # doctest: +SKIP
        """
        from flinkpy.connectors.files.reading.column_files import CsvSource
        from flinkpy.connectors.files.reading.text_files import DEFAULT_SPLIT_BYTES
        from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS

        with located():
            source = CsvSource(
                paths,
                columns,
                schema,
                delimiter,
                header,
                DEFAULT_BATCH_ROWS if batch_rows is None else batch_rows,
                null_values=null_values,
                encoding=encoding,
                quote_char=quote_char,
                column_names=column_names,
                skip_rows=skip_rows,
                comment=comment,
                newlines_in_values=newlines_in_values,
                split_bytes=DEFAULT_SPLIT_BYTES if split_bytes is None else split_bytes,
                on_error=_of_source(on_error),
                watch_interval_ms=_interval(watch_interval),
                infer_all=infer_all,
                escape=escape,
                decimal_point=decimal_point,
            )
            return self._read_lines(source, "CSV Source", on_error)

    def from_json_lines(
        self,
        paths: PathArgument,
        columns: list[str] | None = None,
        schema: pa.Schema | None = None,
        batch_rows: int | None = None,
        split_bytes: int | None = None,
        *,
        infer_all: bool = False,
        ignore_extra_fields: bool = False,
        on_error: OnError | ErrorPolicy = "fail",
        watch_interval: Duration | timedelta | int | None = None,
    ) -> S:
        """Reads files with one JSON object per line as columns. ``schema`` gives the types; by
        default the beginnings of the files show them, and with ``infer_all`` the whole of all
        files. Fields that are not among them are an error, unless ``ignore_extra_fields``.
        ``on_error`` is for lines that are no such object, as in ``from_csv``. Raises ProgramError
        if there is no such file or column."""
        from flinkpy.connectors.files.reading.column_files import JsonLinesSource
        from flinkpy.connectors.files.reading.text_files import DEFAULT_SPLIT_BYTES
        from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS

        with located():
            source = JsonLinesSource(
                paths,
                columns,
                schema,
                DEFAULT_BATCH_ROWS if batch_rows is None else batch_rows,
                DEFAULT_SPLIT_BYTES if split_bytes is None else split_bytes,
                infer_all=infer_all,
                ignore_extra_fields=ignore_extra_fields,
                on_error=_of_source(on_error),
                watch_interval_ms=_interval(watch_interval),
            )
            return self._read_lines(source, "JSON Lines Source", on_error)

    def from_avro(
        self,
        paths: PathArgument,
        columns: list[str] | None = None,
        batch_rows: int | None = None,
        *,
        schema: pa.Schema | None = None,
        watch_interval: Duration | timedelta | int | None = None,
    ) -> S:
        """Reads Avro container files as columns; otherwise as ``from_parquet``. Needs the extra
        ``flinkpy[avro]``.

        >>> env.from_avro("events/*.avro")  # doctest: +SKIP
        """
        from flinkpy.connectors.files.reading.avro_source import AvroSource
        from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS

        with located():
            source = AvroSource(
                paths,
                columns,
                DEFAULT_BATCH_ROWS if batch_rows is None else batch_rows,
                schema=schema,
                watch_interval_ms=_interval(watch_interval),
            )
            return self._read(source, "Avro Source")

    def from_arrow(self, data: object, batch_rows: int | None = None) -> S:
        """Reads as columns the rows of a ``pyarrow.Table`` or ``RecordBatch``, or of anything that
        exports itself as an Arrow stream of rows (``__arrow_c_stream__``), such as a Polars frame
        or a ``RecordBatchReader``, which is read to its end now. ``batch_rows`` is how many rows a
        batch has.

        >>> env.from_arrow(polars.read_parquet("flights.parquet"))  # doctest: +SKIP
        """
        from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS, ArrowSource

        with located():
            return self._read(
                ArrowSource(data, DEFAULT_BATCH_ROWS if batch_rows is None else batch_rows),
                "Arrow Source",
            )

    def from_pandas(self, frame: pd.DataFrame, batch_rows: int | None = None) -> S:
        """Reads the rows of a pandas frame as columns, without its index. ``batch_rows`` is how
        many rows a batch has."""
        from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS, ArrowSource

        with located():
            return self._read(
                ArrowSource.from_pandas(
                    frame, DEFAULT_BATCH_ROWS if batch_rows is None else batch_rows
                ),
                "Pandas Source",
            )

    # -- any ---------------------------------------------------------------------------------------

    def from_source(
        self,
        source: Source[Any],
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "Source",
        type_info: TypeInformation | None = None,
    ) -> S:
        """Reads a source of ``flinkpy.connectors``, or your own. The strategy says where a record's
        event time is found, and how watermarks are generated. Raises ProgramError for anything but
        a Source object.

        >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        ...     lambda event: event["at"]
        ... )
        >>> env.from_source(source, strategy, "events")  # doctest: +SKIP
        """
        from flinkpy.connectors.source_api.source import Source

        if isinstance(source, type) or not isinstance(source, Source):
            raise refuse(
                f"from_source() takes a Source object, this is {source!r:.80}{unbuilt(source)}"
            )
        strategy = check_strategy(
            WatermarkStrategy.no_watermarks() if watermark_strategy is None else watermark_strategy,
            "from_source()",
        )
        type_info = check_type(type_info, "from_source()") or source.produced_type
        return self._as_stream(read_source(self.program, source, source_name, type_info, strategy))

    def add_source(
        self,
        source_func: SourceFunction | Source[Any],
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
    ) -> S:
        """Reads from a SourceFunction, whose ``run(ctx)`` has a thread of its own and may block.

        One subtask runs it, as in Flink. With ``set_parallelism`` several do; each finds its index
        in the runtime context that ``open`` gets."""
        from flinkpy.connectors.source_api.source import Source
        from flinkpy.operators.functions import SourceFunction
        from flinkpy.operators.sinks.legacy_source import LegacySourceOperator

        if isinstance(source_func, Source):
            return self.from_source(source_func, None, source_name, type_info)
        if isinstance(source_func, type) or not isinstance(source_func, SourceFunction):
            raise refuse(f"add_source() takes a SourceFunction object, this is {source_func!r:.80}")
        type_info = check_type(type_info, "add_source()")
        recorded = read_function(
            self.program, LegacySourceOperator(source_func), source_name, type_info
        )
        recorded.transformation.parallelism = 1
        return self._as_stream(recorded)

    def _read_lines(
        self,
        source: Source[Any],
        name: str,
        on_error: str | ErrorPolicy,
        type_info: TypeInformation | None = None,
    ) -> S:
        recorded = read_source(self.program, source, name, type_info)
        if isinstance(on_error, ErrorPolicy):
            set_error_policy(recorded, on_error)
        return self._as_stream(recorded)

    def _read(self, source: Source[Any], name: str, type_info: TypeInformation | None = None) -> S:
        return self._as_stream(read_source(self.program, source, name, type_info))


def _of_source(on_error: OnError | ErrorPolicy) -> OnBroken:
    """What a source of files does with broken lines when it infers types; the policy itself is the
    operator's."""
    if isinstance(on_error, ErrorPolicy):
        return "fail" if on_error.tag is None else "divert"
    if on_error not in ("fail", "null", "skip"):
        raise ProgramError(
            'on_error= is "fail", "null" or "skip", or ErrorPolicy.divert(tag); this is '
            f"{on_error!r:.80}"
        )
    return on_error


def _interval(given: Duration | timedelta | int | None) -> int | None:
    return None if given is None else checked_milliseconds(given, "watch_interval", 1)


def _source_of_columns(collection: object) -> str | None:
    """The method to call instead, for a collection whose iteration gives columns and not
    records."""
    from flinkpy.connectors.memory.arrow_tables import is_arrow_stream

    package = type(collection).__module__.partition(".")[0]
    calls = {"pandas": "from_pandas()", "pyspark": "from_spark()", "polars": "from_polars()"}
    if type(collection).__name__ == "DataFrame" and package in calls:
        return calls[package]
    return "from_arrow()" if is_arrow_stream(collection) else None


def _of_type(collection: Iterable[Any], type_info: TypeInformation) -> list[Any]:
    convert = type_info.conversion()
    values = []
    for at, value in enumerate(collection):
        try:
            type_info.check(value)
        except ProgramError as error:
            raise ProgramError(
                f"from_collection(): value {at} is not of the declared type: {error}"
            ) from None
        values.append(value if convert is None else convert(value))
    return values
