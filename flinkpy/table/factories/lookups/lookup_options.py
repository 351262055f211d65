"""Flink's options of tables that are looked up."""

from __future__ import annotations

from flinkpy.relational.lookups.lookup_port import CacheRules
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.table_options import (
    BOOLEAN,
    DURATION,
    INT,
    LONG,
    TableOption,
    TableValues,
    one_of,
)

ASKED_OPTIONS = (
    TableOption(
        "lookup.cache",
        one_of("none", "partial"),
        "none",
        "Whether answers are kept: NONE, or PARTIAL: those of keys that were asked.",
    ),
    TableOption("lookup.max-retries", INT, 3, "How often a call that fails is repeated."),
    TableOption("lookup.partial-cache.max-rows", LONG, None, "Of how many keys answers are kept."),
    TableOption(
        "lookup.partial-cache.expire-after-write", DURATION, None, "How long, since they came."
    ),
    TableOption(
        "lookup.partial-cache.expire-after-access", DURATION, None, "How long, since last used."
    ),
    TableOption(
        "lookup.partial-cache.cache-missing-key",
        BOOLEAN,
        True,
        "Whether it is kept that a key has no rows.",
    ),
)
RELOAD_STRATEGY = TableOption(
    "lookup.full-cache.reload-strategy",
    one_of("periodic"),
    "periodic",
    "When a table that is looked up is read again: PERIODIC.",
)
RELOAD_INTERVAL = TableOption(
    "lookup.full-cache.periodic-reload.interval",
    DURATION,
    None,
    "How often it is read again, in the background; without it never.",
)
_OF_CACHE = "lookup.partial-cache."


def cache_of(values: TableValues) -> CacheRules | None:
    """What is kept of answers. Raises ValidationError for a number of retries below 0, and rules of
    a cache that is not there."""
    if values["lookup.max-retries"] < 0:
        raise ValidationError(
            f"'lookup.max-retries' is {values['lookup.max-retries']}, and must not be less than 0"
        )
    if values["lookup.cache"] == "none":
        given = next((key for key in values.given if key.startswith(_OF_CACHE)), None)
        if given is not None:
            raise ValidationError(
                f"the option {given!r} is for 'lookup.cache' = 'PARTIAL', which keeps answers"
            )
        return None
    return CacheRules(
        values[f"{_OF_CACHE}max-rows"],
        values[f"{_OF_CACHE}expire-after-write"],
        values[f"{_OF_CACHE}expire-after-access"],
        values[f"{_OF_CACHE}cache-missing-key"],
    )
