"""Arrays of few values, made without pyarrow's own way, which imports pandas."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.columns.sql.few_values import array_of_few

PROGRAM = """
import sys
from flinkpy.table import EnvironmentSettings, TableEnvironment

tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
print([tuple(row) for row in tables.execute_sql("SELECT 1, 'a', 2.5E0").collect()])
print([name for name in ("pandas", "pyarrow.dataset") if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, -128], pa.int8()),
        ([3], pa.int16()),
        ([1 << 31 - 1, 0], pa.int32()),
        ([-(1 << 63), 5], pa.int64()),
        ([0.5, float("inf")], pa.float64()),
        (["", "é", "abc"], pa.string()),
    ],
)
def test_they_are_what_pyarrow_makes_of_them(values: list[Any], kind: Any) -> None:
    few = array_of_few(values, kind)
    few.validate(full=True)
    assert few.equals(pa.array(values, kind))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], pa.int32()),
        ([None], pa.int32()),
        ([True], pa.int32()),
        ([1 << 31], pa.int32()),
        ([1], pa.float64()),
        (["\ud800"], pa.string()),
        ([b"a"], pa.string()),
        ([1.5], pa.float32()),
    ],
)
def test_all_others_are_left_to_pyarrow(values: list[Any], kind: Any) -> None:
    assert array_of_few(values, kind) is None


@pytest.mark.skipif(
    int(pa.__version__.split(".")[0]) < 26, reason="this pyarrow imports pandas to make an array"
)
def test_a_short_statement_runs_without_pandas_and_datasets() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[(1, 'a', 2.5)]\n[]\n", 0), done.stderr
