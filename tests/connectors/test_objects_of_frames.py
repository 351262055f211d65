"""A pandas frame's columns of Python objects keep their values, or are refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from flinkpy.columns.values.inference import check_objects
from flinkpy.connectors.memory.arrow_tables import ArrowSource
from flinkpy.core.errors import ProgramError

pd = pytest.importorskip("pandas")

DAY, HOUR = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 5)
IN_UTC = HOUR.replace(tzinfo=dt.timezone.utc)


def frame_of(values: list[Any]) -> Any:
    return pd.DataFrame({"o": pd.Series(values, dtype=object)})


@pytest.mark.parametrize(
    "values",
    [[DAY, HOUR], [HOUR, IN_UTC], [IN_UTC, HOUR], [1.5, True], [True, 1], [None, "a", 1]],
    ids=str,
)
def test_objects_that_no_column_can_hold_together_are_refused(values: list[Any]) -> None:
    with pytest.raises(ProgramError, match="from_pandas: field 'o' holds"):
        ArrowSource.from_pandas(frame_of(values))


@pytest.mark.parametrize(
    "values",
    [
        [DAY, None, float("nan")],
        [IN_UTC, pd.NaT, IN_UTC],
        [1, 2.5, None],
        ["a", None],
        [Decimal("1.5"), 2],
        [[1], None, [2, 3]],
        [{"a": 1}, {"b": None}],
        [],
        [None],
    ],
    ids=str,
)
def test_objects_of_one_kind_are_taken(values: list[Any]) -> None:
    assert ArrowSource.from_pandas(frame_of(values)).schema.names == ["o"]


def test_columns_of_one_name_are_looked_at_by_their_place() -> None:
    frame = pd.DataFrame([[DAY, DAY], [DAY, HOUR]], columns=["a", "a"], dtype=object)
    with pytest.raises(ValueError, match="field 'a' holds"):
        check_objects(frame)
