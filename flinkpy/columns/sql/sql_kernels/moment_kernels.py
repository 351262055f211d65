"""Functions of times over whole columns: by value, but for the time that it is now, which all rows
of a batch have in common."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flinkpy.columns.sql.arrays_of_values import scalar_of_value
from flinkpy.columns.sql.call_site import CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_meanings.moments.current_meanings import CURRENT_MEANINGS
from flinkpy.columns.sql.sql_meanings.moments.moment_text_meanings import MOMENT_TEXT_MEANINGS
from flinkpy.columns.sql.sql_meanings.moments.moment_unit_meanings import MOMENT_UNIT_MEANINGS


def _once_per_batch(name: str) -> KernelOf:
    def choose(site: CallSite) -> Kernel:
        meaning = CURRENT_MEANINGS[name](site)

        def kernel(rows: int) -> Any:
            return pa.repeat(scalar_of_value(meaning(), site.result), rows)

        return kernel

    return choose


MOMENT_KERNELS: dict[str, KernelOf] = {
    **{name: by_value(name) for name in (*MOMENT_TEXT_MEANINGS, *MOMENT_UNIT_MEANINGS)},
    **{name: _once_per_batch(name) for name in CURRENT_MEANINGS},
}
