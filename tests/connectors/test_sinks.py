from __future__ import annotations

import csv
import datetime
import io
import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flinkpy.common import Row, Types
from flinkpy.common.serialization import Encoder
from flinkpy.common.typeinfo import RowTypeInfo, TypeInformation
from flinkpy.connectors.files.builders import (
    BucketAssigner,
    FileSource,
    OutputFileConfig,
    StreamFormat,
)
from flinkpy.connectors.files.builders import FileSink as FileSystemSink
from flinkpy.connectors.files.reading.text_files import TextFileSource
from flinkpy.connectors.files.writing import columns_part
from flinkpy.connectors.files.writing.file_formats import (
    AvroFormat,
    CsvFormat,
    FileFormat,
    ParquetFormat,
    TextFormat,
)
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.connectors.object_sink import ObjectSink
from flinkpy.connectors.print_sink import PrintSink
from flinkpy.core.elements import ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.core.program.code import dumps, loads
from flinkpy.operators.sinks.sink_operator import SinkOperator
from flinkpy.operators.sinks.sink_port import Sink
from flinkpy.testing import embedded_environment
from tests.connectors.harness import Collected, operator_context, read_all


def write(
    sink: Sink,
    *batches: RowBatch | ColumnBatch,
    subtask: int = 0,
    parallelism: int = 1,
    fail: bool = False,
) -> None:
    """One subtask of the sink, from open to close."""
    operator = SinkOperator(loads(dumps(sink)))
    operator.setup(operator_context(subtask, parallelism), Collected())
    try:
        operator.open()
        for batch in batches:
            operator.process_batch(batch)
        if not fail:
            operator.finish()
    finally:
        operator.close()


def columns(**data: Any) -> ColumnBatch:
    return ColumnBatch(pa.RecordBatch.from_pydict(data))


# -- print -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("identifier", "parallelism", "prefix"),
    [(None, 1, ""), (None, 2, "2> "), ("out", 1, "out> "), ("out", 2, "out:2> ")],
)
def test_printed_lines_carry_identifier_and_subtask(
    identifier: str | None, parallelism: int, prefix: str, capsys: Any
) -> None:
    write(
        PrintSink(identifier),
        RowBatch([1, ("a", None)]),
        subtask=parallelism - 1,
        parallelism=parallelism,
    )
    assert capsys.readouterr().out == f"{prefix}1\n{prefix}('a', None)\n"


def test_printing_may_go_to_standard_error(capsys: Any) -> None:
    write(PrintSink(to_stderr=True), RowBatch(["x"]))
    assert capsys.readouterr().err == "x\n"


def test_what_standard_output_cannot_encode_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii", newline="\n"))
    write(PrintSink(), RowBatch(["plain", "snow \u2603", "half \ud800"]))
    assert written.getvalue() == b"plain\nsnow \\u2603\nhalf \\ud800\n"


def test_without_a_standard_output_nothing_is_printed_and_nothing_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    write(PrintSink(), RowBatch([1, 2]))


def test_a_formatter_says_how_a_value_is_printed(capsys: Any) -> None:
    write(PrintSink(formatter=lambda value: f"<{value}>"), RowBatch([1]))
    assert capsys.readouterr().out == "<1>\n"


# -- files -----------------------------------------------------------------------------------------


LINES = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))


def parts(path: Path) -> list[Path]:
    return sorted(file for file in path.iterdir() if not file.name.startswith("."))


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.lists(LINES, min_size=1, max_size=5), min_size=1, max_size=5))
def test_text_written_is_text_read(tmp_path: Path, batches: list[list[str]]) -> None:
    write(FileSink(tmp_path), *map(RowBatch, batches))
    [part] = parts(tmp_path)
    assert read_all(TextFileSource(part)) == [line for batch in batches for line in batch]


def test_every_subtask_writes_a_part_of_its_own_and_empty_ones_none(tmp_path: Path) -> None:
    for subtask, values in enumerate([["a"], [], ["b", "c"]]):
        write(
            FileSink(tmp_path / "new" / "out"),
            *([RowBatch(values)] if values else []),
            subtask=subtask,
            parallelism=3,
        )
    found = parts(tmp_path / "new" / "out")
    assert [file.name for file in found] == ["part-01234567-op-0.txt", "part-01234567-op-2.txt"]
    assert [file.read_text() for file in found] == ["a\n", "b\nc\n"]


def test_a_failed_subtask_leaves_nothing_a_reader_would_see(tmp_path: Path) -> None:
    write(FileSink(tmp_path), RowBatch(["a"]), fail=True)
    assert parts(tmp_path) == []
    with pytest.raises(ProgramError, match="no files in"):
        TextFileSource(tmp_path)


@dataclass
class City:
    name: str
    people: int


class Point(NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (RowBatch([("a,b", 1), ('"', None)]), [["a,b", "1"], ['"', ""]]),
        (RowBatch([City("Ulm", 1)]), [["name", "people"], ["Ulm", "1"]]),
        (RowBatch([{"k": 1, "v": 2}]), [["k", "v"], ["1", "2"]]),
        (RowBatch([Point(1, 2)]), [["x", "y"], ["1", "2"]]),
        (RowBatch(["plain", 3]), [["plain"], ["3"]]),
        (columns(a=[1, None], b=["x", "y"]), [["a", "b"], ["1", "x"], ["", "y"]]),
    ],
)
def test_csv_takes_records_of_every_kind(
    tmp_path: Path, batch: RowBatch | ColumnBatch, expected: list[list[str]]
) -> None:
    write(FileSink(tmp_path, "csv"), batch)
    assert list(csv.reader(parts(tmp_path)[0].read_text().splitlines())) == expected


def test_csv_columns_may_be_named(tmp_path: Path) -> None:
    write(
        FileSink(tmp_path, CsvFormat(columns=["word", "count"], delimiter="\t")),
        RowBatch([("a", 1)]),
        RowBatch([("b", 2)]),
    )
    assert parts(tmp_path)[0].read_text() == "word\tcount\na\t1\nb\t2\n"


@pytest.mark.parametrize(
    ("columns", "expected"), [(None, "a,b\n1,2\n4,3\n"), (["b", "a"], "b,a\n2,1\n3,4\n")]
)
def test_csv_fields_stand_under_their_names(
    tmp_path: Path, columns: list[str] | None, expected: str
) -> None:
    write(
        FileSink(tmp_path, CsvFormat(columns)),
        RowBatch([{"a": 1, "b": 2}]),
        RowBatch([{"b": 3, "a": 4}]),
    )
    assert parts(tmp_path)[0].read_text() == expected


# -- records of different shapes -------------------------------------------------------------------

TWO_COLUMNS = pa.schema([("a", pa.int64()), ("b", pa.int64())])
FIRST = RowBatch([{"a": 1, "b": 2}])


@pytest.mark.parametrize("form", ["csv", "parquet", "avro"])
@pytest.mark.parametrize("group_rows", [1, 100])
@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            RowBatch([{"b": 4, "a": 3}, {"a": 5}]),
            r"a record has no field 'b', which the first record of its \w+ file has: {'a': 5}; name",
        ),
        (
            RowBatch([{"a": 1, "b": 2, "c": 3}]),
            r"has a field 'c' that the first record of its \w+ file has not: {'a': 1, 'b': 2, 'c': 3}",
        ),
        (RowBatch([{"a": 1, "x": 2}]), r"has a field 'x' that the first record"),
        (RowBatch([City("Oslo", 2)]), r"has a field 'name' that the first record"),
        (RowBatch([(1,)]), r"\(1,\) has 1 fields, and the \w+ file has 2 columns: a, b"),
        (columns(a=[1]), "has no field 'b', which .*: a batch of columns a;"),
        (columns(a=[1], b=[2], c=[3]), "has a field 'c' that .*: a batch of columns a, b, c;"),
    ],
)
def test_a_record_of_another_shape_than_the_first_of_its_file_is_refused(
    form: str,
    group_rows: int,
    other: RowBatch | ColumnBatch,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns_part, "GROUP_ROWS", group_rows)
    with pytest.raises(ProgramError, match=message):
        write(FileSink(tmp_path, form), FIRST, other)
    assert parts(tmp_path) == []


def test_records_without_names_have_as_many_fields_as_the_first_of_their_file(
    tmp_path: Path,
) -> None:
    for form in ("csv", "parquet", "avro"):
        with pytest.raises(ProgramError, match=r"\(1,\) has 1 fields, and the .* file has 2"):
            write(FileSink(tmp_path, form), RowBatch([(1, 2), (1,)]))


@pytest.mark.parametrize(
    "form",
    [CsvFormat(columns=["a", "b"]), ParquetFormat(TWO_COLUMNS), AvroFormat(TWO_COLUMNS)],
    ids=["csv", "parquet", "avro"],
)
@pytest.mark.parametrize("is_columnar", [False, True])
def test_given_columns_are_null_where_a_record_has_none_and_no_others_are_taken(
    form: FileFormat, is_columnar: bool, tmp_path: Path
) -> None:
    def batch(**record: int) -> RowBatch | ColumnBatch:
        if is_columnar:
            return columns(**{name: [value] for name, value in record.items()})
        return RowBatch([record])

    write(FileSink(tmp_path / "in", form), batch(b=2), batch(b=3, a=4), RowBatch([Row(5, 6)]))
    [part] = parts(tmp_path / "in")
    if part.suffix == ".csv":
        assert part.read_text() == "a,b\n,2\n4,3\n5,6\n"
    elif part.suffix == ".parquet":
        assert pq.read_table(part).to_pydict() == {"a": [None, 4, 5], "b": [2, 3, 6]}
    for others in ({"a": 1, "b": 2, "c": 3}, {"b": 2, "c": 3}, {"x": 1, "y": 2}):
        name = next(name for name in others if name not in ("a", "b"))
        with pytest.raises(
            ProgramError, match=f"has a field '{name}' that is not among the file's columns"
        ):
            write(FileSink(tmp_path / "out", form), batch(**others))


def test_a_required_column_is_in_every_record(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), pa.field("b", pa.int64(), nullable=False)])
    with pytest.raises(
        ProgramError, match=r"has no field 'b', and the schema has nullable=False for it: {'a': 3}"
    ):
        write(FileSink(tmp_path, ParquetFormat(schema)), FIRST, RowBatch([{"a": 3}]))


def test_text_may_be_encoded_by_a_function(tmp_path: Path) -> None:
    write(
        FileSink(
            tmp_path, TextFormat(lambda value: value[0].upper(), charset="latin-1"), suffix=""
        ),
        RowBatch([("ä", 1)]),
    )
    assert parts(tmp_path)[0].read_bytes() == "Ä\n".encode("latin-1")
    assert parts(tmp_path)[0].suffix == ""


def test_json_lines_hold_an_object_per_record(tmp_path: Path) -> None:
    write(
        FileSink(tmp_path, "json"),
        RowBatch([City("Köln", 2), {"n": None}, [1]]),
        columns(a=[1], b=["x"]),
    )
    read = [json.loads(line) for line in parts(tmp_path)[0].read_text().splitlines()]
    assert read == [{"name": "Köln", "people": 2}, {"n": None}, [1], {"a": 1, "b": "x"}]


def test_rows_within_rows_are_objects_in_json(tmp_path: Path) -> None:
    nested = pa.array([[("k", {"x": 1})]], pa.map_(pa.string(), pa.struct([("x", pa.int64())])))
    write(
        FileSink(tmp_path, "json"),
        RowBatch([Row(a=1, b=Row(c=2)), {"d": [Row(1, None)]}]),
        columns(m=nested),
    )
    assert [json.loads(line) for line in parts(tmp_path)[0].read_text().splitlines()] == [
        {"a": 1, "b": {"c": 2}},
        {"d": [[1, None]]},
        {"m": {"k": {"x": 1}}},
    ]


def test_parquet_keeps_columns_as_they_are(tmp_path: Path) -> None:
    write(FileSink(tmp_path, "parquet"), columns(a=[1, 2], b=["x", None]), columns(a=[3], b=["z"]))
    assert pq.read_table(parts(tmp_path)[0]).to_pydict() == {"a": [1, 2, 3], "b": ["x", None, "z"]}


def test_parquet_takes_rows_with_the_schema_they_show(tmp_path: Path) -> None:
    write(FileSink(tmp_path, "parquet"), RowBatch([(1, "x")]), RowBatch([(2, None)]))
    assert pq.read_table(parts(tmp_path)[0]).to_pydict() == {"f0": [1, 2], "f1": ["x", None]}


def test_rows_that_do_not_fit_the_schema_are_told(tmp_path: Path) -> None:
    with pytest.raises(
        ProgramError,
        match=r"field 'f0' holds 1 \(int\) and 'one' \(str\), and a column has one type; declare",
    ):
        write(FileSink(tmp_path, "parquet"), RowBatch([(1, "x")]), RowBatch([("one", "x")]))
    with pytest.raises(
        ProgramError,
        match=(
            r"records do not fit the Parquet schema: field 'a': 2.9 \(float\) is no int64; "
            r"declare"
        ),
    ):
        write(
            FileSink(tmp_path, ParquetFormat(pa.schema([("a", pa.int64())]))),
            RowBatch([(1,)]),
            RowBatch([(2.9,)]),
        )


def test_what_comes_behind_the_first_group_of_rows_fits_its_types_or_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns_part, "GROUP_ROWS", 2)
    write(
        FileSink(tmp_path / "well", "parquet"),
        RowBatch([{"a": 1}, {"a": 2.5}]),
        RowBatch([{"a": 3}]),
    )
    assert pq.read_table(tmp_path / "well").to_pydict() == {"a": [1.0, 2.5, 3.0]}
    with pytest.raises(
        ProgramError,
        match=r"field 'a': 2.5 \(float\) is no int64, as the first 2 records were; declare",
    ):
        write(
            FileSink(tmp_path / "cut", "parquet"),
            RowBatch([{"a": 1}, {"a": 2}]),
            RowBatch([{"a": 2.5}]),
        )


def test_parquet_has_the_schema_of_the_declared_type(tmp_path: Path) -> None:
    declared = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.ROW_NAMED(["c"], [Types.STRING()])])
    write(
        FileSink(tmp_path, "parquet").of_type(declared),
        RowBatch([Row(a=1, b=None)]),
        RowBatch([Row(a=None, b=Row(c="x"))]),
    )
    table = pq.read_table(parts(tmp_path)[0])
    assert table.schema == pa.schema([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
    assert table.to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": {"c": "x"}}]
    # no column type: what the values show
    odd = Types.ROW_NAMED(["a"], [Types.PICKLED_BYTE_ARRAY()])
    write(FileSink(tmp_path / "odd", "parquet").of_type(odd), RowBatch([Row(a=Row(c=1))]))
    assert pq.read_table(parts(tmp_path / "odd")[0]).to_pylist() == [{"a": {"c": 1}}]


def test_parquet_brings_columns_to_its_schema(tmp_path: Path) -> None:
    form = ParquetFormat(pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    write(
        FileSink(tmp_path, form), columns(b=[2], a=pa.array([1], pa.int32())), columns(a=[3], b=[4])
    )
    assert pq.read_table(parts(tmp_path)[0]).to_pydict() == {"a": [1, 3], "b": [2, 4]}


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (RowBatch([(1, "x", 9)]), "has 3 fields, and the Parquet file has 2 columns"),
        (RowBatch([{"f0": 1, "more": 2}]), "'more'"),
        (columns(f0=[1], f1=["x"], more=[2]), "'more'"),
        (columns(f1=["x"]), "no field 'f0'"),
    ],
)
def test_what_has_no_column_in_a_parquet_file_is_not_lost_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: RowBatch | ColumnBatch, message: str
) -> None:
    monkeypatch.setattr(columns_part, "GROUP_ROWS", 1)
    with pytest.raises(ProgramError, match=message):
        write(FileSink(tmp_path, "parquet"), RowBatch([(1, "x")]), batch)


def test_a_file_uri_is_a_directory(tmp_path: Path) -> None:
    write(FileSink(f"file://{tmp_path}/a%20b"), RowBatch(["x"]))
    assert parts(tmp_path / "a b")[0].read_text() == "x\n"


def test_senseless_file_sinks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ProgramError, match="unknown file format 'exel'; there are text, csv, json, parquet"
    ):
        FileSink(tmp_path, "exel")
    (tmp_path / "file").touch()
    with pytest.raises(ProgramError, match="takes a directory"):
        FileSink(tmp_path / "file")


# -- objects ---------------------------------------------------------------------------------------

CALLS: list[Any] = []


class Recorder:
    def open(self) -> None:
        CALLS.append("open")

    def write(self, value: Any) -> None:
        CALLS.append(value)

    def flush(self) -> None:
        CALLS.append("flush")

    def close(self) -> None:
        CALLS.append("close")


def test_an_object_is_opened_written_flushed_and_closed() -> None:
    CALLS.clear()
    write(ObjectSink(Recorder()), RowBatch([1, 2]), columns(a=[3]))
    assert [call if isinstance(call, (str, int)) else tuple(call) for call in CALLS] == [
        "open",
        1,
        2,
        (3,),
        "flush",
        "close",
    ]


def test_an_error_of_the_object_names_operator_and_record() -> None:
    def refuse(value: int) -> None:
        if value == 2:
            raise ValueError("two is not welcome")

    with pytest.raises(UserCodeError, match="two is not welcome") as caught:
        write(ObjectSink(refuse), RowBatch([1, 2, 3]))
    assert caught.value.record == "2"


def test_what_cannot_be_written_to_is_no_sink() -> None:
    with pytest.raises(ProgramError, match="a int is no sink"):
        ObjectSink(5)


# -- PyFlink's builders ----------------------------------------------------------------------------


def test_files_are_written_and_read_by_pyflinks_builders(tmp_path: Path) -> None:
    config = OutputFileConfig.builder().with_part_prefix("lines").with_part_suffix(".log").build()
    builder = FileSystemSink.for_row_format(
        tmp_path, Encoder.simple_string_encoder()
    ).with_output_file_config(config)
    write(
        builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build(),
        RowBatch(["a", "b"]),
    )
    [part] = parts(tmp_path)
    assert part.name == "lines-01234567-op-0.log"
    source = (
        FileSource.for_record_stream_format(StreamFormat.text_line_format("utf-8"), tmp_path)
        .process_static_file_set()
        .build()
    )
    assert read_all(source) == ["a", "b"]


def test_the_bulk_builder_writes_parquet(tmp_path: Path) -> None:
    write(FileSystemSink.for_bulk_format(tmp_path).build(), columns(a=[1]))
    [hour] = parts(tmp_path)  # Flink's default: a folder for each hour of processing time
    assert pq.read_table(parts(hour)[0]).to_pydict() == {"a": [1]}


def test_a_text_is_no_stream_format() -> None:
    with pytest.raises(ProgramError, match="takes a StreamFormat"):
        FileSource.for_record_stream_format("text", "x")  # type: ignore[arg-type]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_two_sinks_of_a_job_write_into_one_folder(tmp_path: Path, parallelism: int) -> None:
    env = embedded_environment(parallelism=parallelism)
    for name in ("a", "b"):
        env.from_collection([name]).sink_to(FileSink(tmp_path))
    env.execute()
    assert sorted(part.read_text() for part in parts(tmp_path)) == ["a\n", "b\n"]


def test_a_sink_leaves_the_hidden_files_of_another_one_in_its_folder(tmp_path: Path) -> None:
    begun = tmp_path / ".part-01234567-other-0.txt.inprogress.0-0"
    begun.write_text("of a sink that has not failed\n")
    own = tmp_path / ".part-01234567-op-0.txt.inprogress.0-0"
    own.write_text("of an attempt that has\n")
    context = operator_context()
    again = replace(
        context, task=replace(context.task, attempt_id=context.task.attempt_id._replace(attempt=1))
    )
    FileSink(tmp_path).create_writer(again).close()
    assert list(tmp_path.iterdir()) == [begun]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: FileSink(path, CsvFormat(delimiter=";;")), "delimiter is one character"),
        (
            lambda path: FileSink(path, ParquetFormat(compression="zip")),
            "compression is one of none, snappy",
        ),
        (
            lambda path: FileSink(path, ParquetFormat(schema=Types.LONG())),
            "schema is a pyarrow schema",
        ),
        (
            lambda path: FileSink(path, buckets=cast("Any", "city")),
            "buckets= takes a BucketAssigner",
        ),
        (lambda path: FileSink(path, rolling=cast("Any", 1000)), "rolling= takes a RollingPolicy"),
    ],
)
def test_a_sink_of_wrong_options_is_refused_when_it_is_made(
    tmp_path: Path, make: Any, message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        make(tmp_path)


@pytest.mark.parametrize(
    ("columns", "record"),
    [
        (["zz"], {"a": 1, "b": 2}),
        (["a"], (1, 2)),
        (["a", "b", "c"], (1, 2)),
        (["x", "y", "z"], {"a": 1}),
        (["id", "price"], {"id": 1, "prise": 2}),
    ],
)
def test_a_record_that_does_not_fit_the_header_is_refused(
    tmp_path: Path, columns: list[str], record: Any
) -> None:
    with pytest.raises(
        ProgramError, match=r"has 2 fields, and the CSV file has|not among the file's columns"
    ):
        write(FileSink(tmp_path, CsvFormat(columns=columns)), RowBatch([record]))


# -- declared types in files of text ---------------------------------------------------------------

DECLARED = [Types.INT(), Types.DOUBLE(), Types.SQL_TIMESTAMP(), Types.LIST(Types.INT())]
MIDNIGHT = datetime.datetime(2024, 1, 1)


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize(
    "declared", [Types.ROW_NAMED(list("abcd"), DECLARED), Types.TUPLE(DECLARED)]
)
def test_files_of_text_have_values_of_the_declared_type(
    form: str, declared: TypeInformation, tmp_path: Path
) -> None:
    record = (3.0, np.int64(2), MIDNIGHT, [1])
    sink = FileSink(tmp_path, form).of_type(declared)
    write(sink, RowBatch([record, (None, None, None, None)]))
    [part] = tmp_path.iterdir()
    names = list("abcd") if isinstance(declared, RowTypeInfo) else ["f0", "f1", "f2", "f3"]
    lines = part.read_text().splitlines()
    if form == "csv":
        assert lines == [",".join(names), "3,2.0,2024-01-01 00:00:00,[1]", ",,,"]
    else:
        values = 3, 2.0, "2024-01-01 00:00:00", [1]
        assert list(map(json.loads, lines)) == [dict(zip(names, values)), dict.fromkeys(names)]
        assert "2.0, " in lines[0]


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "avro"])
@pytest.mark.parametrize(
    ("record", "why"),
    [
        ((80.42, 2.0, MIDNIGHT, [1]), "field 'f0': 80.42"),
        (("7", 2.0, MIDNIGHT, [1]), "field 'f0': '7'"),
        ((2**40, 2.0, MIDNIGHT, [1]), f"field 'f0': {2**40}"),
        ((1, 2**53 + 1, MIDNIGHT, [1]), "field 'f1': "),
        ((1, 2.0, MIDNIGHT.date(), [1]), "field 'f2': datetime.date"),
    ],
)
def test_a_value_that_is_not_of_the_declared_type_is_refused_in_every_format(
    form: str, record: Any, why: str, tmp_path: Path
) -> None:
    sink = FileSink(tmp_path, form).of_type(Types.TUPLE(DECLARED))
    with pytest.raises(ProgramError, match=re.escape(why)):
        write(sink, RowBatch([record]))
