"""TYPEOF: the type of an argument, as SQL writes it."""

from __future__ import annotations

from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf


def _typeof(site: CallSite) -> Meaning:
    text = str(site.arguments[0])
    return lambda *values: text


TYPE_MEANINGS: dict[str, MeaningOf] = {"TYPEOF": _typeof}
