"""Functions of JSON, and TYPEOF, over whole columns: by value."""

from __future__ import annotations

from flinkpy.columns.sql.call_site import KernelOf
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_meanings.json_texts.json_reading_meanings import JSON_READING_MEANINGS
from flinkpy.columns.sql.sql_meanings.json_texts.json_writing_meanings import JSON_WRITING_MEANINGS
from flinkpy.columns.sql.sql_meanings.type_meanings import TYPE_MEANINGS

_MEANINGS = (*JSON_READING_MEANINGS, *JSON_WRITING_MEANINGS, *TYPE_MEANINGS)

JSON_KERNELS: dict[str, KernelOf] = {name: by_value(name) for name in _MEANINGS}
