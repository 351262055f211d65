"""The time that it is now, by the clock of the call: in BATCH it stands still for a whole query."""

from __future__ import annotations

import datetime

from flinkpy.columns.row_functions.moment_functions import zone_of
from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def _instant(site: CallSite) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(milliseconds=site.clock.time_ms())


def _local(site: CallSite) -> datetime.datetime:
    """What the clocks of the session's zone show."""
    return _instant(site).astimezone(zone_of(site.zone)).replace(tzinfo=None)


def _now(site: CallSite) -> Meaning:
    return lambda: _instant(site)


def _local_timestamp(site: CallSite) -> Meaning:
    return lambda: _local(site)


def _current_date(site: CallSite) -> Meaning:
    return lambda: _local(site).date()


def _current_time(site: CallSite) -> Meaning:
    return lambda: _local(site).time().replace(microsecond=0)


CURRENT_MEANINGS: dict[str, MeaningOf] = {
    "NOW": _now,
    "CURRENT_TIMESTAMP": _now,
    "CURRENT_ROW_TIMESTAMP": _now,
    "PROCTIME": _now,
    "LOCALTIMESTAMP": _local_timestamp,
    "CURRENT_DATE": _current_date,
    "CURRENT_TIME": _current_time,
    "LOCALTIME": _current_time,
}
