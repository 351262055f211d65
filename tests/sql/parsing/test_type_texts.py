"""Types as SQL writes them."""

import pytest
from hypothesis import given

from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.sql.parsing import parse_type
from flinkpy.sql.sql_errors import SqlParserError
from tests.sql.parsing import sql_printer


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("int", "INT"),
        ("INTEGER NOT NULL", "INT NOT NULL"),
        ("BIGINT NULL", "BIGINT"),
        ("CHAR", "CHAR(1)"),
        ("CHARACTER(3)", "CHAR(3)"),
        ("CHAR VARYING(3)", "VARCHAR(3)"),
        ("VARCHAR", "STRING"),
        ("VARCHAR(2147483647)", "STRING"),
        ("BINARY(2)", "BINARY(2)"),
        ("VARBINARY", "BYTES"),
        ("DECIMAL", "DECIMAL(10, 0)"),
        ("DEC(5)", "DECIMAL(5, 0)"),
        ("NUMERIC(5, 2)", "DECIMAL(5, 2)"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("TIME", "TIME(0)"),
        ("TIME(3) WITHOUT TIME ZONE", "TIME(3)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)"),
        ("TIMESTAMP_LTZ", "TIMESTAMP_LTZ(6)"),
        ("INTERVAL DAY(3) TO SECOND(6)", "INTERVAL DAY(3) TO SECOND(6)"),
        ("INTERVAL YEAR TO MONTH", "INTERVAL YEAR TO MONTH"),
        ("ARRAY<INT NOT NULL> NOT NULL", "ARRAY<INT NOT NULL> NOT NULL"),
        ("INT NOT NULL ARRAY NOT NULL MULTISET", "MULTISET<ARRAY<INT NOT NULL> NOT NULL>"),
        (
            "MAP<STRING NOT NULL, ARRAY<MAP<INT, INT>>>",
            "MAP<STRING NOT NULL, ARRAY<MAP<INT, INT>>>",
        ),
        ("ROW<a INT, `b c` ROW<d INT>>", "ROW<`a` INT, `b c` ROW<`d` INT>>"),
        ("ROW(a INT NOT NULL 'it''s a')", "ROW<`a` INT NOT NULL 'it''s a'>"),
        ("ROW<>", "ROW<>"),
        ("RAW('a.B', 'xyz')", "RAW('a.B')"),
        ("NULL", "NULL"),
    ],
)
def test_a_type_is_read(text: str, type: str) -> None:
    read = parse_type(text)
    assert str(read) == type
    assert parse_type(str(read)) == read


@given(sql_printer.types)
def test_a_type_is_read_as_it_prints_itself(type: LogicalType) -> None:
    assert parse_type(str(type)) == type


def test_an_error_in_a_type_names_its_place() -> None:
    with pytest.raises(SqlParserError) as caught:
        parse_type("ROW<a DECIMAL(50, 2)>")
    assert caught.value.position == (1, 7)
