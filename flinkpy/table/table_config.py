"""The options of a TableEnvironment, at PyFlink's module path."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from flinkpy.common.configuration import Configuration
from flinkpy.core.secrets.hidden_secrets import shown_options
from flinkpy.table.session_options import PREFIXES, SessionOptions

RUNTIME_MODE = "execution.runtime-mode"


class TableConfig:
    """Options of tables, checked when they are set, and options of the jobs that run them.

    >>> config = TableConfig()
    >>> config.set("table.local-time-zone", "Europe/Oslo").get_local_timezone()
    'Europe/Oslo'
    """

    def __init__(self, job_options: Mapping[str, Any] | None = None) -> None:
        self.options = SessionOptions()
        self.job_options: dict[str, Any] = dict(job_options or {})
        self._first: dict[str, Any] = {}

    @staticmethod
    def get_default() -> TableConfig:
        """Options of which none is set."""
        return TableConfig()

    def set(self, key: str, value: str) -> TableConfig:
        """Sets an option of tables (``table.``) or of jobs. Raises ConfigurationError for a key
        that is not known, which names the nearest, and for a value that does not fit."""
        if key.startswith(PREFIXES):
            self.options.set(key, str(value))
        if not key.startswith(PREFIXES) or key in _ALSO_OF_JOBS:
            _check_job_options({**self.job_options, key: value})
            self.job_options[key] = value
        return self

    def get(self, key: str, default_value: str) -> str:
        """The value of an option that was set, or the default that is given here."""
        if key.startswith(PREFIXES):
            return self.options.given.get(key, default_value)
        return str(self.job_options.get(key, default_value))

    def reset(self, key: str | None = None) -> TableConfig:
        """Puts one option, or all of them, back to what they were when the session began."""
        for each in {*self.to_map(), *self._first} if key is None else [key]:
            if each.startswith(PREFIXES):
                self.options.reset(each)
            self.job_options.pop(each, None)
            if each in self._first:
                self.set(each, self._first[each])
        return self

    def session_begins(self) -> None:
        """What is set by now is what ``reset`` goes back to."""
        self._first = dict(self.to_map())

    def add_configuration(self, configuration: Configuration) -> None:
        """Sets all options of a configuration."""
        for key, value in configuration.to_dict().items():
            self.set(key, value)

    def get_configuration(self) -> Configuration:
        """The options that were set."""
        return Configuration(self.to_map())

    def to_map(self) -> dict[str, str]:
        """The options that were set, as texts; secrets are hidden."""
        return {**self.options.given, **shown_options(self.job_options)}

    @property
    def is_batch(self) -> bool:
        """Whether ``execution.runtime-mode`` is BATCH."""
        return str(self.job_options.get(RUNTIME_MODE, "STREAMING")).upper() == "BATCH"

    def get_local_timezone(self) -> str:
        """The zone in which TIMESTAMP_LTZ is shown and read."""
        return self.options.zone

    def set_local_timezone(self, timezone_id: str) -> None:
        """Sets that zone.

        >>> TableConfig().set_local_timezone("UTC")
        """
        self.set("table.local-time-zone", timezone_id)

    def get_idle_state_retention(self) -> timedelta:
        """How long state rests before it is dropped; nothing: for ever."""
        retention: timedelta = self.options.value("table.exec.state.ttl")
        return retention

    def set_idle_state_retention(self, duration: timedelta) -> None:
        """Sets ``table.exec.state.ttl``."""
        self.set("table.exec.state.ttl", f"{int(duration / timedelta(milliseconds=1))} ms")


def _check_job_options(options: Mapping[str, Any]) -> None:
    from flinkpy.datastream import StreamExecutionEnvironment

    StreamExecutionEnvironment().configure(dict(options))


_ALSO_OF_JOBS = ("table.optimizer.agg-phase-strategy",)
