"""CSV and JSON lines as people really have them: broken lines, quotes anywhere, other encodings,
columns that come late."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from flinkpy.common import OutputTag, Row
from flinkpy.connectors.files.reading import json_source
from flinkpy.connectors.files.reading.avro_source import AvroSource
from flinkpy.connectors.files.reading.broken_lines import BrokenLine
from flinkpy.connectors.files.reading.column_files import CsvSource, JsonLinesSource, ParquetSource
from flinkpy.connectors.files.reading.csv import csv_source, open_csv
from flinkpy.connectors.files.reading.record_ends import RecordEnds
from flinkpy.connectors.files.writing.file_formats import AvroFormat, ParquetFormat
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.connectors.source_api.source import Source
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import ErrorPolicy, StreamExecutionEnvironment
from flinkpy.formats.json.json_columns import JsonColumnarDecoder
from tests.connectors.harness import World, read_all

PER_EXAMPLE = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
BROKEN = OutputTag("broken")
TYPES = pa.schema([("city", pa.string()), ("price", pa.int64())])


def rows(source: Source[Any], **options: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in read_all(source, **options)]


def diverted(
    source: Source[Any], parallelism: int = 1
) -> tuple[list[tuple[Any, ...]], list[BrokenLine]]:
    """The rows of a source, and what its dead letters are of."""
    world = World(source, parallelism, policy=ErrorPolicy.divert(BROKEN))
    try:
        world.run()
        assert not world.errors
        return [tuple(row) for row in world.values], [letter.record for letter in world.letters]
    finally:
        world.close()


# -- where records end -----------------------------------------------------------------------------


@PER_EXAMPLE
@given(
    text=st.text(st.sampled_from('ab,"\n\r'), max_size=60),
    block=st.integers(1, 30),
    quote=st.sampled_from(['"', None]),
)
@example('a"b,"c\n",d\n', 1, '"')
@example('a,b\rc,d\n"e\nf",g\n', 8, '"')
@example('"a""\n",""\n"",b', 1, '"')
def test_blocks_of_any_size_give_the_records_that_arrow_finds_in_the_whole(
    tmp_path: Path, text: str, block: int, quote: str | None
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    types = pa.schema([("x", pa.string()), ("y", pa.string())])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_csv, "BLOCK_BYTES", block)
        try:
            got: Any = rows(CsvSource(path, schema=types, header=False, quote_char=quote))
        except ProgramError:
            got = "refused"
    assert got == (
        "refused"
        if quote and RecordEnds(b",", b'"').never_closed(text.encode()) is not None
        else by_arrow(text, types, quote)
    )


def by_arrow(text: str, types: pa.Schema, quote: str | None) -> Any:
    if not text.strip("\r\n"):
        return []
    try:
        read = pyarrow.csv.open_csv(
            pa.BufferReader(text.encode()),
            pyarrow.csv.ReadOptions(
                column_names=types.names, use_threads=False, block_size=1 << 20
            ),
            pyarrow.csv.ParseOptions(quote_char=quote or False, newlines_in_values=True),
            pyarrow.csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        ).read_all()
    except pa.ArrowException:
        return "refused"
    return [tuple(row.values()) for row in read.to_pylist()]


@pytest.mark.parametrize(
    "text",
    [
        "n,s\r\n1,a\r\n2,b\r\n",
        "n,s\n1,a\n2,b",
        "\ufeffn,s\n1,a\n2,b\n",
        "n,s\n\n1,a\n\n2,b\n\n",
        "n,s\r1,a\r2,b\r",
    ],
)
def test_line_ends_and_byte_order_marks_of_all_kinds(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode())
    assert rows(CsvSource(tmp_path / "t.csv")) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "latin-1", "cp1252", "shift-jis", "utf-8-sig"]
)
def test_files_of_other_encodings(tmp_path: Path, encoding: str) -> None:
    word = "日本" if encoding in ("shift-jis", "utf-16") else "café"
    (tmp_path / "t.csv").write_bytes(f'n,s\n1,"{word},\n{word}"\n2,b\n'.encode(encoding))
    assert rows(CsvSource(tmp_path / "t.csv", encoding=encoding)) == [
        (1, f"{word},\n{word}"),
        (2, "b"),
    ]


def test_lines_before_the_header_comments_and_given_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        'made by hand\n"on, a Monday\n# nobody reads this\nn,s\n1,a\n#2,b\n3,"c\n# no comment"\n'
    )
    assert rows(CsvSource(tmp_path / "t.csv", skip_rows=2, comment="#")) == [
        (1, "a"),
        (3, "c\n# no comment"),
    ]
    read = CsvSource(
        tmp_path / "t.csv",
        skip_rows=2,
        comment="#",
        column_names=["number", "text"],
        columns=["text"],
    )
    assert rows(read) == [("a",), ("c\n# no comment",)]
    (tmp_path / "bare.csv").write_text("1,a\n2,b\n")
    assert rows(CsvSource(tmp_path / "bare.csv", header=False, column_names=["n", "s"])) == [
        (1, "a"),
        (2, "b"),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"skip_rows": -1}, "a number of lines from 0 on"),
        ({"comment": ""}, "the text that lines of comments begin with"),
        ({"header": "yes"}, "header= is True or False, this is 'yes'"),
        ({"newlines_in_values": 0}, "newlines_in_values= is True or False"),
        ({"column_names": "ab"}, "a list of texts"),
        ({"on_error": "ignore"}, '"fail", "null" or "skip"'),
    ],
)
def test_options_that_mean_nothing_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ProgramError, match=message):
        CsvSource(tmp_path / "t.csv", **options)


@pytest.mark.parametrize(("text", "lines"), [("a,b\n1,2\n", 2), ("a,b\n1,2", 2), ("\n" * 100, 100)])
def test_more_skipped_rows_than_lines_are_refused(tmp_path: Path, text: str, lines: int) -> None:
    (tmp_path / "t.csv").write_text(text)
    assert rows(CsvSource(tmp_path / "t.csv", skip_rows=lines, header=False, schema=TYPES)) == []
    with pytest.raises(
        ProgramError,
        match=rf"t\.csv as Csv: it has {lines} lines, and skip_rows={lines + 1} passes over more",
    ):
        read_all(CsvSource(tmp_path / "t.csv", skip_rows=lines + 1, header=False, schema=TYPES))


@pytest.mark.parametrize(
    ("text", "line"), [("a,n\nx,1\n\ny\n", 4), ('# one\n\na,n\n"x\ny",1\n#\ny,2,3\n', 7)]
)
def test_a_broken_line_among_the_first_has_its_number_where_the_program_reads_it(
    tmp_path: Path, text: str, line: int
) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(
        ProgramError, match=rf"t\.csv as Csv: line {line}: CSV parse error: Expected 2 columns"
    ):
        CsvSource(tmp_path / "t.csv", comment="#")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ('{"n": 1}\n{"n": }\n', 2, "Invalid value"),
        ('{"n": 1}\n\n{"n": "k"}\n', 3, r"Column\(/n\) changed from number to string"),
        ('{"n": 1}\n' * 200_000 + '{"n": }\n', 200_001, "Invalid value"),
    ],
)
def test_a_line_of_json_that_shows_no_types_has_its_number(
    tmp_path: Path, text: str, line: int, why: str
) -> None:
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(ProgramError, match=rf"t\.jsonl as JsonLines: line {line}: .*{why}"):
        JsonLinesSource(tmp_path / "t.jsonl", infer_all=True)


@pytest.mark.parametrize(
    ("text", "line", "broken", "read"),
    [
        ('x,1\nOslo,"2\ny,3\n', 2, 'Oslo,"2', [("x", 1), ("Oslo", None), ("y", 3)]),
        ('"x,1\ny,2\n', 1, '"x,1', [(None, None), ("y", 2)]),
        ('x,1\n"a\nb","2', 2, '"a\nb","2', [("x", 1), ("a\nb", None)]),
    ],
)
def test_a_quote_that_is_never_closed_breaks_its_own_line_and_no_other(
    tmp_path: Path, text: str, line: int, broken: str, read: list[Any]
) -> None:
    (tmp_path / "t.csv").write_text(text)
    options: dict[str, Any] = dict(schema=TYPES, header=False, comment="#")
    assert rows(CsvSource(tmp_path / "t.csv", on_error="null", **options)) == read
    letter = BrokenLine(
        str(tmp_path / "t.csv"), line, broken, "a quote is not closed up to the end of the file"
    )
    assert diverted(CsvSource(tmp_path / "t.csv", **options)) == (
        [row for row in read if None not in row],
        [letter],
    )
    with pytest.raises(ProgramError, match=rf"t\.csv as Csv: line {line}: a quote is not closed"):
        read_all(CsvSource(tmp_path / "t.csv", **options))


def test_a_quote_in_a_comment_need_not_be_closed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('x,1\n#,"no\ny,2\n')
    assert rows(CsvSource(tmp_path / "t.csv", schema=TYPES, header=False, comment="#")) == [
        ("x", 1),
        ("y", 2),
    ]


def test_a_header_with_a_quote_that_is_never_closed_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,"b\n1,2\n')
    with pytest.raises(ProgramError, match="a quote in the line of the header is not closed"):
        CsvSource(tmp_path / "t.csv")


def test_a_quote_that_is_never_closed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_csv, "LONGEST_RECORD", 1 << 20)
    (tmp_path / "t.csv").write_text('n,s\n1,"open\n' + "2,b\n" * 1_000_000)
    with pytest.raises(
        ProgramError,
        match=r"more than 1 MB: perhaps a quote is not closed. It begins with b'1,\"open",
    ):
        read_all(CsvSource(tmp_path / "t.csv"))


# -- broken lines of CSV ---------------------------------------------------------------------------

LINE = st.one_of(
    st.tuples(
        st.sampled_from(["Oslo", '"Oslo"', '"a\nb"', "", '""']), st.integers(-5, 99).map(str)
    ).map(",".join),
    st.sampled_from(
        [
            "Oslo",
            "Oslo,1,2",
            "Oslo,many",
            "Oslo,1.5",
            ",,",
            'x"y,',
            '"a\n\nb",none',
            "Oslo,99999999999999999999",
            '"a\nb",1,2',
            "\udcff,1",
        ]
    ),
)


@lru_cache(maxsize=1000)
def plainly(line: str) -> tuple[Any, ...] | None:
    """The row of a line; None if it is broken."""
    data = line.encode("utf-8", "surrogateescape") + b"\n"
    try:
        read = pyarrow.csv.read_csv(
            pa.BufferReader(data),
            pyarrow.csv.ReadOptions(column_names=TYPES.names),
            pyarrow.csv.ParseOptions(newlines_in_values=True),
            pyarrow.csv.ConvertOptions(
                column_types=TYPES,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowException:
        return None
    return tuple(read.to_pylist()[0].values())


@PER_EXAMPLE
@given(
    lines=st.lists(LINE, max_size=25),
    block=st.sampled_from([1, 20, 1 << 20]),
    batch=st.sampled_from([1, 3, 1000]),
)
def test_broken_lines_are_left_out_or_diverted_with_their_place(
    tmp_path: Path, lines: list[str], block: int, batch: int
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(
        b"city,price\n"
        + b"".join(line.encode("utf-8", "surrogateescape") + b"\n" for line in lines)
    )
    wanted = [row for row in map(plainly, lines) if row is not None]
    places = [
        2 + sum(other.count("\n") + 1 for other in lines[:at])
        for at, line in enumerate(lines)
        if plainly(line) is None
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_csv, "BLOCK_BYTES", block)
        source = CsvSource(path, schema=TYPES, batch_rows=batch)
        assert rows(CsvSource(path, schema=TYPES, batch_rows=batch, on_error="skip")) == wanted
        got, broken = diverted(source)
        assert got == wanted
        assert [(each.file, each.line) for each in broken] == [
            (str(path), place) for place in places
        ]
        assert [each.text for each in broken] == [
            line.replace("\udcff", "\\xff") for line in lines if plainly(line) is None
        ]
        assert len(rows(CsvSource(path, schema=TYPES, batch_rows=batch, on_error="null"))) == len(
            lines
        )
        if places:
            with pytest.raises(
                ProgramError, match=rf"cannot read .*t.csv as Csv: line {places[0]}: "
            ):
                read_all(source)


def test_what_is_wrong_with_a_line_is_null(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        'city,price,share\nOslo,many,0.5\nRome\nParis,1,2,3\n"say '
        '""hi""",x,\n,2.5,1e3\nBergen,7,no\n'
    )
    schema = pa.schema([("city", pa.string()), ("price", pa.int64()), ("share", pa.float64())])
    assert rows(CsvSource(tmp_path / "t.csv", schema=schema, on_error="null")) == [
        ("Oslo", None, 0.5),
        ("Rome", None, None),
        ("Paris", 1, 2.0),
        ('say "hi"', None, None),
        (None, None, 1000.0),
        ("Bergen", 7, None),
    ]
    assert rows(CsvSource(tmp_path / "t.csv", ["share", "city"], schema, on_error="null"))[:3] == [
        (0.5, "Oslo"),
        (None, "Rome"),
        (2.0, "Paris"),
    ]


@PER_EXAMPLE
@given(steps=st.integers(0, 60), batch=st.integers(1, 9), good=st.lists(st.booleans(), max_size=80))
def test_from_a_checkpoint_no_row_and_no_broken_line_comes_twice(
    tmp_path: Path, steps: int, batch: int, good: list[bool]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "city,price\n"
        + "".join(f"c,{at}\n" if each else f"c,x{at}\n" for at, each in enumerate(good))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_csv, "BLOCK_BYTES", 40)
        first = World(
            CsvSource(path, schema=TYPES, batch_rows=batch), policy=ErrorPolicy.divert(BROKEN)
        )
        for _ in range(steps):
            first.step()
        second = first.checkpoint()
        second.run()
        assert [row.price for row in first.values + second.values] == [
            at for at, each in enumerate(good) if each
        ]
        assert [letter.record.line for letter in first.letters + second.letters] == [
            at + 2 for at, each in enumerate(good) if not each
        ]
        first.close()
        second.close()


def test_a_program_reads_the_broken_lines_as_dead_letters(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.csv.gz").write_bytes(
            gzip.compress(f"city,price\nOslo,{number}\nRome,free\n".encode())
        )
    env = StreamExecutionEnvironment.get_execution_environment()
    sales = env.from_csv(tmp_path, schema=TYPES, on_error=ErrorPolicy.divert(BROKEN))
    broken = sales.get_side_output(BROKEN).map(
        lambda letter: (
            Path(letter.record.file).name,
            letter.record.line,
            letter.record.text,
            letter.message,
        )
    )
    got = broken.take(10)
    assert [each[:3] for each in sorted(got)] == [
        (f"{number}.csv.gz", 3, "Rome,free") for number in range(3)
    ]
    assert all("free" in each[3] for each in got)
    assert sorted(
        row.price
        for row in env.from_csv(tmp_path, schema=TYPES)
        .on_error(ErrorPolicy.divert(BROKEN))
        .take(10)
    ) == [0, 1, 2]
    with pytest.raises(ProgramError, match="leave the retries out"):
        env.from_csv(tmp_path, schema=TYPES, on_error=ErrorPolicy.retry(1))
    with pytest.raises(
        ProgramError, match=r"on_error\(\) is not for a source.* parse them in a map\(\)"
    ):
        env.from_collection([1]).on_error(ErrorPolicy.divert(BROKEN))


# -- JSON lines ------------------------------------------------------------------------------------


def test_broken_lines_of_json_are_treated_alike(tmp_path: Path) -> None:
    lines = [
        '{"city": "Oslo", "price": 1}',
        "{broken",
        '{"city": "Rome", "price": "many"}',
        '{"price": 2}',
        "[1]",
        '{"city": "Bergen", "price": 3.5}',
        "\udcff",
    ]
    path = tmp_path / "t.jsonl"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    good = [("Oslo", 1), (None, 2)]
    assert rows(JsonLinesSource(path, schema=TYPES, on_error="skip")) == good
    got, broken = diverted(JsonLinesSource(path, schema=TYPES))
    assert got == good
    assert [(each.line, each.text) for each in broken] == [
        (2, lines[1]),
        (3, lines[2]),
        (5, lines[4]),
        (6, lines[5]),
        (7, "\\xff"),
    ]
    assert rows(JsonLinesSource(path, schema=TYPES, on_error="null")) == [
        ("Oslo", 1),
        (None, None),
        ("Rome", None),
        (None, 2),
        (None, None),
        ("Bergen", None),
        (None, None),
    ]
    with pytest.raises(ProgramError, match=r"cannot read .*t.jsonl as JsonLines: line 2: "):
        read_all(JsonLinesSource(path, schema=TYPES))


def test_the_place_of_a_broken_line_is_that_in_the_file_whoever_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_source, "_BLOCK_BYTES", 1000)
    path = tmp_path / "t.jsonl"
    path.write_text(
        "".join(
            f'{{"n": {number}}}\n' if number % 1000 else f'{{"n": "{number}x"}}\n'
            for number in range(30_000)
        )
    )
    got, broken = diverted(
        JsonLinesSource(path, schema=pa.schema([("n", pa.int64())]), split_bytes=1), parallelism=3
    )
    assert len(got) == 30_000 - 30
    assert sorted((each.line, each.text) for each in broken) == [
        (number + 1, f'{{"n": "{number}x"}}') for number in range(0, 30_000, 1000)
    ]


def test_fields_that_come_late_are_found_if_all_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_source, "_BLOCK_BYTES", 60)
    early: list[dict[str, Any]] = [{"n": 1}, {"n": 2, "in": {"a": 1}}, {"n": None}]
    records = [*early * 20, {"late": "x", "in": {"b": [1.5]}, "n": 3}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(ProgramError, match="is not in the schema"):
        read_all(JsonLinesSource(tmp_path / "t.jsonl"))
    source = JsonLinesSource(tmp_path / "t.jsonl", infer_all=True)
    inner = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.float64()))])
    assert source.schema == pa.schema([("n", pa.int64()), ("in", inner), ("late", pa.string())])
    assert rows(source)[-1] == (3, Row(a=None, b=[1.5]), "x")
    assert rows(
        JsonLinesSource(
            tmp_path / "t.jsonl", schema=pa.schema([("n", pa.int64())]), ignore_extra_fields=True
        )
    )[-1] == (3,)


# -- what the errors say ---------------------------------------------------------------------------


def test_a_header_line_needs_no_line_end(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n,s")
    source = CsvSource(tmp_path / "t.csv")
    assert source.schema.names == ["n", "s"]
    assert rows(source) == []


@pytest.mark.parametrize("kind", [CsvSource, JsonLinesSource])
@pytest.mark.parametrize(
    "content",
    [b"no gzip at all\n", gzip.compress(b'{"a": 1}\n' * 1000)[:-20]],
    ids=["no gzip", "cut"],
)
def test_a_compressed_file_that_cannot_be_read_is_named(
    tmp_path: Path, kind: Any, content: bytes
) -> None:
    (tmp_path / "t.gz").write_bytes(content)
    with pytest.raises(ProgramError, match=r"cannot read .*t\.gz as "):
        kind(tmp_path / "t.gz")


def test_a_value_of_another_type_is_told_with_its_column_and_what_to_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_csv, "BLOCK_BYTES", 16)
    monkeypatch.setattr(csv_source, "SHOWN_BYTES", 16)
    (tmp_path / "t.csv").write_text("n,s\n" + "1,a\n" * 20 + "x,b\n")
    with pytest.raises(
        ProgramError,
        match=(
            r"line 22: column 'n': .* 'x'; the types are those of the first lines, give schema= "
            r"or infer_all=True"
        ),
    ):
        rows(CsvSource(tmp_path / "t.csv"))
    declared = pa.schema([("n", pa.int64()), ("s", pa.string())])
    with pytest.raises(
        ProgramError, match=r"column 'n': CSV conversion error to int64: invalid value 'x'$"
    ):
        rows(CsvSource(tmp_path / "t.csv", ["n"], declared))
    (tmp_path / "t.csv").write_bytes(b"n,s\n1,\xff\n")
    with pytest.raises(
        ProgramError, match=r"column 's': .*; name the file's encoding with encoding="
    ):
        rows(CsvSource(tmp_path / "t.csv", schema=declared))


def test_csv_files_that_each_have_columns_of_their_own_are_refused(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b,d\n1,2,4\n")
    (tmp_path / "2.csv").write_text("b,a,c\n20,10,30\n")
    with pytest.raises(
        ProgramError,
        match=(
            r"2\.csv has the columns 'c', and .*1\.csv has 'd' instead; give schema=, or "
            r"columns= "
        ),
    ):
        rows(CsvSource(tmp_path))
    assert rows(CsvSource(tmp_path, ["a", "b"])) == [(1, 2), (10, 20)]
    assert rows(CsvSource(tmp_path, schema=pa.schema([("b", pa.int64())]))) == [(2,), (20,)]


def test_an_unknown_field_is_named_also_within_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_source, "_BLOCK_BYTES", 16)
    (tmp_path / "t.jsonl").write_text('{"o": {"a": 1}}\n' * 5 + '{"o": {"b": 2}, "late": 1}\n')
    with pytest.raises(
        ProgramError,
        match=(
            r"line 6: field 'o\.b', 'late' is not in the schema \(o\); .* give schema= or "
            r"infer_all=True"
        ),
    ):
        rows(JsonLinesSource(tmp_path / "t.jsonl"))
    with pytest.raises(
        ProgramError,
        match=r"line 6: field 'late' .*; with ignore_extra_fields=True such fields are left out",
    ):
        rows(
            JsonLinesSource(
                tmp_path / "t.jsonl",
                schema=pa.schema([("o", pa.struct([("a", pa.int64()), ("b", pa.int64())]))]),
            )
        )


def test_whole_numbers_and_fractions_of_json_are_floats_wherever_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_source, "_BLOCK_BYTES", 16)
    lines = ['{"n": 1, "l": [2.5]}', '{"n": 1.5, "l": [2]}']
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    assert rows(JsonLinesSource(tmp_path / "t.jsonl", infer_all=True)) == [
        (1.0, [2.5]),
        (1.5, [2.0]),
    ]
    (tmp_path / "t.jsonl").write_text('{"n": 1.5}\n{"n": 9007199254740993}\n')
    with pytest.raises(ProgramError, match="9007199254740993, which no float equals"):
        rows(JsonLinesSource(tmp_path / "t.jsonl", infer_all=True))


def test_a_folder_to_watch_must_be_there_but_may_be_empty(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int64())])
    with pytest.raises(ProgramError, match="no such file or directory"):
        CsvSource(tmp_path / "mistyped", schema=schema, watch_interval_ms=10)
    with pytest.raises(ProgramError, match=r"no files in .* yet; give schema="):
        CsvSource(tmp_path, watch_interval_ms=10)
    assert CsvSource(tmp_path, schema=schema, watch_interval_ms=10).schema == schema
    assert CsvSource(tmp_path / "*.csv", schema=schema, watch_interval_ms=10).schema == schema


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schema": {"a": "int"}}, "schema= takes a pyarrow schema"),
        ({"schema": "a int"}, "schema= takes a pyarrow schema"),
        ({"batch_rows": "many"}, "batch_rows= takes"),
        ({"batch_rows": 0}, "batch_rows= takes"),
        ({"split_bytes": 0}, "split_bytes= takes"),
        ({"watch_interval": "1s"}, "watch_interval is a Duration"),
    ],
)
def test_options_of_another_type_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(ProgramError, match=message):
        StreamExecutionEnvironment.get_execution_environment().from_json_lines(
            tmp_path / "t.jsonl", **options
        )


# -- what a line of JSON is, and a value of its column ---------------------------------------------

OBJECT = st.sampled_from(['{"n": 1}', '{"n": 2, "s": {"t": "}{"}}', '{"s": {}}', "{}"])
SEPARATOR = st.sampled_from(["\n", "\r\n", " \n", "\n\n", "\n \n", " ", "", ",\n", '\n"n":'])
NESTED = pa.schema([("n", pa.int64()), ("s", pa.struct([("t", pa.string())]))])


@PER_EXAMPLE
@given(pieces=st.lists(st.tuples(OBJECT, SEPARATOR), min_size=1, max_size=5))
@example([('{"s":', "\n"), ('{"t": "x"}', "\n"), ("{}}", " "), ("{}", "\n")])
def test_each_line_is_one_object_and_any_other_is_broken(
    tmp_path: Path, pieces: list[tuple[str, str]]
) -> None:
    text = "".join(map("".join, pieces))
    (tmp_path / "t.jsonl").write_bytes(text.encode())

    def is_object(line: str) -> bool:
        try:
            return isinstance(json.loads(line), dict)
        except ValueError:
            return False

    lines = [
        (at, line)
        for at, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1)
        if line.strip()
    ]
    read, broken = diverted(
        JsonLinesSource(tmp_path / "t.jsonl", schema=NESTED, ignore_extra_fields=True)
    )
    assert len(read) == sum(is_object(line) for _, line in lines)
    assert [letter.line for letter in broken] == [at for at, line in lines if not is_object(line)]


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("2.0", 2),
        ("-0.0", 0),
        ("2e1", 20),
        ("25.0e-1", None),
        ("2.5", None),
        ("1e30", None),
        ("1e999999999", None),
    ],
)
def test_an_equal_number_is_an_integer_in_files_as_in_messages(
    tmp_path: Path, number: str, value: int | None
) -> None:
    types = pa.schema(
        [
            ("n", pa.int64()),
            ("l", pa.list_(pa.int64())),
            ("s", pa.struct([("n", pa.int32())])),
            ("f", pa.float64()),
        ]
    )
    line = f'{{"n": {number}, "l": [1, {number}], "s": {{"n": {number}}}, "f": 2.5}}'
    (tmp_path / "t.jsonl").write_text('{"n": 1}\n' + line + "\n")
    message = JsonColumnarDecoder(types).decode_well_formed([line.encode()])
    if value is None:
        assert message.malformed
        with pytest.raises(ProgramError, match=r"t\.jsonl as JsonLines: line 2: "):
            read_all(JsonLinesSource(tmp_path / "t.jsonl", schema=types))
    else:
        assert rows(JsonLinesSource(tmp_path / "t.jsonl", schema=types))[1] == (
            value,
            [1, value],
            Row(n=value),
            2.5,
        )
        assert message.batch.to_pylist() == [
            {"n": value, "l": [1, value], "s": {"n": value}, "f": 2.5}
        ]


def test_maps_in_the_schema_of_json_lines_are_refused_where_the_program_reads_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.jsonl").write_text('{"m": {"x": 1}}\n')
    types = pa.schema([("m", pa.list_(pa.map_(pa.string(), pa.int64())))])
    with pytest.raises(
        ProgramError,
        match=(
            r"column 'm' is a list<item: map<string, int64>>, and files of JSON lines are read "
            r"without maps: declare"
        ),
    ):
        JsonLinesSource(tmp_path / "t.jsonl", schema=types)


# -- columns that are not nullable -----------------------------------------------------------------

REQUIRED = pa.schema([pa.field("n", pa.int64(), nullable=False), ("s", pa.string())])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "n,s\n1,a\n,b\n"),
        ("t.jsonl", '{"n": 1, "s": "a"}\n{"n": null, "s": "b"}\n'),
        ("t.jsonl", '{"n": 1, "s": "a"}\n{"s": "b"}\n'),
    ],
)
def test_a_null_in_a_column_that_has_none_makes_its_line_broken(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    kind = CsvSource if name.endswith("csv") else JsonLinesSource
    with pytest.raises(ProgramError, match=rf"{name} as .*: line {1 + text.count(chr(10)) - 1}: "):
        read_all(kind(tmp_path / name, schema=REQUIRED))
    assert rows(kind(tmp_path / name, schema=REQUIRED, on_error="skip")) == [(1, "a")]
    assert [letter.line for letter in diverted(kind(tmp_path / name, schema=REQUIRED))[1]] == [
        text.count("\n")
    ]
    with pytest.raises(
        ProgramError,
        match="on_error=\"null\" gives nulls, and the schema has column 'n' with nullable=False",
    ):
        kind(tmp_path / name, schema=REQUIRED, on_error="null")


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_a_null_in_a_column_that_has_none_is_refused_when_files_are_read_and_written(
    tmp_path: Path, kind: str
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    records = env.from_collection([{"n": 1, "s": "a"}, {"n": None, "s": "b"}])
    records.sink_to(FileSink(tmp_path / "free", kind))
    env.execute()
    with pytest.raises(
        Exception, match="column 'n' has a null, and its field in the schema has nullable=False"
    ):
        read_all(
            (ParquetSource if kind == "parquet" else AvroSource)(tmp_path / "free", schema=REQUIRED)
        )
    records.sink_to(
        FileSink(
            tmp_path / "required", (ParquetFormat if kind == "parquet" else AvroFormat)(REQUIRED)
        )
    )
    with pytest.raises(
        Exception, match=f"records do not fit the {kind.capitalize()} schema: column 'n' has a null"
    ):
        env.execute()


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2"])
def test_a_damaged_avro_file_is_named(tmp_path: Path, codec: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    table = pa.table({"n": list(range(5000)), "s": [f"some text {n}" for n in range(5000)]})
    env.from_arrow(table).sink_to(FileSink(tmp_path, AvroFormat(codec=codec)))
    env.execute()
    path = next(tmp_path.glob("*.avro"))
    data = bytearray(path.read_bytes())
    data[1000:3000] = b"\xff" * 2000
    path.write_bytes(data)
    with pytest.raises(ProgramError, match=r"cannot read .*\.avro as Avro: "):
        read_all(AvroSource(tmp_path))
