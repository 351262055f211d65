"""CSV files without line ends in fields are cut: wherever the cuts fall, their records are those of
the whole file."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from flinkpy.connectors.files.reading import text_files
from flinkpy.connectors.files.reading.column_files import CsvSource
from flinkpy.connectors.files.reading.csv import open_csv
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import ErrorPolicy, StreamExecutionEnvironment
from tests.connectors.harness import World, read_all
from tests.connectors.test_messy_files import BROKEN, TYPES, diverted, rows

PER_EXAMPLE = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LINES = st.lists(
    st.sampled_from(
        [
            "Oslo,1",
            '"Oslo",2',
            "Bergen,",
            '"a, b",3',
            'x"y,4',
            "#Oslo,1",
            "",
            "Oslo",
            "Oslo,1,2",
            "Oslo,many",
            '"open,5',
            'Oslo,"6',
            "é,7",
        ]
    ),
    max_size=25,
)


@PER_EXAMPLE
@given(
    lines=LINES,
    end=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    cut=st.integers(1, 60),
    block=st.integers(1, 40),
    skipped=st.integers(0, 3),
    header=st.booleans(),
    mark=st.booleans(),
)
@example(["Oslo,1"], "\n", True, 1, 1, 3, True, True)
def test_cut_at_any_size_the_records_and_the_broken_lines_are_those_of_the_whole(
    tmp_path: Path,
    lines: list[str],
    end: str,
    last: bool,
    cut: int,
    block: int,
    skipped: int,
    header: bool,
    mark: bool,
) -> None:
    head = ['made "by hand'] * skipped + (["# a comment", "city,price"] if header else [])
    text = end.join([*head, *lines]) + (end if last else "")
    (tmp_path / "t.csv").write_bytes(("\ufeff" if mark else "").encode() + text.encode())
    options: dict[str, Any] = dict(
        schema=TYPES, header=header, skip_rows=skipped, comment="#", newlines_in_values=False
    )
    whole, broken = diverted(CsvSource(tmp_path / "t.csv", **options))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_LEAST_SPLIT_BYTES", 1)
        patch.setattr(open_csv, "BLOCK_BYTES", block)
        in_parts = CsvSource(tmp_path / "t.csv", split_bytes=cut, **options)
        assert diverted(in_parts) == (whole, broken)
        for parallelism in (2, 3):
            read, told = diverted(in_parts, parallelism)
            assert (sorted(read, key=repr), sorted(told, key=lambda each: each.line)) == (
                sorted(whole, key=repr),
                broken,
            )
    for each in broken:
        assert each.text == text.split("\n")[each.line - 1].rstrip("\r")


@PER_EXAMPLE
@given(lines=LINES)
def test_without_line_ends_in_fields_the_declaration_changes_nothing(
    tmp_path: Path, lines: list[str]
) -> None:
    closed = [line for line in lines if not line.startswith('"open') and not line.endswith('"6')]
    (tmp_path / "t.csv").write_text("city,price\n" + "".join(line + "\n" for line in closed))
    assert diverted(
        CsvSource(tmp_path / "t.csv", schema=TYPES, newlines_in_values=False)
    ) == diverted(CsvSource(tmp_path / "t.csv", schema=TYPES))


def test_a_line_that_ends_within_quotes_is_broken(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('city\nRome\n"Oslo\nNorway"\nBergen\n')
    source = CsvSource(tmp_path / "t.csv", newlines_in_values=False)
    with pytest.raises(
        ProgramError,
        match=(
            r"line 3: a quoted field goes on behind the end of its line, which "
            r"newlines_in_values=False rules out"
        ),
    ):
        read_all(source)
    read, broken = diverted(source)
    assert read == [("Rome",), ('Norway"',), ("Bergen",)]
    assert [each.line for each in broken] == [3]


def test_a_large_file_is_read_by_several_and_goes_on_from_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_csv, "BLOCK_BYTES", 10_000)
    (tmp_path / "t.csv").write_text(
        "n,text\n" + "".join(f"{number},{'x' * (number % 50)}\n" for number in range(20_000))
    )
    source = CsvSource(tmp_path / "t.csv", ["n"], newlines_in_values=False, split_bytes=1)
    world = World(source, parallelism=3, seed=1)
    world.run()
    assert all(subtask.output.values for subtask in world.subtasks)
    assert sorted(row.n for row in world.values) == list(range(20_000))
    world.close()
    first = World(source, parallelism=2)
    for _ in range(30):
        first.step()
    second = first.checkpoint()
    second.run()
    assert sorted(row.n for row in first.values + second.values) == list(range(20_000))
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("name", "data", "encoding"),
    [
        ("t.csv.gz", gzip.compress(b"a\n1\n2\n", mtime=0), "utf-8"),
        ("t.csv", "a\n1\n2\n".encode("utf-16"), "utf-16"),
    ],
    ids=["compressed", "UTF-16"],
)
def test_files_that_cannot_be_entered_in_the_middle_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, data: bytes, encoding: str
) -> None:
    monkeypatch.setattr(text_files, "_LEAST_SPLIT_BYTES", 1)
    (tmp_path / name).write_bytes(data)
    assert rows(
        CsvSource(tmp_path / name, newlines_in_values=False, encoding=encoding, split_bytes=1),
        parallelism=2,
    ) == [(1,), (2,)]


def test_a_program_says_it(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('city,price\nOslo,1\nRome,"2\n')
    env = StreamExecutionEnvironment.get_execution_environment()
    sales = env.from_csv(
        tmp_path, schema=TYPES, newlines_in_values=False, on_error=ErrorPolicy.divert(BROKEN)
    )
    assert [row.city for row in sales.take(10)] == ["Oslo"]


@pytest.mark.parametrize(
    "before",
    ['"on, a Monday\n' * 3 + "x" * 70_000 + "\n", "# comment\n" * 20_000],
    ids=["skipped lines", "comments"],
)
def test_a_header_is_found_behind_however_many_lines(
    tmp_path: Path, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_csv, "LONGEST_RECORD", 1 << 20)
    (tmp_path / "t.csv").write_text(before + "n,s\n1,a\n2,b\n")
    skipped = 0 if before.startswith("#") else before.count("\n")
    assert rows(CsvSource(tmp_path / "t.csv", skip_rows=skipped, comment="#")) == [
        (1, "a"),
        (2, "b"),
    ]
