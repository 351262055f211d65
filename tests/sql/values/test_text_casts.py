"""Columns of texts that Arrow reads as Flink does, and of one text that it does not."""

from __future__ import annotations

import datetime

import pytest

from flinkpy.columns.sql.arrays_of_values import array_of_values, values_of_array
from flinkpy.columns.sql.call_site import VARYING, CallSite
from flinkpy.columns.sql.sql_kernels.sql_kernel_table import SQL_KERNELS
from flinkpy.columns.sql.sql_meanings.sql_meaning_table import SQL_MEANINGS
from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import LogicalType

STRING = DataTypes.STRING()
NUMBERS = ["0", "-0", "007", "-123456789", "42"]
TEXTS: list[tuple[LogicalType, list[str], str]] = [
    (DataTypes.INT(), NUMBERS, " +5.9 "),
    (DataTypes.BIGINT(), [*NUMBERS, "-999999999999999999"], "0x10"),
    (DataTypes.DOUBLE(), [*NUMBERS, "0.1", "-1.5e-7", "1E22"], "1e400"),
    (DataTypes.DECIMAL(11, 2), [*NUMBERS, "0.1", "-0.00", "999999999.99"], "0.005"),
    (DataTypes.DATE(), ["2024-02-29", "1000-01-01", "9999-12-31"], "2024-2-30"),
    (DataTypes.TIMESTAMP(3), ["2024-02-29 23:59:59", "1969-12-31 23:59:59"], "2024-02-29"),
]


@pytest.mark.parametrize(("target", "plain", "other"), TEXTS, ids=lambda each: str(each)[:20])
def test_texts_are_read_alike_in_both_ways(
    target: LogicalType, plain: list[str], other: str
) -> None:
    site = CallSite((STRING,), target, (VARYING,))
    meaning, kernel = SQL_MEANINGS["TRY_CAST"](site), SQL_KERNELS["TRY_CAST"](site)
    for texts in ([*plain, None], [*plain, other]):
        found = kernel(len(texts), array_of_values(texts, STRING))
        assert [repr(each) for each in values_of_array(found, target)] == [
            repr(meaning(each)) for each in texts
        ]


@pytest.mark.parametrize("source", [STRING, DataTypes.TIMESTAMP(3)], ids=str)
def test_a_moment_that_nanoseconds_do_not_hold_is_null_or_an_error_that_names_the_years(
    source: LogicalType,
) -> None:
    site = CallSite((source,), DataTypes.TIMESTAMP(9), (VARYING,))
    moments = [datetime.datetime(1500, 1, 1), datetime.datetime(2262, 4, 11)]
    values = [str(each) for each in moments] if source is STRING else moments
    found = SQL_KERNELS["TRY_CAST"](site)(2, array_of_values(values, source))
    assert found.is_null().to_pylist() == [True, False]
    assert SQL_MEANINGS["TRY_CAST"](site)(values[0]) is None
    with pytest.raises(ValueError, match="spans the years 1677 to 2262"):
        SQL_MEANINGS["CAST"](site)(values[0])
