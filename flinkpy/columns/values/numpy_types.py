"""The numpy type of an Arrow type."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

_OTHER_NAMES = {"halffloat": "float16", "float": "float32", "double": "float64"}


@cache
def numpy_type(kind: pa.DataType) -> np.dtype[Any]:
    """The type of a column of numbers in numpy. Arrow's own ``to_pandas_dtype`` imports pandas
    before Arrow 26, which takes longer than a small query.

    >>> numpy_type(pa.float32()), numpy_type(pa.int8())
    (dtype('float32'), dtype('int8'))
    """
    name = str(kind)
    return np.dtype(_OTHER_NAMES.get(name, name))
