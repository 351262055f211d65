"""Lines of CSV and JSON that are made of columns are those of their rows, byte by byte."""

from __future__ import annotations

import doctest
import io
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from flinkpy.columns.values.conversion import rows_of_batch
from flinkpy.connectors.files.writing.file_formats import CsvFormat, FileFormat, JsonLinesFormat
from flinkpy.connectors.files.writing.lines import json_objects
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError
from tests.connectors.test_round_trips import MAPS, NESTED, PLAIN, UNSIGNED

MARKS = st.text(st.sampled_from('a,;"\n\r\\\t\x00é\ufeff\u2028NA1 '), max_size=4)
CODES = pa.dictionary(pa.int32(), pa.string())


def items(pairs: dict[Any, Any]) -> list[Any]:
    return list(pairs.items())


KINDS: dict[str, tuple[pa.DataType, Any]] = {
    **PLAIN,
    **NESTED,
    **MAPS,
    **UNSIGNED,
    "marks": (pa.string(), MARKS),
    "codes": (CODES, MARKS),
    "float16": (pa.float16(), st.floats(width=16)),
    "maps by number": (
        pa.map_(pa.int64(), pa.float64()),
        st.dictionaries(st.integers(0, 3), st.floats(), max_size=2).map(items),
    ),
    "lists of bytes": (pa.list_(pa.binary()), st.lists(st.binary(max_size=3), max_size=2)),
}
FORMATS: list[FileFormat] = [
    CsvFormat(),
    CsvFormat(header=False, null_value="NA"),
    CsvFormat(delimiter=";", quoting_style="all_valid", null_value="-"),
    CsvFormat(columns=["c1", "n", "none"], encoding="utf-16"),
    CsvFormat(delimiter="1"),
    CsvFormat(escape="\\"),
    CsvFormat(escape="-", quoting_style="all_valid", null_value="-1"),
    CsvFormat(delimiter="é"),
    JsonLinesFormat(),
]


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    rows = draw(st.integers(1, 5))
    chosen = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=4))
    columns = [
        pa.array(
            draw(st.lists(st.none() | KINDS[each][1], min_size=rows + 1, max_size=rows + 1)),
            KINDS[each][0],
        )
        for each in chosen
    ]
    names = (
        [*draw(st.lists(MARKS, min_size=len(columns), max_size=len(columns), unique=True))]
        if draw(st.booleans())
        else [f"c{at}" for at in range(len(columns))]
    )
    if draw(st.booleans()) and "n" not in names:
        columns, names = [*columns, pa.array(range(rows + 1))], [*names, "n"]
    return pa.RecordBatch.from_arrays(columns, names=names).slice(draw(st.integers(0, 1)), rows)


def written(form: FileFormat, *parts: Batch) -> bytes | str:
    """The bytes of the file, or the error without the record or batch that it shows."""
    file = io.BytesIO()
    file.close = lambda: None  # type: ignore[method-assign]  # what was written is read below
    part = form.open(file)
    try:
        for each in parts:
            part.write(each)
    except ProgramError as error:
        return re.sub(
            r": (Row\(|a batch of columns ).*; add it", "; add it", str(error), flags=re.S
        )
    part.close()
    return file.getvalue()


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batch=batches(), form=st.sampled_from(FORMATS))
@example(pa.record_batch({"x": pa.array([None, "a"])}), CsvFormat())
@example(pa.record_batch({"x": ["\ufeff"]}), CsvFormat(header=False))
def test_columns_are_written_as_their_rows_are(batch: pa.RecordBatch, form: FileFormat) -> None:
    as_rows = RowBatch(list(rows_of_batch(batch)))
    assert written(form, ColumnBatch(batch), ColumnBatch(batch)) == written(form, as_rows, as_rows)


def test_columns_that_the_header_has_not_are_told() -> None:
    first, second = pa.record_batch({"a": [1]}), pa.record_batch({"a": [1], "b": [2]})
    assert "a field 'b' that the first record of its CSV file has not" in str(
        written(CsvFormat(), ColumnBatch(first), ColumnBatch(second))
    )


@pytest.mark.parametrize("form", [CsvFormat(header=False), JsonLinesFormat()])
def test_a_batch_without_columns_has_lines_all_the_same(form: FileFormat) -> None:
    empty = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert written(form, ColumnBatch(empty)) == written(form, RowBatch(list(rows_of_batch(empty))))


def test_the_example_runs() -> None:
    assert doctest.testmod(json_objects).failed == 0
