"""CsvSchema, and what reads and writes files by it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import Row, Types, WatermarkStrategy
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream.connectors.file_system import FileSink, FileSource
from flinkpy.datastream.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvSchema,
    CsvSchemaBuilder,
)
from flinkpy.table import DataTypes
from flinkpy.testing import embedded_environment


def builder() -> CsvSchemaBuilder:
    return (
        CsvSchema.builder()
        .add_number_column("id", DataTypes.INT())
        .add_string_column("name")
        .add_number_column("price", number_type=DataTypes.DECIMAL(6, 2))
        .add_boolean_column("ok")
    )


def read(schema: CsvSchema, path: Path) -> list[Any]:
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), path).build()
    stream = embedded_environment().from_source(source, WatermarkStrategy.no_watermarks(), "csv")
    with stream.execute_and_collect() as rows:
        return list(rows)


ROW = Row(id=1, name="a", price=Decimal("2.50"), ok=True)


@pytest.mark.parametrize(
    ("text", "change", "rows"),
    [
        ("1,a,2.5,true\n", lambda made: made, [ROW]),
        ("ok,id,price,name\ntrue,1,2.5,a\n", lambda made: made.set_use_header(), [ROW]),
        (
            "1;'a';2.5;true\n",
            lambda made: made.set_column_separator(";").set_quote_char("'"),
            [ROW],
        ),
        ("# no\n1,a,2.5,true\n", lambda made: made.set_allow_comments(), [ROW]),
        ("the first\n1,a,2.5,true\n", lambda made: made.set_skip_first_data_row(), [ROW]),
        (
            '1,"say \\"hi\\"",2.5,true\n',
            lambda made: made.set_escape_char("\\"),
            [Row(id=1, name='say "hi"', price=Decimal("2.50"), ok=True)],
        ),
        (
            "1,-,,true\n",
            lambda made: made.set_null_value("-"),
            [Row(id=1, name=None, price=None, ok=True)],
        ),
        (
            '1,"a,2.5,true\n',
            lambda made: made.disable_quote_char(),
            [Row(id=1, name='"a', price=Decimal("2.50"), ok=True)],
        ),
    ],
)
def test_files_are_read_as_rows_of_the_schema(
    text: str,
    change: Callable[[CsvSchemaBuilder], CsvSchemaBuilder],
    rows: list[Row],
    tmp_path: Path,
) -> None:
    (tmp_path / "it.csv").write_text(text)
    assert read(change(builder()).build(), tmp_path / "it.csv") == rows


def test_what_is_written_by_a_schema_is_read_by_it(tmp_path: Path) -> None:
    schema = (
        builder()
        .set_column_separator("\t")
        .set_escape_char("\\")
        .set_null_value("\\N")
        .set_use_header()
        .build()
    )
    records = [(1, "a", Decimal("2.50"), True), (2, None, None, False), (3, '\t"\\', None, None)]
    env = embedded_environment()
    env.from_collection(records).sink_to(
        FileSink.for_bulk_format(str(tmp_path), CsvBulkWriters.for_schema(schema)).build()
    )
    env.execute()
    assert list(map(tuple, read(schema, tmp_path))) == records


def test_a_value_that_is_none_of_its_column_fails_the_job(tmp_path: Path) -> None:
    (tmp_path / "it.csv").write_text("x,a,2.5,true\n")
    with pytest.raises(JobExecutionError, match="'id'"):
        read(builder().build(), tmp_path / "it.csv")


def test_columns_are_counted_taken_from_another_schema_and_cleared() -> None:
    made = CsvSchema.builder().add_columns_from(builder().build())
    assert (made.size(), len(made), len(made.build()), made.build().size()) == (4, 4, 4, 4)
    assert repr(made.build()).startswith("CsvSchema(id: Types.INT(), name: Types.STRING(), price: ")
    assert made.clear_columns().size() == 0
    assert CsvSchema.builder().add_number_column("n").build().columns == (("n", Types.LONG()),)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda: builder().add_array_column("list", ","), r"col\('list'\)\.split\(','\)"),
        (lambda: builder().add_string_column("id"), "a name of its own"),
        (lambda: builder().add_number_column("n", DataTypes.STRING()), "a type of numbers"),
        (lambda: builder().set_line_separator("|"), "lines end with"),
        (lambda: CsvReaderFormat.for_schema(CsvSchema()), "a CsvSchema with columns"),
        (
            lambda: CsvReaderFormat.for_schema(
                builder().set_use_header().set_skip_first_data_row().build()
            ),
            "one of the two",
        ),
        (
            lambda: CsvBulkWriters.for_schema(builder().disable_quote_char().build()),
            "around texts that need it",
        ),
    ],
)
def test_what_a_schema_cannot_say_is_refused(wrong: Callable[[], Any], why: str) -> None:
    with pytest.raises(ProgramError, match=why):
        wrong()
