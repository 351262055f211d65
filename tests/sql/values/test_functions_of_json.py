"""What the functions of JSON find at a path, and what they give where there is nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from flinkpy.core.errors import BadRecordError
from flinkpy.sql.sql_errors import ValidationError
from tests.sql.values.reference_values import bound, kernel_of

COLUMN = pa.array([1], pa.int64())
ITEMS = """'{"items": [{"n": 1}, {"n": 2}, {"m": 3}], "a b": "right"}'"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"JSON_VALUE({ITEMS}, '$.items[1].n' RETURNING INT)", 2),
        (f"JSON_VALUE({ITEMS}, '$.items[-1].m')", "3"),
        (f"JSON_VALUE({ITEMS}, 'strict $.[''a b'']' NULL ON EMPTY DEFAULT 'no' ON ERROR)", "right"),
        (f"JSON_VALUE({ITEMS}, 'lax $.x' DEFAULT -1 ON EMPTY ERROR ON ERROR)", "-1"),
        (f"JSON_VALUE({ITEMS}, 'lax $.x' RETURNING INT DEFAULT -1 ON EMPTY)", -1),
        (f"JSON_VALUE({ITEMS}, '$.x' DEFAULT 'wrong' ON ERROR)", "wrong"),
        ("JSON_VALUE('{', '$.x' DEFAULT 'wrong' ON ERROR)", "wrong"),
        ("""JSON_VALUE('{"a": 1e2}', '$.a')""", "1E+2"),
        ("""JSON_VALUE('{"a": "x"}', '$.a' RETURNING INT)""", None),
        (f"JSON_QUERY({ITEMS}, '$.items[*].n')", "[1,2]"),
        (f"JSON_QUERY({ITEMS}, '$..m')", "[3]"),
        (f"JSON_QUERY({ITEMS}, '$.items[0:1]')", '[{"n":1}]'),
        (
            f"JSON_QUERY({ITEMS}, '$.items' RETURNING ARRAY<STRING>)",
            ['{"n":1}', '{"n":2}', '{"m":3}'],
        ),
        (f"JSON_QUERY({ITEMS}, 'lax $.x' EMPTY ARRAY ON EMPTY)", "[]"),
        (f"JSON_QUERY({ITEMS}, '$.items' WITH CONDITIONAL WRAPPER)", '[{"n":1},{"n":2},{"m":3}]'),
        (f"JSON_EXISTS({ITEMS}, 'strict $.x' TRUE ON ERROR)", True),
        (f"JSON_EXISTS({ITEMS}, '$.items[7]' UNKNOWN ON ERROR)", None),
        ("'[1' IS NOT JSON", True),
        ("JSON_OBJECT('a' VALUE JSON_ARRAY(o, 'x'), 'b' VALUE '[1]')", '{"a":[1,"x"],"b":"[1]"}'),
        ("JSON_OBJECT('a' VALUE JSON('{\"b\": [1]}'))", '{"a":{"b":[1]}}'),
        ("JSON_ARRAY(1.50, TRUE, 1e0, DATE '2024-01-02')", '[1.50,true,1.0,"2024-01-02"]'),
        ("JSON_UNQUOTE('\"a')", '"a'),
    ],
)
def test_a_call_gives(text: str, wanted: object) -> None:
    assert kernel_of(bound(text), COLUMN) == [wanted]


def test_on_error_error_fails_with_the_row() -> None:
    call = bound("JSON_VALUE('{' || CAST(o AS STRING), '$.a' ERROR ON ERROR)")
    with pytest.raises(BadRecordError, match="JSON_VALUE"):
        kernel_of(call, COLUMN)


def test_a_default_is_a_constant_of_the_result() -> None:
    with pytest.raises(ValidationError, match="must be a constant of INT"):
        bound("JSON_VALUE('{}', '$.a' RETURNING INT DEFAULT 'x' ON EMPTY)")


def test_a_filter_in_a_path_is_refused() -> None:
    with pytest.raises(BadRecordError, match="no filters or functions"):
        kernel_of(bound("JSON_VALUE('{}', '$.a[?(@.b > 1)]' ERROR ON ERROR)"), COLUMN)
