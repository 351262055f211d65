"""Buckets, rolling and compaction of the file sink, on a clock of their own."""

from __future__ import annotations

import doctest
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkpy.columns.values.conversion import rows_of_batch
from flinkpy.common import Encoder, Row, Types
from flinkpy.connectors.files.builders import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
)
from flinkpy.connectors.files.reading.column_files import CsvSource
from flinkpy.connectors.files.writing import buckets, compaction, rolling
from flinkpy.connectors.files.writing.file_formats import (
    CsvFormat,
    FileFormat,
    JsonLinesFormat,
    ParquetFormat,
    TextFormat,
)
from flinkpy.connectors.files.writing.file_sink import FileSink as PlainSink
from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.operators.sinks.sink_port import Sink
from flinkpy.table.expressions import col
from tests.connectors.harness import ManualTimers, operator_context, read_all

NOTHING: Any = "neither an encoder nor a policy"


class Part:
    """One subtask's writer, and what is in its folder."""

    def __init__(self, sink: Sink, folder: Path) -> None:
        self.clock, self.folder = ManualClock(), folder
        self.timers = ManualTimers(self.clock)
        context = operator_context(clock=self.clock, timers=self.timers)
        self.writer, self.committer = sink.create_writer(context), sink.create_committer(context)

    def write(self, *values: Any) -> None:
        self.writer.write_batch(RowBatch(list(values)))

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.fire()

    def end(self) -> dict[str, str]:
        self.writer.finish()
        assert self.committer is not None
        self.committer.commit(self.writer.prepare_commit())
        self.writer.close()
        assert self.timers.next_due() is None
        return self.visible()

    def visible(self) -> dict[str, str]:
        files = sorted(
            path
            for path in self.folder.rglob("*")
            if path.is_file() and not path.name.startswith(".")
        )
        return {str(path.relative_to(self.folder)): path.read_text() for path in files}


def builder(folder: Path) -> FileSink.RowFormatBuilder:
    rows = FileSink.for_row_format(folder, Encoder.simple_string_encoder())
    return rows.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())


@pytest.mark.parametrize("module", [buckets, compaction, rolling])
def test_the_examples_run(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_a_part_that_has_reached_its_size_is_followed_by_another(tmp_path: Path) -> None:
    part = Part(
        builder(tmp_path)
        .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=4))
        .build(),
        tmp_path,
    )
    part.write("a")
    part.write("b")
    part.write("c")
    assert part.visible() == {}  # before the end nobody sees a part, finished or not
    assert part.end() == {"part-01234567-op-0": "a\nb\n", "part-01234567-op-0-1": "c\n"}


def test_a_part_too_old_is_ended_while_nothing_comes(tmp_path: Path) -> None:
    policy = RollingPolicy.default_rolling_policy(rollover_interval=3000, inactivity_interval=1500)
    part = Part(
        builder(tmp_path).with_rolling_policy(policy).with_bucket_check_interval(1000).build(),
        tmp_path,
    )
    part.write("a")
    part.pass_time(1)
    part.write("b")
    part.pass_time(1)
    part.write("still the first")
    part.pass_time(1)  # three seconds old
    part.write("second")
    part.pass_time(1)
    part.pass_time(1)  # nothing written for two seconds
    part.write("third")
    assert part.end() == {
        "part-01234567-op-0": "a\nb\nstill the first\n",
        "part-01234567-op-0-1": "second\n",
        "part-01234567-op-0-2": "third\n",
    }


def test_without_a_bucket_assigner_there_is_a_folder_for_each_hour(tmp_path: Path) -> None:
    rows = FileSink.for_row_format(tmp_path, Encoder.simple_string_encoder())
    part = Part(
        rows.with_bucket_assigner(
            BucketAssigner.date_time_bucket_assigner(timezone_id="GMT+01:00")
        ).build(),
        tmp_path,
    )
    part.write("a")
    part.pass_time(3600)
    part.write("b")
    first, second = part.end()
    assert (first.split("/")[0][-4:], second.split("/")[0][-4:]) == ("--01", "--02")


def test_a_record_may_say_its_bucket_and_not_one_outside(tmp_path: Path) -> None:
    part = Part(
        PlainSink(tmp_path, buckets=BucketAssigner.by_value(lambda value: value[0])), tmp_path
    )
    part.write("a1", "b1", "a2")
    assert part.end() == {
        "a/part-01234567-op-0.txt": "a1\na2\n",
        "b/part-01234567-op-0.txt": "b1\n",
    }
    with pytest.raises(ProgramError, match="leads out of the sink's directory"):
        BucketAssigner.by_value(lambda value: "../x").bucket_of("a")


@pytest.mark.parametrize(("pattern", "message"), [("yyyy-QQ", "'QQ'"), ("e", "'e'")])
def test_a_pattern_with_unknown_letters_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        BucketAssigner.date_time_bucket_assigner(pattern)


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(ProgramError, match="no time zone 'Mars/Olympus'"):
        BucketAssigner.date_time_bucket_assigner(timezone_id="Mars/Olympus")


def test_small_parts_are_put_together(tmp_path: Path) -> None:
    rows = builder(tmp_path).with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=1))
    strategy = FileCompactStrategy.builder().set_size_threshold(4).build()
    part = Part(
        rows.enable_compact(strategy, FileCompactor.concat_file_compactor(b"--\n")).build(),
        tmp_path,
    )
    for value in "abc":
        part.write(value)
    assert part.end() == {
        "compacted-part-01234567-op-0": "a\n--\nb\n",
        "compacted-part-01234567-op-0-2": "c\n",
    }
    assert list(tmp_path.glob(".*")) == []


def test_a_failed_writer_leaves_hidden_files_only(tmp_path: Path) -> None:
    part = Part(
        builder(tmp_path)
        .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=1))
        .build(),
        tmp_path,
    )
    part.write("a")
    part.write("b")
    part.writer.close()
    assert part.visible() == {}


def test_the_encoder_writes_values_as_the_declared_type_says(tmp_path: Path) -> None:
    sink = (
        builder(tmp_path)
        .with_output_file_config(OutputFileConfig.builder().with_part_suffix(".log").build())
        .build()
    )
    part = Part(sink.of_type(Types.ROW([Types.STRING(), Types.DOUBLE()])), tmp_path)
    part.write(Row("a", None), Row("b", 2))
    assert part.end() == {"part-01234567-op-0.log": "+I[a, null]\n+I[b, 2.0]\n"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda folder: builder(folder).with_rolling_policy(NOTHING), "takes a RollingPolicy"),
        (lambda folder: builder(folder).with_bucket_check_interval(0), "milliseconds from 1 on"),
        (
            lambda folder: RollingPolicy.default_rolling_policy(part_size=0),
            "part_size is a whole number from 1 on",
        ),
        (
            lambda folder: FileSink.for_bulk_format(folder).with_rolling_policy(
                RollingPolicy.default_rolling_policy()
            ),
            "OnCheckpointRollingPolicy",
        ),
        (lambda folder: FileSink.for_row_format(folder, NOTHING), "takes a Encoder"),
        (lambda folder: FileCompactStrategy.builder().build(), "needs set_size_threshold"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_built(
    tmp_path: Path, call: Any, message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        call(tmp_path)


def test_a_delimiter_between_compressed_files_is_refused(tmp_path: Path) -> None:
    strategy = FileCompactStrategy.builder().set_size_threshold(4).build()
    with pytest.raises(
        ProgramError, match=r"a delimiter between compressed files \(.txt.gz\) would damage them"
    ):
        PlainSink(
            tmp_path,
            TextFormat(compression="gzip"),
            compact=(strategy, FileCompactor.concat_file_compactor(b"-")),
        )


def test_text_that_an_encoding_has_not_is_told(tmp_path: Path) -> None:
    part = Part(PlainSink(tmp_path, TextFormat(charset="latin-1")), tmp_path)
    with pytest.raises(
        ProgramError, match="'日本' cannot be written in latin-1; name another encoding"
    ):
        part.write("in 日本")
    part.writer.close()
    with pytest.raises(ProgramError, match="'latin-99' is no character set Python knows"):
        TextFormat(charset="latin-99")


@pytest.mark.parametrize(
    "form",
    [
        ParquetFormat(),
        CsvFormat(),
        TextFormat(charset="utf-16"),
        CsvFormat(header=False, encoding="utf-8-sig"),
    ],
    ids=["Parquet", "CSV with header lines", "text with marks", "CSV with marks"],
)
def test_files_that_cannot_be_concatenated_are_not(form: FileFormat, tmp_path: Path) -> None:
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).build()
    builder = FileSink.for_bulk_format(tmp_path, form)
    with pytest.raises(ProgramError, match="cannot be joined by concatenation"):
        builder.enable_compact(strategy, FileCompactor.concat_file_compactor()).build()
    assert builder.enable_compact(strategy, FileCompactor.identical_file_compactor()).build()
    assert (
        FileSink.for_bulk_format(tmp_path, CsvFormat(header=False))
        .enable_compact(strategy, FileCompactor.concat_file_compactor())
        .build()
    )


PARTITIONED = pa.table(
    {
        "city": ["Oslo", None, "Rome/Fiumicino", "Oslo", "", "007"],
        "year": pa.array([2024, 2024, None, 2024, 1, 2], pa.int16()),
        "n": [1, 2, 3, 4, 5, 6],
        "x": [0.5, None, math.nan, -0.0, 1e300, 2.0],
    }
)


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
@pytest.mark.parametrize("as_rows", [False, True])
def test_columns_become_the_names_of_folders_and_come_back(
    tmp_path: Path, format: str, as_rows: bool
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    stream = env.from_arrow(PARTITIONED)
    (stream.map(lambda row: row) if as_rows else stream).sink_to(
        PlainSink(tmp_path, format, partition_by=["city", "year"])
    )
    env.execute("write")
    null = "__HIVE_DEFAULT_PARTITION__"
    assert sorted(
        str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob("part*")
    ) == sorted(
        f"city={city}/year={year}"
        for city, year in [
            ("Oslo", 2024),
            (null, 2024),
            ("Rome%2FFiumicino", null),
            (null, 1),
            ("007", 2),
        ]
    )
    read: Any = {"parquet": env.from_parquet, "csv": env.from_csv, "json": env.from_json_lines}[
        format
    ]
    table = (
        read(tmp_path, PARTITIONED.schema.names, schema=PARTITIONED.schema).to_arrow().sort_by("n")
    )
    # empty text, as in Hive
    wanted = PARTITIONED.set_column(
        0, "city", pa.array(["Oslo", None, "Rome/Fiumicino", "Oslo", None, "007"])
    )
    assert list(map(repr, table.to_pylist())) == list(map(repr, wanted.to_pylist()))
    if format == "parquet":
        assert set(pq.ParquetFile(next(tmp_path.rglob("part*"))).schema_arrow.names) == {"n", "x"}


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", None, "b", None, "a"]).dictionary_encode(),
        pa.array([True, None, False, None, True]),
        pa.array([1.5, None, -0.5, None, 1.5]),
    ],
    ids=["dictionary", "booleans", "floats"],
)
@pytest.mark.parametrize("as_rows", [False, True])
def test_each_record_goes_to_the_folder_of_its_value(
    tmp_path: Path, values: Any, as_rows: bool
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_arrow(pa.table({"k": values, "n": range(5)}))
    (stream.map(lambda row: row) if as_rows else stream).sink_to(
        PlainSink(tmp_path, "parquet", partition_by=["k"])
    )
    env.execute("write")
    names = {
        "true" if value is True else "false" if value is False else str(value)
        for value in values.to_pylist()
        if value is not None
    }
    assert {path.name for path in tmp_path.iterdir()} == {f"k={name}" for name in names} | {
        "k=__HIVE_DEFAULT_PARTITION__"
    }
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    read = (
        env.from_parquet(tmp_path, schema=pa.schema([("n", pa.int64()), ("k", kind)]))
        .to_arrow()
        .sort_by("n")
    )
    assert read.column("k").to_pylist() == values.to_pylist()


def test_no_value_in_a_folders_name_is_lost(tmp_path: Path) -> None:
    texts = ["__HIVE_DEFAULT_PARTITION__", "..", "a/b=c%", None, ".x"] * 2
    day = pa.array(texts).dictionary_encode()
    batch = pa.RecordBatch.from_arrays(
        [day, pa.array(texts), pa.array(range(10))], names=["_day", ".city", "n"]
    )
    for as_rows in (False, True):
        folder = tmp_path / str(as_rows)
        part = Part(PlainSink(folder, "csv", partition_by=["_day", ".city"]), folder)
        part.writer.write_batch(
            RowBatch(list(rows_of_batch(batch))) if as_rows else ColumnBatch(batch)
        )
        part.end()
        assert sorted(map(tuple, read_all(CsvSource(folder))), key=lambda row: row[0]) == [
            (at, text, text) for at, text in enumerate(texts)
        ]


def test_many_columns_of_many_values_have_a_folder_for_each_combination() -> None:
    many = range(600)  # 600 ** 7 is more than 64 bits
    batch = pa.record_batch({**{name: pa.array(many) for name in "abcdefg"}, "n": pa.array(many)})
    shares = list(BucketAssigner.by_columns(*"abcdefg").shares_of(ColumnBatch(batch), 0))
    assert [name for name, _ in shares] == [
        "/".join(f"{name}={at}" for name in "abcdefg") for at in many
    ]
    assert [share.data.to_pydict() for _, share in shares] == [{"n": [at]} for at in many]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("names", "records", "message"),
    [
        ([], [{"a": 1}], "at least one"),
        ("a", [{"a": 1}], "at least one"),
        (["b"], [{"a": 1}], "no column 'b' to partition by; there are a"),
        (["a"], [{"a": 1}], "leave no column"),
        (["a"], [(1, 2)], "whose fields have names"),
        (["a", "a"], [{"a": 1, "b": 2}], "twice"),
        (["a"], [{"a": b"x", "b": 1}], "'a': b'x' cannot be the name of a folder"),
        (["a"], [{"a": [1], "b": 1}], "cannot be the name"),
    ],
)
def test_partitions_that_cannot_be_are_refused(
    tmp_path: Path, names: Any, records: list[Any], message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        Part(PlainSink(tmp_path, "json", partition_by=names), tmp_path).write(*records)


@pytest.mark.parametrize("compression", ["gzip", "bz2", "zstd", "lz4", "brotli"])
@pytest.mark.parametrize("kind", [CsvFormat, JsonLinesFormat])
def test_compressed_files_of_text_come_back(tmp_path: Path, kind: Any, compression: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_arrow(PARTITIONED).sink_to(PlainSink(tmp_path, kind(compression=compression)))
    env.execute("write")
    read = env.from_csv if kind is CsvFormat else env.from_json_lines
    assert list(
        map(repr, read(tmp_path, schema=PARTITIONED.schema).to_arrow().sort_by("n").to_pylist())
    ) == list(map(repr, PARTITIONED.to_pylist()))
    with pytest.raises(ProgramError, match="compression is one of gzip"):
        kind(compression="zip")


# -- what is known while the program is built ------------------------------------------------------


@pytest.mark.parametrize("kind", ["columns", "declared rows"])
def test_a_misspelt_column_of_partitions_is_refused_at_the_line_of_the_program(
    tmp_path: Path, kind: str
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream: Any = env.from_arrow(PARTITIONED)
    if kind == "declared rows":
        stream = stream.map(
            lambda row: (row.city, row.n),
            output_type=Types.ROW_NAMED(["city", "n"], [Types.STRING(), Types.LONG()]),
        )
    with pytest.raises(
        ProgramError,
        match=(
            r"test_part_files\.py:\d+: there is no column 'cite' to partition by; there are "
            r"city, "
        ),
    ):
        stream.sink_to(PlainSink(tmp_path, "parquet", partition_by=["cite"]))
    with pytest.raises(
        ProgramError, match=r"test_part_files\.py:\d+: there is no column 'cite' to partition by"
    ):
        stream.write_csv(tmp_path, partition_by=["cite"])


@pytest.mark.parametrize("as_rows", [False, True])
@pytest.mark.parametrize("form", ["parquet", "avro", "csv"])
def test_a_schema_may_have_the_columns_of_partitions(
    tmp_path: Path, form: str, as_rows: bool
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream: Any = env.from_arrow(pa.table({"n": [1, 2], "city": ["Oslo", "Rome"]}))
    stream = stream.map(lambda row: row) if as_rows else stream
    types = pa.schema([("n", pa.int32()), ("city", pa.string())])
    if form == "csv":
        stream.write_csv(tmp_path, columns=["n", "city"], partition_by=["city"])
    else:
        getattr(stream, f"write_{form}")(tmp_path, schema=types, partition_by=["city"])
    env.execute()
    read = {"parquet": env.from_parquet, "avro": env.from_avro, "csv": env.from_csv}[form](tmp_path)  # type: ignore[operator]
    assert sorted(map(tuple, read.take())) == [(1, "Oslo"), (2, "Rome")]


def test_a_tilde_is_the_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_arrow(PARTITIONED.select(["city", "n"])).write_parquet("~/out", partition_by=["city"])
    env.execute()
    assert (tmp_path / "out").is_dir()
    assert sorted(row.n for row in env.from_parquet("~/out").take()) == sorted(
        row.n for row in env.from_parquet(["~/out/city=*"]).take()
    )
    assert env.from_parquet(Path("~/out")).filter(col("city") == "007").select("n").take() == [
        Row(n=6)
    ]


def test_files_are_read_and_written_under_the_names_that_are_guessed(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(["one", "two"]).write_text(tmp_path / "text", compression="gzip")
    env.from_collection([{"n": 1}]).write_json_lines(tmp_path / "json")
    env.execute()
    assert sorted(env.read_text(str(tmp_path / "text")).take()) == ["one", "two"]
    assert env.read_json_lines(tmp_path / "json").take() == [Row(n=1)]
