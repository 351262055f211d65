"""The table of kernels: each scalar function of SQL by the name that plans keep. Its keys are those
of the table of meanings."""

from __future__ import annotations

from flinkpy.columns.sql.call_site import KernelOf
from flinkpy.columns.sql.sql_kernels.bitmaps.bitmap_kernels import BITMAP_KERNELS
from flinkpy.columns.sql.sql_kernels.calendar_part_kernels import CALENDAR_PART_KERNELS
from flinkpy.columns.sql.sql_kernels.cast_kernels import CAST_KERNELS
from flinkpy.columns.sql.sql_kernels.choice_kernels import CHOICE_KERNELS
from flinkpy.columns.sql.sql_kernels.collection_kernels import COLLECTION_KERNELS
from flinkpy.columns.sql.sql_kernels.comparison_kernels import COMPARISON_KERNELS
from flinkpy.columns.sql.sql_kernels.json_kernels import JSON_KERNELS
from flinkpy.columns.sql.sql_kernels.logic_kernels import LOGIC_KERNELS
from flinkpy.columns.sql.sql_kernels.moment_kernels import MOMENT_KERNELS
from flinkpy.columns.sql.sql_kernels.numbers.arithmetic_kernels import ARITHMETIC_KERNELS
from flinkpy.columns.sql.sql_kernels.numbers.number_kernels import NUMBER_KERNELS
from flinkpy.columns.sql.sql_kernels.pattern_kernels import PATTERN_KERNELS
from flinkpy.columns.sql.sql_kernels.plain_text_kernels import PLAIN_TEXT_KERNELS
from flinkpy.columns.sql.sql_kernels.text_kernels import TEXT_KERNELS

SQL_KERNELS: dict[str, KernelOf] = {
    **LOGIC_KERNELS,
    **COMPARISON_KERNELS,
    **CHOICE_KERNELS,
    **CAST_KERNELS,
    **PLAIN_TEXT_KERNELS,
    **TEXT_KERNELS,
    **COLLECTION_KERNELS,
    **CALENDAR_PART_KERNELS,
    **MOMENT_KERNELS,
    **PATTERN_KERNELS,
    **ARITHMETIC_KERNELS,
    **NUMBER_KERNELS,
    **JSON_KERNELS,
    **BITMAP_KERNELS,
}
