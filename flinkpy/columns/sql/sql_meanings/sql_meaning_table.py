"""The table of meanings: each scalar function of SQL by the name that plans keep."""

from __future__ import annotations

from flinkpy.columns.sql.call_site import MeaningOf
from flinkpy.columns.sql.sql_meanings.bitmaps.bitmap_meanings import BITMAP_MEANINGS
from flinkpy.columns.sql.sql_meanings.calendar_part_meanings import CALENDAR_PART_MEANINGS
from flinkpy.columns.sql.sql_meanings.casts.cast_meanings import CAST_MEANINGS
from flinkpy.columns.sql.sql_meanings.choice_meanings import CHOICE_MEANINGS
from flinkpy.columns.sql.sql_meanings.collections.array_meanings import ARRAY_MEANINGS
from flinkpy.columns.sql.sql_meanings.collections.map_meanings import MAP_MEANINGS
from flinkpy.columns.sql.sql_meanings.comparison_meanings import COMPARISON_MEANINGS
from flinkpy.columns.sql.sql_meanings.json_texts.json_reading_meanings import JSON_READING_MEANINGS
from flinkpy.columns.sql.sql_meanings.json_texts.json_writing_meanings import JSON_WRITING_MEANINGS
from flinkpy.columns.sql.sql_meanings.logic_meanings import LOGIC_MEANINGS
from flinkpy.columns.sql.sql_meanings.moments.current_meanings import CURRENT_MEANINGS
from flinkpy.columns.sql.sql_meanings.moments.moment_text_meanings import MOMENT_TEXT_MEANINGS
from flinkpy.columns.sql.sql_meanings.moments.moment_unit_meanings import MOMENT_UNIT_MEANINGS
from flinkpy.columns.sql.sql_meanings.numbers.arithmetic_meanings import ARITHMETIC_MEANINGS
from flinkpy.columns.sql.sql_meanings.numbers.number_meanings import NUMBER_MEANINGS
from flinkpy.columns.sql.sql_meanings.numbers.random_meanings import RANDOM_MEANINGS
from flinkpy.columns.sql.sql_meanings.pattern_meanings import PATTERN_MEANINGS
from flinkpy.columns.sql.sql_meanings.plain_text_meanings import PLAIN_TEXT_MEANINGS
from flinkpy.columns.sql.sql_meanings.texts.encoding_meanings import ENCODING_MEANINGS
from flinkpy.columns.sql.sql_meanings.texts.format_meanings import FORMAT_MEANINGS
from flinkpy.columns.sql.sql_meanings.texts.hash_meanings import HASH_MEANINGS
from flinkpy.columns.sql.sql_meanings.texts.regex_meanings import REGEX_MEANINGS
from flinkpy.columns.sql.sql_meanings.texts.text_editing_meanings import TEXT_EDITING_MEANINGS
from flinkpy.columns.sql.sql_meanings.texts.text_search_meanings import TEXT_SEARCH_MEANINGS
from flinkpy.columns.sql.sql_meanings.type_meanings import TYPE_MEANINGS

SQL_MEANINGS: dict[str, MeaningOf] = {
    **LOGIC_MEANINGS,
    **COMPARISON_MEANINGS,
    **CHOICE_MEANINGS,
    **CAST_MEANINGS,
    **PLAIN_TEXT_MEANINGS,
    **TEXT_EDITING_MEANINGS,
    **TEXT_SEARCH_MEANINGS,
    **ENCODING_MEANINGS,
    **HASH_MEANINGS,
    **REGEX_MEANINGS,
    **FORMAT_MEANINGS,
    **ARRAY_MEANINGS,
    **MAP_MEANINGS,
    **CALENDAR_PART_MEANINGS,
    **CURRENT_MEANINGS,
    **MOMENT_TEXT_MEANINGS,
    **MOMENT_UNIT_MEANINGS,
    **PATTERN_MEANINGS,
    **ARITHMETIC_MEANINGS,
    **NUMBER_MEANINGS,
    **RANDOM_MEANINGS,
    **JSON_READING_MEANINGS,
    **JSON_WRITING_MEANINGS,
    **BITMAP_MEANINGS,
    **TYPE_MEANINGS,
}
