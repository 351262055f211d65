"""The table of meanings: each scalar function of SQL by the name that plans keep."""

from __future__ import annotations

from flinkpy.columns.sql.call_site import MeaningOf
from flinkpy.columns.sql.sql_meanings.logic_meanings import LOGIC_MEANINGS

SQL_MEANINGS: dict[str, MeaningOf] = {**LOGIC_MEANINGS}
