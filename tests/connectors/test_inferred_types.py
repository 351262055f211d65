"""Types that files of text show: how a file is cut into blocks, and lines into files, shows in no
value."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, example, given, reject, settings
from hypothesis import strategies as st

from flinkpy.connectors.files.reading import inferred_source, json_source
from flinkpy.connectors.files.reading.column_files import (
    AvroSource,
    CsvSource,
    JsonLinesSource,
    ParquetSource,
)
from flinkpy.connectors.files.reading.csv import csv_source, open_csv
from flinkpy.connectors.files.writing.file_formats import (
    AvroFormat,
    CsvFormat,
    JsonLinesFormat,
    ParquetFormat,
)
from flinkpy.core.elements import RowBatch
from flinkpy.core.errors import ProgramError
from tests.connectors.harness import read_all

BERLIN = ZoneInfo("Europe/Berlin")
MANY = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
CELLS = [
    "",
    "1",
    "0",
    "007",
    "1.5",
    "nan",
    "1e5",
    "99999999999999999999",
    "100000000000000000000",
    "1e20",
    "true",
    "x",
    "2024-01-01",
    "2024-01-01 12:00:00",
    "2024-01-01T12:00:00.5",
    "2024-01-01 12:00:00.000000001",
    "9999-12-31 00:00:00",
    "2024-01-01T12:00:00Z",
    "2024-01-01 12:00:00.25Z",
    "12:00:00",
    "12:00",
    "12:00:00.5",
]
FIELDS = [
    "null",
    "1",
    "1.5",
    "2.0",
    "99999999999999999999",
    "100000000000000000000",
    "1e20",
    "true",
    '"x"',
    '""',
    '"NaN"',
    '"2024-01-01"',
    '"2024-01-01 12:00:00"',
    '"2024-01-01T12:00:00.5"',
    '"2024-01-01T12:00:00Z"',
    "[]",
    "[1]",
    "[2.5]",
    '["2024-01-01 12:00:00.5"]',
    "{}",
    '{"a": 1}',
    '{"a": 1.5, "b": []}',
]
CUT = st.tuples(st.integers(1, 60), st.integers(1, 4))


def csv_record(cell: str) -> str:
    return f"{cell},k\n"


def json_record(field: str | None) -> str:
    return '{"k": "k"}\n' if field is None else f'{{"k": "k", "v": {field}}}\n'


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_csv, "BLOCK_BYTES", size)
        patch.setattr(csv_source, "SHOWN_BYTES", size)
        patch.setattr(json_source, "_BLOCK_BYTES", size)
        patch.setattr(inferred_source, "_AT_LEAST", size)
        yield


def outcome(source: Any, folder: Path, **options: Any) -> list[Any] | str:
    """The values of the column, as texts in which equal numbers are equal; or the error."""
    try:
        return [
            row["v"] if "v" in row.as_dict() else None
            for row in read_all(source(folder, **options))
        ]
    except ProgramError as error:
        return str(error)


def written(folder: Path, files: list[list[str]], suffix: str, header: str = "") -> Path:
    folder.mkdir()
    for number, records in enumerate(files):
        (folder / f"{number}.{suffix}").write_text(header + "".join(records))
    return folder


def check(
    source: Any, records: list[str], cut: tuple[int, int], suffix: str, header: str, tmp: Path
) -> None:
    size, count = cut
    length = -(-len(records) // count)
    files = [records[at : at + length] for at in range(0, len(records), length)]
    whole = outcome(source, written(tmp / "whole", [records], suffix, header))
    folder = written(tmp / "cut", files, suffix, header)
    for infers_all in (False, True):
        with blocks_of(size):
            found = outcome(source, folder, infer_all=infers_all)
        if isinstance(found, str):
            assert "'v'" in found or "Column(/v" in found or "/v/" in found, found
            assert str(tmp / "cut") in found, found
            assert "schema=" in found, found
        else:
            assert repr(found) == repr(whole) or found == whole, (found, whole)


@MANY
@given(cells=st.lists(st.sampled_from(CELLS), min_size=1, max_size=8), cut=CUT)
@example(cells=["2024-01-01 12:00:00", "2024-01-01 12:00:00.5"], cut=(20, 1))
@example(cells=["1", "1.5"], cut=(60, 2))
def test_csv_gives_the_same_values_however_it_is_cut(
    cells: list[str], cut: tuple[int, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    check(
        CsvSource, list(map(csv_record, cells)), cut, "csv", "v,k\n", tmp_path_factory.mktemp("cut")
    )


@MANY
@given(fields=st.lists(st.sampled_from([*FIELDS, None]), min_size=1, max_size=8), cut=CUT)
@example(fields=['"NaN"', '"x"'], cut=(60, 2))
def test_json_gives_the_same_values_however_it_is_cut(
    fields: list[Any], cut: tuple[int, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    check(
        JsonLinesSource,
        list(map(json_record, fields)),
        cut,
        "jsonl",
        "",
        tmp_path_factory.mktemp("cut"),
    )


@pytest.mark.parametrize("infer_all", [False, True])
@pytest.mark.parametrize(
    "files",
    [
        ['"NaN"', "1.5"],
        ["1.5", '"NaN"'],
        ["1", '"NaN"', '"-Infinity"'],
        ["null", '"NaN"', "2"],
        ['"Infinity"'],
    ],
)
def test_texts_that_name_floats_are_floats_in_whatever_line_and_file_they_stand(
    files: list[str], infer_all: bool, tmp_path: Path
) -> None:
    wanted = [None if text == "null" else float(text.strip('"')) for text in files]
    records = [f'{{"v": {text}, "only": "NaN", "parts": [{{"x": {text}}}]}}\n' for text in files]
    for name, parts in (("one", [records]), ("several", [[record] for record in records])):
        found = read_all(
            JsonLinesSource(written(tmp_path / name, parts, "jsonl"), infer_all=infer_all)
        )
        assert repr([row["v"] for row in found]) == repr(wanted)
        assert repr([row["parts"][0]["x"] for row in found]) == repr(wanted)
        assert {repr(row["only"]) for row in found} == {"nan"}


# -- what a sink has written -----------------------------------------------------------------------

NUMBERS = [1, -7, 2.5, 1 << 70, 1 << 63, Decimal("2.25"), None]
OTHERS = [
    "x",
    True,
    [],
    [1],
    [2.5],
    {"a": 1},
    {"a": 1.5},
    {"b": None},
    datetime.datetime(2024, 1, 1),
    datetime.datetime(2024, 1, 1, 12, 0, 0, 5),
    datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc),
    datetime.datetime(2024, 1, 1, tzinfo=BERLIN),
    datetime.date(2024, 1, 1),
]
FORMS: dict[str, tuple[Any, Any]] = {
    "parquet": (ParquetFormat, ParquetSource),
    "avro": (AvroFormat, AvroSource),
    "jsonl": (JsonLinesFormat, JsonLinesSource),
    "csv": (CsvFormat, CsvSource),
}


def write_parts(folder: Path, parts: list[list[dict[str, Any]]], suffix: str) -> Path:
    folder.mkdir()
    for number, records in enumerate(parts):
        part = FORMS[suffix][0]().open(open(folder / f"part-{number}.{suffix}", "wb"))  # noqa: SIM115  (the part closes it)
        part.write(RowBatch(records))
        part.close()
    return folder


@pytest.mark.finding("bugs 7")
@pytest.mark.parametrize("suffix", FORMS)
@MANY
@given(
    parts=st.lists(
        st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=2), min_size=1, max_size=4
    ),
    late=st.integers(0, 3),
)
@example(parts=[[1], [1.5]], late=3)
@example(parts=[[1], [1 << 70], [-1]], late=1)
def test_a_folder_of_a_sink_is_read_as_one_part_with_all_its_records(
    suffix: str, parts: list[list[Any]], late: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tmp = tmp_path_factory.mktemp("own")
    records = [
        [{"k": "k", "v": value, **({"late": "x"} if number >= late else {})} for value in part]
        for number, part in enumerate(parts)
    ]
    values = [value for part in parts for value in part]
    try:
        folder = write_parts(tmp / "parts", records, suffix)
    except ProgramError:
        reject()  # such records cannot be written
    found = outcome(FORMS[suffix][1], folder)
    kinds = {type(value) for value in values}
    if isinstance(found, str):
        in_texts = suffix == "jsonl" and Decimal in kinds  # JSON has decimals as texts
        is_mixed = float in kinds and (
            Decimal in kinds
            or any(isinstance(each, int) and abs(each) >= 1 << 53 for each in values)
        )
        assert in_texts or is_mixed, found
        assert "schema=" in found, found
    elif suffix in ("parquet", "avro"):
        assert found == values
    else:
        assert [value if value is None else float(value) for value in found] == [
            value if value is None else float(value) for value in values
        ]


@pytest.mark.finding("bugs 7")
@pytest.mark.parametrize("suffix", FORMS)
@MANY
@given(
    parts=st.lists(
        st.lists(st.sampled_from([None, 1, *OTHERS]), min_size=1, max_size=2),
        min_size=1,
        max_size=3,
    )
)
def test_a_folder_whose_parts_do_not_go_together_is_refused_and_never_read_otherwise(
    suffix: str, parts: list[list[Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    tmp = tmp_path_factory.mktemp("own")
    try:
        whole = outcome(
            FORMS[suffix][1],
            write_parts(
                tmp / "whole",
                [[{"k": "k", "v": value} for part in parts for value in part]],
                suffix,
            ),
        )
        folder = write_parts(
            tmp / "parts", [[{"k": "k", "v": value} for value in part] for part in parts], suffix
        )
    except ProgramError:
        return  # such records cannot be written
    found = outcome(FORMS[suffix][1], folder)
    if isinstance(found, str):
        assert "schema=" in found, found
    else:
        assert found == whole, (found, whole)


@pytest.mark.finding("bugs 6")
@pytest.mark.parametrize(
    ("source", "suffix", "header", "record"),
    [
        (CsvSource, "csv", "k,v\n", "k,{}\n"),
        (JsonLinesSource, "jsonl", "", '{{"k": "k", "v": "{}"}}\n'),
    ],
)
def test_times_with_and_without_fractions_are_one_type_in_whatever_block_they_stand(
    source: Any, suffix: str, header: str, record: str, tmp_path: Path
) -> None:
    plain, finer = record.format("2024-01-01 12:00:00"), record.format("2024-01-01T12:00:00.5")
    whole = datetime.datetime(2024, 1, 1, 12)
    half = datetime.datetime(2024, 1, 1, 12, 0, 0, 500_000)
    with blocks_of(64):
        assert outcome(
            source, written(tmp_path / "a", [[plain] * 9 + [finer]], suffix, header)
        ) == [whole] * 9 + [half]
        assert outcome(source, written(tmp_path / "b", [[plain], [finer]], suffix, header)) == [
            whole,
            half,
        ]
        assert outcome(source, written(tmp_path / "c", [[finer, plain]], suffix, header)) == [
            half,
            whole,
        ]
