from __future__ import annotations

import bz2
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flinkpy.common import Row
from flinkpy.connectors.files.paths import FileInfo, find_files
from flinkpy.connectors.files.reading.column_files import CsvSource, JsonLinesSource, ParquetSource
from flinkpy.connectors.files.reading.text_files import (
    FileSplit,
    LineReader,
    TextFileSource,
    cut_file,
)
from flinkpy.connectors.source_api.source import Source
from flinkpy.core.errors import ProgramError
from tests.connectors.harness import World, read_all

PER_EXAMPLE = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def rows(source: Source[Any], **settings: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in read_all(source, **settings)]


# -- finding ---------------------------------------------------------------------------------------


def test_a_missing_file_is_named_when_the_program_is_built(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=f"no such file or directory: {tmp_path}/nothing.txt"):
        TextFileSource(tmp_path / "nothing.txt")
    with pytest.raises(ProgramError, match=r"no such file or directory: nowhere.csv \(looked in /"):
        CsvSource("nowhere.csv")
    with pytest.raises(ProgramError, match=r"no such file or directory: .*\*\.parquet"):
        ParquetSource(tmp_path / "*.parquet")


def test_directories_globs_and_lists_are_searched_and_hidden_files_left_out(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "deep/c.txt", ".hidden", "_temporary/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")

    def names(paths: Any) -> list[str]:
        return [os.path.relpath(info.path, tmp_path) for info in find_files(paths)]

    assert names(tmp_path) == ["a.txt", "b.txt", "deep/c.txt"]
    assert names(str(tmp_path / "*.txt")) == ["a.txt", "b.txt"]
    assert names(str(tmp_path / "**" / "*.txt")) == ["a.txt", "b.txt", "deep/c.txt"]
    assert (
        names(str(tmp_path / "_*" / "*.txt"))
        == names(tmp_path / "_temporary")
        == ["_temporary/d.txt"]
    )
    assert names([tmp_path / "b.txt", tmp_path / "deep"]) == ["b.txt", "deep/c.txt"]


def test_a_file_that_a_pattern_finds_several_times_is_read_once(tmp_path: Path) -> None:
    for name in ("a.txt", "deep/b.txt", "deep/er/c.txt", "_SUCCESS", "deep/.a.txt.crc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")

    def names(pattern: str) -> list[str]:
        return sorted(
            os.path.relpath(info.path, tmp_path) for info in find_files(str(tmp_path / pattern))
        )

    assert names("**") == names("*") == ["a.txt", "deep/b.txt", "deep/er/c.txt"]
    assert names("_*") == ["_SUCCESS"]


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="no files in"):
        find_files(tmp_path)


def test_a_uri_is_read_through_arrows_file_systems(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    assert read_all(TextFileSource(f"file://{tmp_path}/a.txt")) == ["one", "two"]
    with pytest.raises(ProgramError, match="no such file or directory: file://"):
        TextFileSource(f"file://{tmp_path}/b.txt")
    with pytest.raises(ProgramError, match="cannot look at nonsense://x"):
        TextFileSource("nonsense://x")


# -- text ------------------------------------------------------------------------------------------

TEXTS = st.lists(st.text(st.sampled_from("ab é€\r"), max_size=12), max_size=30).map("\n".join)


def lines_of(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line[:-1] if line.endswith("\r") else line for line in lines]


@PER_EXAMPLE
@given(
    text=TEXTS,
    end=st.sampled_from(["", "\n"]),
    cuts=st.lists(st.integers(0, 300), max_size=6),
    block=st.integers(1, 40),
    limit=st.integers(1, 5),
)
def test_cut_at_any_bytes_every_line_is_read_exactly_once(
    tmp_path: Path, text: str, end: str, cuts: list[int], block: int, limit: int
) -> None:
    path = tmp_path / "lines.txt"
    data = (text + end).encode()
    path.write_bytes(data)
    file = FileInfo(str(path), len(data))
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    read: list[str] = []
    for low, high in zip(bounds, bounds[1:]):  # noqa: RUF007
        reader = LineReader(
            FileSplit(str(low), file, low, high if high < len(data) else None), "utf-8", block
        )
        while (batch := reader.next_batch(limit)) is not None:
            assert 1 <= len(batch) <= limit
            read.extend(batch.values)  # type: ignore[union-attr]
        reader.close()
    assert read == lines_of(text + end)


@PER_EXAMPLE
@given(
    text=TEXTS,
    cut=st.integers(0, 300),
    stop=st.integers(0, 12),
    limit=st.integers(1, 5),
    first=st.integers(1, 40),
    second=st.integers(1, 40),
)
def test_a_line_reader_resumes_behind_the_lines_it_gave_out(
    tmp_path: Path, text: str, cut: int, stop: int, limit: int, first: int, second: int
) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(text.encode())
    file = FileInfo(str(path), len(text.encode()))
    read: list[str] = []
    for split in (
        [FileSplit("0", file, 0, cut), FileSplit("1", file, cut, None)]
        if 0 < cut < file.size
        else [FileSplit("0", file, 0, None)]
    ):
        reader = LineReader(split, "utf-8", first)
        for _ in range(stop):
            if (batch := reader.next_batch(limit)) is not None:
                read.extend(batch.values)  # type: ignore[union-attr]
        reader.close()
        resumed = LineReader(reader.snapshot(), "utf-8", second)
        while (batch := resumed.next_batch(limit)) is not None:
            read.extend(batch.values)  # type: ignore[union-attr]
        resumed.close()
    assert read == lines_of(text)


def test_a_large_file_is_shared_out_and_read_in_order_by_one(tmp_path: Path) -> None:
    lines = [f"line {number} {'x' * (number % 50)}" for number in range(20_000)]
    (tmp_path / "big.txt").write_text("\n".join(lines))
    source = TextFileSource(tmp_path / "big.txt", split_bytes=100_000)
    assert read_all(source, batch_records=1000) == lines
    world = World(source, parallelism=3, seed=1, batch_records=1000)
    world.run()
    assert sorted(world.values) == sorted(lines)
    assert all(subtask.output.values for subtask in world.subtasks)
    world.close()


def test_a_line_longer_than_a_split_is_one_line(tmp_path: Path) -> None:
    lines = ["short", "x" * 500_000, "end"]
    (tmp_path / "long.txt").write_text("\n".join(lines))
    assert sorted(
        read_all(TextFileSource(tmp_path / "long.txt", split_bytes=1), parallelism=4)
    ) == sorted(lines)


def test_compressed_files_are_read_whole_and_resume(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(50_000)]
    data = "\n".join(lines).encode()
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(data))
    (tmp_path / "b.txt.bz2").write_bytes(bz2.compress(data))
    assert read_all(TextFileSource(tmp_path / "b.txt.bz2"), batch_records=5000) == lines
    world = World(TextFileSource(tmp_path / "a.txt.gz"), batch_records=700)
    for _ in range(60):
        world.step()
    before, state = world.values, world.snapshot(0)
    assert 0 < len(before) < len(lines)
    world.restart(0, restored=state)
    world.run()
    assert before + world.values == lines
    world.close()


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    assert read_all(TextFileSource(tmp_path / "empty.txt"), parallelism=2) == []


def test_bytes_that_are_no_text_are_told_with_file_and_place(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"fine\ncaf\xe9\n")
    with pytest.raises(
        ProgramError, match=r"latin.txt, line 2: byte 3 of the line is not utf-8: .*charset_name="
    ):
        read_all(TextFileSource(tmp_path / "latin.txt"))
    assert read_all(TextFileSource(tmp_path / "latin.txt", charset="latin-1")) == ["fine", "café"]


def test_a_charset_that_cannot_be_cut_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="recode to utf-8"):
        TextFileSource(tmp_path, charset="utf-16")


def test_a_byte_order_mark_is_left_out_with_the_charset_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes("\ufeffone\ntwo\n".encode())
    assert read_all(TextFileSource(tmp_path / "t.txt", charset="utf-8-sig")) == ["one", "two"]


def test_a_mark_in_the_middle_of_a_file_is_text_wherever_a_block_begins(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes("\ufeffone\n\ufefftwo\n\ufeffthree\n".encode())
    [split] = cut_file(find_files(tmp_path / "t.txt")[0], 1000)
    for block in (1, 8, 1000):
        read: list[str] = []
        reader = LineReader(split, "utf-8-sig", block)
        while (batch := reader.next_batch(10)) is not None:
            read += batch.values  # type: ignore[union-attr]
        reader.close()
        assert read == ["one", "\ufefftwo", "\ufeffthree"]


def test_the_position_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    reader = LineReader(next(cut_file(find_files(tmp_path / "a.txt")[0], 100)), "utf-8")
    reader.next_batch(2)
    reader.next_batch(2)
    assert reader.position() == f"{tmp_path}/a.txt, line 3 behind byte 0"
    reader.close()


# -- columns ---------------------------------------------------------------------------------------

TABLE = pa.table(
    {
        "n": list(range(1000)),
        "name": [f"n{n % 7}" for n in range(1000)],
        "x": [None if n % 10 == 0 else n / 4 for n in range(1000)],
    }
)


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "t.parquet", row_group_size=150)
    return tmp_path / "t.parquet"


@pytest.mark.parametrize("parallelism", [1, 3])
def test_parquet_is_read_whole_by_row_groups(parquet: Path, parallelism: int) -> None:
    read = rows(ParquetSource(parquet, batch_rows=64), parallelism=parallelism)
    assert sorted(read) == [tuple(row.values()) for row in TABLE.to_pylist()]


def test_parquet_reads_only_the_columns_wanted_in_their_order(parquet: Path) -> None:
    source = ParquetSource(parquet, columns=["x", "n"])
    assert source.schema.names == ["x", "n"]
    assert rows(source)[:2] == [(None, 0), (0.25, 1)]


def test_a_column_that_is_not_there_is_refused_with_those_that_are(parquet: Path) -> None:
    with pytest.raises(ProgramError, match="no column 'delay'; it has n, name, x"):
        ParquetSource(parquet, columns=["n", "delay"])


def test_what_is_no_parquet_file_is_told_when_the_program_is_built(tmp_path: Path) -> None:
    (tmp_path / "fake.parquet").write_text("not at all")
    with pytest.raises(ProgramError, match=r"fake.parquet is no Parquet file"):
        ParquetSource(tmp_path / "fake.parquet")


@settings(PER_EXAMPLE, max_examples=50)
@given(steps=st.integers(0, 60), batch=st.integers(1, 200))
def test_columns_resume_at_the_row(parquet: Path, steps: int, batch: int) -> None:
    world = World(ParquetSource(parquet, columns=["n"], batch_rows=batch))
    for _ in range(steps):
        world.step()
    second = world.checkpoint()
    before = world.values
    world.close()
    second.run()
    assert [row[0] for row in before + second.values] == list(range(1000))
    second.close()


def test_a_column_that_a_parquet_file_has_not_is_null_in_its_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int64()), "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["y"], "a": pa.array([2], pa.int32())}), tmp_path / "2.parquet")
    assert rows(ParquetSource(tmp_path)) == [(1, "x"), (2, "y")]
    pq.write_table(pa.table({"b": ["y"]}), tmp_path / "3.parquet")
    pq.write_table(pa.table({"c": [1.5], "a": pa.array([3], pa.int8())}), tmp_path / "4.parquet")
    assert rows(ParquetSource(tmp_path)) == [
        (1, "x", None),
        (2, "y", None),
        (None, "y", None),
        (3, None, 1.5),
    ]
    assert rows(ParquetSource(tmp_path, columns=["c"])) == [(None,), (None,), (None,), (1.5,)]


def test_csv_is_read_as_columns_with_quoted_line_ends(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "n": range(3000),
            "text": ["a,b", 'say "x"\nand more', "plain"] * 1000,
            "x": [0.5, None, 2.0] * 1000,
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    read = rows(CsvSource(tmp_path / "t.csv", batch_rows=100))
    assert [row[:2] for row in read] == list(zip(frame.n, frame.text))
    assert read[1][2] is None
    assert rows(CsvSource(tmp_path / "t.csv", columns=["x"]))[:3] == [(0.5,), (None,), (2.0,)]


def test_csv_without_a_header_needs_a_schema(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1;x\n2;y\n")
    with pytest.raises(ProgramError, match="needs schema="):
        CsvSource(tmp_path / "t.csv", header=False)
    schema = pa.schema([("n", pa.int32()), ("s", pa.string())])
    assert rows(CsvSource(tmp_path / "t.csv", schema=schema, header=False, delimiter=";")) == [
        (1, "x"),
        (2, "y"),
    ]


def test_a_csv_value_of_another_type_is_told_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("n\n1\n")
    (tmp_path / "2.csv").write_text("n\nmany\n")
    with pytest.raises(ProgramError, match=r"cannot read .*2.csv as Csv: .*many"):
        read_all(CsvSource(tmp_path, schema=pa.schema([("n", pa.int64())])))


@pytest.mark.parametrize("long", [0, 1, 2])
def test_a_csv_row_longer_than_a_block_is_read_too(tmp_path: Path, long: int) -> None:
    # so that blocks before it were given out already
    lengths = [3_000_000 if at == long else 600_000 for at in range(3)]
    (tmp_path / "t.csv").write_text(
        "n,text\n" + "".join(f'{at},"{"y" * length}"\n' for at, length in enumerate(lengths))
    )
    assert [(n, len(text)) for n, text in rows(CsvSource(tmp_path / "t.csv"))] == list(
        enumerate(lengths)
    )


@pytest.mark.parametrize("first", ["", "a,b\n"])
def test_a_csv_file_with_no_rows_says_nothing_of_types(tmp_path: Path, first: str) -> None:
    (tmp_path / "0.csv").write_text(first)
    (tmp_path / "1.csv").write_text("a,b\n1,x\n")
    assert rows(CsvSource(tmp_path)) == [(1, "x")]


def test_an_empty_csv_file_has_no_rows_where_the_schema_is_known(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("1,x\n")
    (tmp_path / "1.csv").write_text("")
    assert rows(
        CsvSource(tmp_path, schema=pa.schema([("a", pa.int64()), ("b", pa.string())]), header=False)
    ) == [(1, "x")]
    with pytest.raises(ProgramError, match="is empty; its columns are not known"):
        CsvSource(tmp_path / "1.csv")


def test_columns_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,a\n1,2,3\n")
    with pytest.raises(ProgramError, match="two columns would be called 'a'"):
        CsvSource(tmp_path / "t.csv")
    assert rows(CsvSource(tmp_path / "t.csv", columns=["b"])) == [(2,)]
    for columns, message in (
        (["b", "b"], "called 'b'"),
        ([], "at least one"),
        ("b", "a list of names"),
    ):
        with pytest.raises(ProgramError, match=message):
            CsvSource(tmp_path / "t.csv", columns=columns)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="one character"):
        CsvSource(tmp_path / "t.csv", delimiter=";;")


def test_gzipped_csv_is_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,x\n2,y\n"))
    assert rows(CsvSource(tmp_path / "t.csv.gz")) == [(1, "x"), (2, "y")]


def test_json_lines_are_cut_and_read_as_columns(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"n": number, "tags": ["a", "b"], "inner": {"x": number / 2}, "text": "ü" * (number % 5)}
        for number in range(5000)
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    source = JsonLinesSource(tmp_path / "t.jsonl", columns=["n", "inner"], split_bytes=1)
    assert sorted(rows(source, parallelism=3), key=lambda row: row[0]) == [
        (record["n"], Row(**record["inner"])) for record in records
    ]
    assert rows(JsonLinesSource(tmp_path / "t.jsonl"))[7] == (7, ["a", "b"], Row(x=3.5), "üü")


def test_a_json_field_that_comes_later_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"n": 1}\n')
    (tmp_path / "2.jsonl").write_text('{"n": 1, "surprise": true}\n')
    with pytest.raises(ProgramError, match="surprise"):
        read_all(JsonLinesSource(tmp_path, schema=pa.schema([("n", pa.int64())])))
    schema = pa.schema([("n", pa.int64()), ("surprise", pa.bool_())])
    assert rows(JsonLinesSource(tmp_path, schema=schema)) == [(1, None), (1, True)]


def test_json_lines_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes('\ufeff{"n": 1}\n{"n": 2}\n'.encode())
    assert rows(JsonLinesSource(tmp_path / "t.jsonl")) == [(1,), (2,)]


def test_a_csv_file_may_be_a_header_without_a_line_end(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b")
    assert rows(CsvSource(tmp_path / "t.csv")) == []
    assert CsvSource(tmp_path / "t.csv").schema.names == ["a", "b"]


def test_an_empty_json_file_needs_a_schema(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").touch()
    with pytest.raises(ProgramError, match="give schema="):
        JsonLinesSource(tmp_path)
    assert rows(JsonLinesSource(tmp_path, schema=pa.schema([("n", pa.int64())]))) == []
