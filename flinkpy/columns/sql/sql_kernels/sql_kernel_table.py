"""The table of kernels: each scalar function of SQL by the name that plans keep. Its keys are those
of the table of meanings."""

from __future__ import annotations

from flinkpy.columns.sql.call_site import KernelOf
from flinkpy.columns.sql.sql_kernels.logic_kernels import LOGIC_KERNELS

SQL_KERNELS: dict[str, KernelOf] = {**LOGIC_KERNELS}
