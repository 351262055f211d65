"""The bytes of bitmaps are those that Flink writes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from flinkpy.columns.sql.sql_kernels.bitmaps.bitmap_columns import (
    bitmaps_of,
    codes_of,
    numbers_of,
    with_rows,
)
from flinkpy.columns.sql.sql_meanings.bitmaps.roaring_format import (
    numbers_of_roaring,
    roaring_bytes,
)

LAST = 2**32 - 1
# Numbers, and what BITMAP_TO_BYTES of Flink 2.3 gives for them.
OF_FLINK: list[tuple[list[int], str]] = [
    ([], "3a300000 00000000"),
    ([1, 2, 3], "3a300000 01000000 0000 0200 10000000 0100 0200 0300"),
    ([1, 2, 3, 4], "3b300000 01 0000 0300 0100 0100 0300"),
    ([1, 2, 3, 5, 6], "3a300000 01000000 0000 0400 10000000 0100 0200 0300 0500 0600"),
    ([1, 2, 3, 5, 6, 7], "3b300000 01 0000 0500 0200 0100 0200 0500 0200"),
    (
        [1, 2, 3, 4, 70000, LAST],
        "3b300200 01 0000 0300 0100 0000 ffff 0000 0100 0100 0300 7011 ffff",
    ),
    (
        [1, 2, 3, 4, 70000, 170000, 270000, 370000, LAST],
        "3b300500 01 0000 0300 0100 0000 0200 0000 0400 0000 0500 0000 ffff 0000 "
        "35000000 3b000000 3d000000 3f000000 41000000 43000000 "
        "0100 0100 0300 7011 1098 b01e 50a5 ffff",
    ),
]


@pytest.mark.parametrize(("numbers", "data"), OF_FLINK)
def test_a_set_has_the_bytes_that_flink_gives(numbers: list[int], data: str) -> None:
    wanted = bytes.fromhex(data)
    assert roaring_bytes(numbers) == wanted
    assert numbers_of_roaring(wanted) == frozenset(numbers)
    codes = with_rows(np.zeros(len(numbers)), np.array(numbers, np.uint32))
    assert bitmaps_of(codes, 1).to_pylist() == [wanted]
    assert numbers_of(codes_of(pa.array([wanted]))).tolist() == numbers


@pytest.mark.parametrize(
    "data", ["", "00", "3a300000 01000000 0000 0200 10000000 0100", "01020304"]
)
def test_bytes_that_are_no_bitmap_are_an_error(data: str) -> None:
    for read in (numbers_of_roaring, lambda each: codes_of(pa.array([each]))):
        with pytest.raises(ValueError, match="no bitmap in the portable form"):
            read(bytes.fromhex(data))
