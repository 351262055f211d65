"""What counts as a whole number where users give one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from flinkpy.core.users_values import whole_number


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.array(3)])
def test_a_whole_number_of_any_kind_is_an_int(value: Any) -> None:
    assert (whole_number(value), type(whole_number(value))) == (3, int)


@pytest.mark.parametrize(
    "value", [True, np.bool_(True), 3.0, np.float64(3), Decimal(3), "3", None, np.array([3, 4])]
)
def test_booleans_and_other_values_are_none(value: Any) -> None:
    assert whole_number(value) is None
