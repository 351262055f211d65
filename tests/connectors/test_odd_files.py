"""Files that are not what they seem: other bytes, other forms, other kinds of file. Each is read
rightly, or told as what it is."""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import lzma
import os
import socket
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common import OutputTag
from flinkpy.connectors.files.paths import find_files
from flinkpy.connectors.files.reading.broken_lines import BrokenLine
from flinkpy.connectors.files.reading.column_files import (
    AvroSource,
    CsvSource,
    JsonLinesSource,
    ParquetSource,
)
from flinkpy.connectors.files.reading.record_ends import RecordEnds
from flinkpy.connectors.files.reading.text_files import TextFileSource
from flinkpy.connectors.source_api.source import Source
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import ErrorPolicy, StreamExecutionEnvironment
from tests.connectors.harness import World, read_all

BROKEN = OutputTag("broken")
KINDS: list[Any] = [CsvSource, JsonLinesSource, TextFileSource]


def rows(source: Source[Any]) -> list[Any]:
    return [value if isinstance(value, str) else tuple(value) for value in read_all(source)]


def file(tmp_path: Path, name: str, content: bytes) -> Path:
    (tmp_path / name).write_bytes(content)
    return tmp_path / name


# -- bytes that are no text ------------------------------------------------------------------------


@pytest.mark.finding("bugs 9")
def test_a_byte_that_is_not_in_the_charset_is_one_broken_line(tmp_path: Path) -> None:
    path = file(tmp_path, "a.txt", b"one\n\xffone\r\ntwo\nlast \xe9")
    with pytest.raises(
        ProgramError,
        match=(
            r"a\.txt, line 2: byte 0 of the line is not utf-8: .*; name the encoding with "
            r"charset_name=, or "
        ),
    ):
        rows(TextFileSource(path))
    assert rows(TextFileSource(path, on_error="skip")) == ["one", "two"]
    assert rows(TextFileSource(path, on_error="replace")) == [
        "one",
        "\ufffdone",
        "two",
        "last \ufffd",
    ]
    world = World(TextFileSource(path), policy=ErrorPolicy.divert(BROKEN))
    world.run()
    assert world.values == ["one", "two"]
    assert [letter.record for letter in world.letters] == [
        BrokenLine(str(path), 2, "\\xffone", "byte 0 of the line is not utf-8: invalid start byte"),
        BrokenLine(
            str(path), 4, "last \\xe9", "byte 5 of the line is not utf-8: unexpected end of data"
        ),
    ]
    world.close()


@pytest.mark.finding("bugs 9")
def test_read_text_file_takes_a_policy(tmp_path: Path) -> None:
    path = file(tmp_path, "a.txt", b"one\n\xff\ntwo\n")
    env = StreamExecutionEnvironment.get_execution_environment()
    lines = env.read_text_file(str(path), on_error=ErrorPolicy.divert(BROKEN))
    assert lines.get_side_output(BROKEN).map(
        lambda letter: (letter.record.line, letter.record.text)
    ).take() == [(2, "\\xff")]


def zipped(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.csv", content)
    return out.getvalue()


@pytest.mark.finding("bugs 9")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("packed", "ending", "message"),
    [
        (gzip.compress, "", r"compressed with gzip: give its name the ending \.gz"),
        (bz2.compress, "", r"compressed with bzip2: give its name the ending \.bz2"),
        (lzma.compress, ".xz", "compressed with xz, which Arrow does not read"),
        (zipped, ".zip", "a ZIP archive: unpack it"),
    ],
)
def test_a_compressed_file_is_told_as_what_it_is(
    tmp_path: Path, kind: Any, packed: Any, ending: str, message: str
) -> None:
    path = file(tmp_path, f"a.txt{ending}", packed(b'{"a": 1}\n'))
    with pytest.raises(ProgramError, match=r"a\.txt\S* is " + message):
        rows(kind(path))


@pytest.mark.finding("bugs 9")
def test_files_of_columns_are_told_where_text_is_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.csv")
    with pytest.raises(
        ProgramError, match=r"a\.csv is a Parquet file: read it with from_parquet\(\)"
    ):
        CsvSource(tmp_path / "a.csv")


@pytest.mark.finding("bugs 10")
@pytest.mark.parametrize("filled", [1, 512])
def test_zeros_behind_gzip_are_passed_over(tmp_path: Path, filled: int) -> None:
    content = gzip.compress(b"a,b\n" + b"1,x\n" * 10) + bytes(4 + filled)
    assert rows(CsvSource(file(tmp_path, "a.csv.gz", content))) == [(1, "x")] * 10
    assert rows(TextFileSource(tmp_path / "a.csv.gz")) == ["a,b", *["1,x"] * 10]


# -- JSON, CSV and Avro as people write them -------------------------------------------------------


@pytest.mark.finding("bugs 10")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b'[{"a": 1}, {"a": 2}]',
            r"line 1: the line is an array, and a line of JSON lines is one object",
        ),
        (b'[\n{"a": 1}\n]\n', r"line 1: the line is an array"),
        (b'{"a": 1},\n{"a": 2},\n', r"line 1: a comma follows the object"),
        (b'{\n  "a": 1\n}\n', r"line 1: the object does not end on its line"),
    ],
)
@pytest.mark.parametrize(
    "schema", [None, pa.schema([("a", pa.int64())])], ids=["inferred", "declared"]
)
def test_json_that_is_no_lines_is_told(
    tmp_path: Path, content: bytes, message: str, schema: Any
) -> None:
    with pytest.raises(ProgramError, match=message):
        rows(JsonLinesSource(file(tmp_path, "a.json", content), schema=schema))


@pytest.mark.finding("bugs 10")
def test_more_levels_than_arrow_sends_are_told(tmp_path: Path) -> None:
    fine = file(tmp_path, "a.json", b'{"a": ' + b'{"a": ' * 50 + b"1" + b"}" * 51 + b"\n")
    assert (
        len(StreamExecutionEnvironment.get_execution_environment().from_json_lines(fine).take())
        == 1
    )
    deep = file(tmp_path, "b.json", b'{"a": ' + b"[" * 62 + b"1" + b"]" * 62 + b"}\n")
    with pytest.raises(
        ProgramError,
        match=r"column 'a' has more than 60 levels of objects and lists within each other",
    ):
        JsonLinesSource(deep)


@pytest.mark.finding("bugs 10")
def test_names_with_blanks_are_shown_in_quotes(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", b"a, b\n1,2\n")
    with pytest.raises(ProgramError, match="no column 'b'; it has a, ' b'"):
        CsvSource(path, ["b"])
    with pytest.raises(KeyError, match=r"no field 'b' \(a, ' b'\)"):
        read_all(CsvSource(path))[0]["b"]


@pytest.mark.finding("bugs 10")
def test_an_avro_union_of_one_type_is_that_type(tmp_path: Path) -> None:
    fastavro = pytest.importorskip("fastavro")
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "a", "type": ["int"]},
            {"name": "b", "type": {"type": "array", "items": ["long"]}},
        ],
    }
    with open(tmp_path / "a.avro", "wb") as out:
        fastavro.writer(out, fastavro.parse_schema(schema), [{"a": 1, "b": [2]}])
    assert rows(AvroSource(tmp_path / "a.avro")) == [(1, [2])]


# -- escapes and decimal commas --------------------------------------------------------------------


def escaped(value: str) -> str:
    return "".join("\\" + letter if letter in '\\"' else letter for letter in value)


@pytest.mark.finding("bugs 5")
def test_a_dump_with_escapes_is_read_by_option_and_told_without_it(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", b's,n\n"say \\"hi\\"",1\n"a\\\\",2\n\\N,3\na\\,b,4\nx\\\ny,5\n')
    assert rows(CsvSource(path, escape="\\", null_values=["\\N"])) == [
        ('say "hi"', 1),
        ("a\\", 2),
        (None, 3),
        ("a,b", 4),
        ("x\ny", 5),
    ]
    plain = file(tmp_path, "b.csv", b's,n\n"say \\"hi\\"",1\n')
    with pytest.raises(
        ProgramError,
        match=(
            r"line 2: a field has text behind its closing quote, and a backslash before that: "
            r".*give escape="
        ),
    ):
        rows(CsvSource(plain))
    assert rows(CsvSource(file(tmp_path, "c.csv", b's,n\n"C:\\",1\na\\"b,2\n"x"y,3\n'))) == [
        ("C:\\", 1),
        ('a\\"b', 2),
        ("xy", 3),
    ]


@pytest.mark.finding("bugs 5")
@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.text(st.sampled_from('ab,"\\\n;'), max_size=6), min_size=1, max_size=6),
    block=st.integers(1, 20),
)
def test_every_text_with_escapes_comes_back_from_blocks_of_any_size(
    values: list[str], block: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = "s,n\n" + "".join(f'"{escaped(value)}",{at}\n' for at, value in enumerate(values))
    path = file(tmp_path_factory.mktemp("escapes"), "a.csv", text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flinkpy.connectors.files.reading.csv.open_csv.BLOCK_BYTES", block)
        types = pa.schema([("s", pa.string()), ("n", pa.int64())])
        assert rows(CsvSource(path, schema=types, escape="\\")) == [
            (value, at) for at, value in enumerate(values)
        ]


@pytest.mark.finding("bugs 5")
def test_decimal_commas_are_read_by_option(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", b"x;d\n1,5;2,25\n-0,5;1\n")
    assert rows(CsvSource(path, delimiter=";", decimal_point=",")) == [(1.5, 2.25), (-0.5, 1.0)]
    for options, message in (
        ({"decimal_point": ","}, "decimal_point"),
        ({"escape": '"'}, "escape"),
        ({"escape": "ab"}, "escape"),
    ):
        with pytest.raises(ProgramError, match=message):
            CsvSource(path, **options)  # type: ignore[arg-type]


def test_without_escapes_a_backslash_is_a_letter() -> None:
    assert RecordEnds(b",", b'"').all(b"a\\\nb\n").tolist() == [3, 5]
    assert RecordEnds(b",", b'"', b"\\").all(b"a\\\nb\n").tolist() == [5]


# -- what Python's types do not hold ---------------------------------------------------------------


@pytest.mark.finding("bugs 11")
@pytest.mark.parametrize(
    ("kind", "count", "shown"),
    [
        (pa.timestamp("s"), 300_000_000_000, "11476-08-15 05:20"),
        (pa.timestamp("s", "UTC"), -300_000_000_000, "-7537-05-18 18:40"),
        (pa.date32(), 3_000_000, "10183-09-21"),
        (pa.time64("ns"), 1001, "00:00:00.000001001"),
        (pa.duration("s"), 1 << 60, "1152921504606846976"),
    ],
)
def test_a_value_beyond_python_is_told_with_its_column_and_kept_in_columns(
    tmp_path: Path, kind: Any, count: int, shown: str
) -> None:
    for column in (
        pa.array([0, count], kind),
        pa.array([{"t": 0}, {"t": count}], pa.struct([("t", kind)])),
    ):
        pq.write_table(pa.table({"n": [1, 2], "v": column}), tmp_path / "a.parquet")
        env = StreamExecutionEnvironment.get_execution_environment()
        with pytest.raises(
            Exception,
            match=(
                rf"row 1 of a batch: column 'v' holds .*{shown}.*, which no object of Python "
                r"holds"
            ),
        ):
            env.from_parquet(tmp_path / "a.parquet").map(lambda row: row).take()
        assert env.from_parquet(tmp_path / "a.parquet").to_arrow().num_rows == 2


def test_times_of_nanoseconds_that_are_whole_microseconds_are_times(tmp_path: Path) -> None:
    times = pa.time64("ns")
    pq.write_table(
        pa.table(
            {"t": pa.array([1000, None], times), "l": pa.array([[2000], []], pa.list_(times))}
        ),
        tmp_path / "a.parquet",
    )
    rows = read_all(ParquetSource(tmp_path / "a.parquet"))
    assert [(row["t"], row["l"]) for row in rows] == [
        (datetime.time(0, 0, 0, 1), [datetime.time(0, 0, 0, 2)]),
        (None, []),
    ]


# -- what lies in a folder -------------------------------------------------------------------------


@pytest.mark.finding("bugs 11")
def test_what_is_no_plain_file_in_a_folder_is_left_out_and_told_where_it_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(tmp_path, "a.csv", b"n\n1\n")
    file(tmp_path, ".hidden.csv", b"n\n9\n")
    file(tmp_path, "empty.csv", b"")
    (tmp_path / "folder.csv").mkdir()
    file(tmp_path / "folder.csv", "b.csv", b"n\n2\n")
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nowhere")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)
        server.bind("socket.csv")
        assert [Path(info.path).name for info in find_files(tmp_path)] == [
            "a.csv",
            "empty.csv",
            "b.csv",
        ]
        assert sorted(rows(CsvSource(tmp_path))) == [(1,), (2,)]
        assert sorted(rows(CsvSource(str(tmp_path / "*.csv")))) == [(1,), (2,)]
    for name in ("gone.csv", "pipe.csv", "socket.csv"):
        assert caplog.text.count(f"{name} is ") == 1
        with pytest.raises(ProgramError, match=rf"{name}"):
            CsvSource(tmp_path / name)


@pytest.mark.parametrize("before", [b"", b"\n \r\n ", b'{"a": 1}\n'])
def test_a_line_of_json_that_is_null_is_a_broken_line_and_does_not_end_the_process(
    before: bytes, tmp_path: Path
) -> None:
    path = file(tmp_path, "a.json", before + b'null\nnull\n{"a": 2}\n')
    line = before.count(b"\n") + 1
    first = [(1,)] if b"a" in before else []
    declared = pa.schema([("a", pa.int64())])
    for schema in (None, declared):
        with pytest.raises(ProgramError, match=rf"a\.json.*line {line}: "):
            rows(JsonLinesSource(path, schema=schema))
        assert rows(JsonLinesSource(path, schema=schema, on_error="skip")) == [*first, (2,)]
    assert rows(JsonLinesSource(path, schema=declared, on_error="null")) == [
        *first,
        (None,),
        (None,),
        (2,),
    ]
    world = World(JsonLinesSource(path, schema=declared), policy=ErrorPolicy.divert(BROKEN))
    world.run()
    assert [(letter.record.line, letter.record.text.strip()) for letter in world.letters] == [
        (line, "null"),
        (line + 1, "null"),
    ]
    world.close()


@pytest.mark.parametrize("on_error", ["skip", "null"])
@pytest.mark.parametrize("broken", [b'{"a":', b"[]", b"5"])
def test_columns_that_appear_behind_a_broken_line_are_columns(
    broken: bytes, on_error: Any, tmp_path: Path
) -> None:
    path = file(tmp_path, "a.json", b'\n{"a": 1}\n' + broken + b'\n{"a": 2.5, "b": "x"}\n')
    left_out = [] if on_error == "skip" else [(None, None)]
    assert rows(JsonLinesSource(path, on_error=on_error)) == [(1.0, None), *left_out, (2.5, "x")]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("csv", "a,b\n1,x\n3\n4.5,y\n"),
        ("json_lines", '{"a": 1, "b": "x"}\n3\n{"a": 4.5, "b": "y"}\n'),
    ],
)
def test_broken_lines_among_the_first_are_diverted_where_types_are_inferred(
    form: str, text: str, tmp_path: Path
) -> None:
    path = file(tmp_path, "a.txt", text.encode())
    env = StreamExecutionEnvironment.get_execution_environment()
    read = getattr(env, f"from_{form}")
    lines = read(path, on_error=ErrorPolicy.divert(BROKEN))
    assert [tuple(row) for row in lines.take()] == [(1.0, "x"), (4.5, "y")]
    lines = read(path, on_error=ErrorPolicy.divert(BROKEN))
    assert lines.get_side_output(BROKEN).map(lambda letter: letter.record.text).take() == ["3"]
    with pytest.raises(ProgramError, match="line"):
        read(path, on_error=ErrorPolicy.fail()).take()
    with pytest.raises(ProgramError, match="this is 'divert'"):
        read(path, on_error="divert")
