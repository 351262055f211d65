"""Halves of decimals go away from zero, in 64 bits and beyond."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from flinkpy.columns.kernels.decimals import rounded
from flinkpy.columns.sql.arrays_of_values import array_of_values
from flinkpy.columns.sql.call_site import VARYING, CallSite
from flinkpy.columns.sql.sql_kernels.sql_kernel_table import SQL_KERNELS
from flinkpy.columns.sql.sql_meanings.sql_meaning_table import SQL_MEANINGS
from flinkpy.common.logical_types.data_types import DataTypes

HALVES = [
    ("/", DataTypes.DECIMAL(3, 0), DataTypes.DECIMAL(10, 6), "1", "128", "0.007813"),
    ("/", DataTypes.DECIMAL(3, 0), DataTypes.DECIMAL(10, 6), "-1", "128", "-0.007813"),
    ("/", DataTypes.DECIMAL(3, 0), DataTypes.DECIMAL(10, 6), "1", "-128", "-0.007813"),
    ("*", DataTypes.DECIMAL(4, 2), DataTypes.DECIMAL(10, 3), "0.05", "0.05", "0.003"),
    ("*", DataTypes.DECIMAL(4, 2), DataTypes.DECIMAL(10, 3), "-0.05", "0.05", "-0.003"),
    ("*", DataTypes.DECIMAL(38, 2), DataTypes.DECIMAL(38, 3), "1" + "0" * 20, "-0.05", None),
]


@pytest.mark.parametrize(("sign", "kind", "result", "left", "right", "wanted"), HALVES)
def test_a_half_goes_away_from_zero(
    sign: str, kind: object, result: object, left: str, right: str, wanted: str | None
) -> None:
    site = CallSite((kind, kind), result, (VARYING, VARYING))  # type: ignore[arg-type]
    pair = Decimal(left), Decimal(right)
    expected = SQL_MEANINGS[sign](site)(*pair)
    assert wanted is None or expected == Decimal(wanted)
    columns = [array_of_values([each], kind) for each in pair]  # type: ignore[arg-type]
    assert SQL_KERNELS[sign](site)(1, *columns).to_pylist() == [expected]


def test_a_long_row_of_nines_is_rounded_up_in_256_bits() -> None:
    """Arrow's own rounding leaves it as it is."""
    for sign in (1, -1):
        nines = Decimal("9" * 19 + "." + "9" * 38) * sign
        values = rounded(pa.array([nines, None], pa.decimal256(76, 38)), 18)
        assert values.to_pylist() == [Decimal(10**19) * sign, None]
