"""All of SQL's own functions, by chapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flinkpy.sql.functions.built_in.aggregate_entries import AGGREGATES, RANKS
from flinkpy.sql.functions.built_in.arithmetic_entries import ARITHMETIC
from flinkpy.sql.functions.built_in.bitmap_entries import BITMAPS
from flinkpy.sql.functions.built_in.collection_entries import COLLECTIONS, CONSTRUCTORS
from flinkpy.sql.functions.built_in.comparison_entries import COMPARISONS, LOGIC
from flinkpy.sql.functions.built_in.conditional_entries import CONDITIONALS, CONVERSIONS
from flinkpy.sql.functions.built_in.json_entries import JSON
from flinkpy.sql.functions.built_in.temporal_entries import GROUP_WINDOWS, TEMPORALS
from flinkpy.sql.functions.built_in.text_entries import HASHES, TEXTS
from flinkpy.sql.functions.built_in_function import BuiltInFunction

# Chapters, in the order of the reference.
CHAPTERS: Mapping[str, Sequence[BuiltInFunction]] = {
    "comparison": COMPARISONS,
    "logic": LOGIC,
    "arithmetic": ARITHMETIC,
    "text": TEXTS,
    "time": TEMPORALS,
    "choice": CONDITIONALS,
    "conversion": CONVERSIONS,
    "collections": COLLECTIONS,
    "json": JSON,
    "construction and access": CONSTRUCTORS,
    "hashes": HASHES,
    "bitmaps": BITMAPS,
    "aggregates": AGGREGATES,
    "ranks": RANKS,
    "windows of GROUP BY": GROUP_WINDOWS,
}
