"""INT96 timestamps of Parquet, as Spark 3, Hive and Impala write them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.connectors.files.reading.column_files import ParquetSource
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table.expressions import col
from tests.connectors.harness import read_all

SOON = datetime.datetime(2024, 1, 1, 12, 30)
MOMENTS = [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 2, 0, 0, 1), SOON, None]
BOUNDS = [datetime.datetime(1677, 9, 21, 0, 12, 43), datetime.datetime(2262, 4, 11, 23, 47, 17)]


def int96(path: Path, values: list[Any], kind: Any, **options: Any) -> Path:
    pq.write_table(
        pa.table({"n": pa.array(range(len(values))), "t": pa.array(values, kind)}),
        path,
        use_deprecated_int96_timestamps=True,
        **options,
    )
    return path


def moments(path: Path, **options: Any) -> list[Any]:
    return [row["t"] for row in read_all(ParquetSource(path, **options))]


@pytest.mark.finding("bugs 3")
def test_every_day_that_python_has_is_read_as_it_is(tmp_path: Path) -> None:
    path = int96(tmp_path / "a.parquet", MOMENTS, pa.timestamp("us"), row_group_size=1)
    assert moments(path) == MOMENTS
    assert moments(path, schema=pa.schema([("t", pa.timestamp("us"))])) == MOMENTS
    found = StreamExecutionEnvironment.get_execution_environment().from_parquet(path)
    assert [
        row["t"].year for row in found.filter(col("t") > datetime.datetime(2100, 1, 1)).take()
    ] == [9999]


@pytest.mark.finding("bugs 3")
def test_days_within_structs_lists_and_maps_are_read_as_they_are(tmp_path: Path) -> None:
    at = pa.timestamp("us")
    nested = {
        "s": pa.array([{"t": each} for each in MOMENTS], pa.struct([("t", at)])),
        "l": pa.array([MOMENTS] * 4, pa.list_(at)),
        "m": pa.array([[("a", each)] for each in MOMENTS], pa.map_(pa.string(), at)),
    }
    pq.write_table(pa.table(nested), tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    rows = read_all(ParquetSource(tmp_path / "a.parquet"))
    assert [(row["s"]["t"], row["l"], row["m"]["a"]) for row in rows] == [
        (each, MOMENTS, each) for each in MOMENTS
    ]


@pytest.mark.finding("bugs 3")
def test_nanoseconds_are_read_where_they_are_asked_for_and_never_cut(tmp_path: Path) -> None:
    path = int96(tmp_path / "a.parquet", [1_704_112_200_000_000_007], pa.timestamp("ns"))
    with pytest.raises(
        ProgramError,
        match=(
            r"column 't' holds 2024-01-01 12:30:00.000000 and 7 nanoseconds; give schema= with "
            r"pa.timestamp\('ns'\)"
        ),
    ):
        read_all(ParquetSource(path))
    (found,) = moments(path, schema=pa.schema([("t", pa.timestamp("ns"))]))
    assert found.value == 1_704_112_200_000_000_007


@pytest.mark.finding("bugs 3")
def test_nanoseconds_are_refused_for_days_that_they_do_not_reach(tmp_path: Path) -> None:
    path = int96(tmp_path / "a.parquet", MOMENTS[1:], pa.timestamp("us"))
    with pytest.raises(
        ProgramError,
        match=(
            r"column 't' holds 9999-12-31 02:00:00.000001, which no column of nanoseconds does; "
            r"give schema="
        ),
    ):
        read_all(ParquetSource(path, schema=pa.schema([("t", pa.timestamp("ns"))])))


@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(st.none() | st.datetimes() | st.sampled_from(BOUNDS), min_size=1, max_size=12),
    group=st.integers(1, 5),
    size=st.integers(1, 5),
)
def test_batches_and_row_groups_of_any_size_give_the_same(
    values: list[Any], group: int, size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = int96(
        tmp_path_factory.mktemp("int96") / "a.parquet",
        values,
        pa.timestamp("us"),
        row_group_size=group,
    )
    assert moments(path, batch_rows=size) == values
    in_nanoseconds = all(
        value is None or abs(np.datetime64(value, "us").astype(int)) < (1 << 63) // 1000
        for value in values
    )
    if in_nanoseconds:
        assert moments(path, schema=pa.schema([("t", pa.timestamp("ns"))])) == values
