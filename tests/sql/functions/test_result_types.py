"""The registry has every function of Flink's reference, and gives the types that Flink gives."""

from __future__ import annotations

from flinkpy.sql.functions.built_in.absent_functions import ABSENT
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.sql_errors import SqlError
from tests.sql.functions.reference_calls import VALUES, operator_calls, reference_rows, type_of_call

# Names of the reference that describe a form, and what the registry has for it.
FORMS = {
    "PERCENTILE (aggregate)": "PERCENTILE",
    "FLOOR (to unit)": "FLOOR",
    "CEIL (to unit)": "CEIL",
    "CASE (value)": "CASE",
    "CASE (searched)": "CASE",
    "[] (array)": "ITEM",
    "[] (map)": "ITEM",
    ". (field)": "FIELD",
    "(sum0)": "$SUM0",
}
# Forms that the parser or the SELECT list has, and no function.
NO_FUNCTIONS = {
    "DATE literal",
    "TIME literal",
    "TIMESTAMP literal",
    "INTERVAL literal",
    ".* (all fields)",
    # columns of windowed tables
    "window_start",
    "window_end",
    "window_time",
}
# Flink says NOT NULL, and yet gives null for a null of the column.
BETTER = {"LEAD(INT, 1, 0)": "INT"}


def test_every_name_of_the_reference_is_in_the_registry_or_absent_for_a_reason() -> None:
    known = {name.upper() for name in (*built_in_functions().names(), *ABSENT, *NO_FUNCTIONS)}
    names = [name for row in reference_rows() for name in row.names]
    assert [each for each in names if FORMS.get(each, each).upper() not in known] == []
    assert len(names) > 280


def test_the_types_of_all_measured_calls_are_flinks() -> None:
    wrong = []
    calls = 0
    for row in reference_rows():
        for text, type in row.calls:
            if row.names[0].upper() in ABSENT:
                continue
            calls += 1
            try:
                found = str(type_of_call(text))
            except (SqlError, AssertionError) as error:
                found = "refused" if type == "refused" else str(error)
            if found != BETTER.get(text, type):
                wrong.append(f"{text}: {found}, not {type}")
    assert wrong == []
    assert calls >= 434


def test_the_types_of_all_measured_values_are_flinks() -> None:
    """Constants are folded, so that whether they may be null is seen by the value."""
    wrong = []
    lines = VALUES.read_text().splitlines()[1:]
    for line in lines:
        text, _, type, *_ = line.split("\t")
        if type:
            found = str(type_of_call(text).nullable())
            if found != type.removesuffix(" NOT NULL"):
                wrong.append(f"{text}: {found}, not {type}")
    assert wrong == []
    assert len(lines) > 300


def test_operators_between_all_types_give_flinks_types() -> None:
    wrong = [
        f"{text}: {found}, not {type}"
        for text, type, found in operator_calls()
        if str(found) != type
    ]
    assert wrong == []


def test_the_names_of_the_table_api_are_pyflinks() -> None:
    for row in reference_rows():
        function = built_in_functions().find(FORMS.get(row.names[0], row.names[0]))
        if function is not None and function.python_name and row.python_names:
            assert function.python_name in row.python_names, row.names


def test_an_absent_function_has_its_reason() -> None:
    assert built_in_functions().find("parse_json") is None
    assert "there is no type VARIANT" in str(built_in_functions().absence("parse_json"))
