"""The options of tables, which ``SET`` and TableConfig change, with Flink's names and defaults.
Options of jobs, such as ``parallelism.default``, are those of every program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkpy.common.foreign_options import tell_reasons
from flinkpy.core.errors import ConfigurationError, FlinkpyError
from flinkpy.sql.sql_errors import did_you_mean
from flinkpy.table.factories.table_options import (
    BOOLEAN,
    DURATION,
    INT,
    LONG,
    ZONE,
    OptionTable,
    TableOption,
    one_of,
)

PREFIXES = ("table.", "sql-client.")


TABLE_OPTIONS = OptionTable(
    (
        TableOption("table.local-time-zone", ZONE, "default", "The zone of TIMESTAMP_LTZ."),
        TableOption("table.dml-sync", BOOLEAN, "false", "Whether INSERT waits for its job."),
        TableOption("table.sql-dialect", one_of("default"), "default", "The dialect of SQL."),
        TableOption("table.display.max-column-width", INT, "30", "How wide a printed text is."),
        TableOption(
            "table.dynamic-table-options.enabled",
            BOOLEAN,
            "true",
            "OPTIONS hints.",
            without_effect="hints of OPTIONS are always read",
        ),
        TableOption(
            "table.exec.state.ttl", DURATION, "0 ms", "When state that rests is dropped; 0: never."
        ),
        TableOption(
            "table.exec.mini-batch.enabled",
            BOOLEAN,
            "false",
            "Whether rows may wait for others, and groups are aggregated before they are sent.",
        ),
        TableOption(
            "table.exec.mini-batch.allow-latency",
            DURATION,
            "0 ms",
            "How long rows may wait for others while more come.",
        ),
        TableOption(
            "table.exec.mini-batch.size", LONG, "-1", "How many rows may wait for each other."
        ),
        TableOption(
            "table.exec.resource.default-parallelism",
            INT,
            "-1",
            "Of operators.",
            without_effect="set parallelism.default",
        ),
        TableOption(
            "table.exec.source.idle-timeout",
            DURATION,
            "0 ms",
            "When a split without rows holds the watermark back no longer; 0: never.",
        ),
        TableOption(
            "table.exec.sink.not-null-enforcer",
            one_of("error", "drop"),
            "error",
            "What a null in a NOT NULL column does.",
        ),
        TableOption(
            "table.exec.sink.type-length-enforcer",
            one_of("ignore", "trim_pad", "error"),
            "ignore",
            "What a text that is too long does.",
            without_effect="texts are written as they are; cut them with CAST",
        ),
        TableOption(
            "table.exec.sink.upsert-materialize",
            one_of("none", "auto", "force"),
            "auto",
            "Whether a sink puts the rows of a primary key in order first.",
        ),
        TableOption(
            "table.exec.source.cdc-events-duplicate",
            BOOLEAN,
            "false",
            "Whether sources of changes may give one twice.",
        ),
        TableOption(
            "table.exec.async-lookup.buffer-capacity",
            INT,
            "100",
            "How many keys a lookup join has under way whose table answers later.",
        ),
        TableOption(
            "table.exec.async-lookup.timeout", DURATION, "3 min", "How long an answer may take."
        ),
        TableOption(
            "table.exec.async-lookup.output-mode",
            one_of("ordered", "allow_unordered"),
            "ordered",
            "In which order rows go out.",
            without_effect="rows go out in their order",
        ),
        TableOption(
            "table.exec.async-scalar.max-concurrent-operations",
            INT,
            "10",
            "How many calls of a coroutine function a subtask has under way.",
        ),
        TableOption(
            "table.exec.async-scalar.timeout",
            DURATION,
            "3 min",
            "How long such a call may take, with all its attempts.",
        ),
        TableOption(
            "table.exec.async-scalar.retry-strategy",
            one_of("no_retry", "fixed_delay"),
            "fixed_delay",
            "Whether a call that has failed is tried again.",
        ),
        TableOption(
            "table.exec.async-scalar.retry-delay", DURATION, "100 ms", "After which pause."
        ),
        TableOption(
            "table.exec.async-scalar.max-attempts", INT, "3", "How many attempts there are in all."
        ),
        TableOption(
            "table.optimizer.non-deterministic-update.strategy",
            one_of("ignore", "try_resolve"),
            "ignore",
            "Whether rows that change may have values that differ each time: with a warning, or "
            "not.",
        ),
        TableOption(
            "table.optimizer.agg-phase-strategy",
            one_of("auto", "one_phase", "two_phase"),
            "auto",
            "Whether rows are aggregated before they are sent.",
        ),
        TableOption(
            "table.optimizer.distinct-agg.split.enabled",
            BOOLEAN,
            "false",
            "Whether distinct values are counted in parts first, for groups that have very many.",
        ),
        TableOption(
            "table.optimizer.distinct-agg.split.bucket-num", INT, "1024", "In how many parts."
        ),
        TableOption(
            "table.optimizer.join-reorder-enabled",
            BOOLEAN,
            "false",
            "Order of joins.",
            without_effect="joins of BATCH are ordered by the sizes of files",
        ),
        TableOption(
            "sql-client.execution.result-mode",
            one_of("table", "changelog", "tableau"),
            "tableau",
            "How the prompt shows rows.",
        ),
        TableOption(
            "sql-client.display.max-column-width",
            INT,
            "30",
            "See table.display.",
            without_effect="set table.display.max-column-width",
        ),
    )
)


class SessionOptions:
    """The table options of one session, as texts; each is checked when it is set."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._given: dict[str, str] = {}
        for key, value in (given or {}).items():
            self.set(key, value)

    def set(self, key: str, value: str) -> None:
        """Raises ConfigurationError for a key that is not known or a value that does not fit."""
        option = _option(key)
        try:
            parsed = option.kind.parse(value)
        except (ValueError, FlinkpyError) as error:
            raise ConfigurationError(f"the option {key!r} cannot be {value!r}: {error}") from None
        if option.without_effect is not None and parsed != option.kind.parse(option.default):
            tell_reasons({key: option.without_effect})
        self._given[key] = value

    def reset(self, key: str) -> None:
        self._given.pop(_option(key).name, None)

    def text(self, key: str) -> str:
        """The value as text, or the default's."""
        default: str = _option(key).default
        return self._given.get(key, default)

    def value(self, key: str) -> Any:
        """The value in its type."""
        return _option(key).kind.parse(self.text(key))

    @property
    def given(self) -> dict[str, str]:
        """Those that were set."""
        return dict(self._given)

    @property
    def zone(self) -> str:
        zone: str = self.value("table.local-time-zone")
        return zone


def _option(key: str) -> TableOption:
    option = TABLE_OPTIONS.option(key)
    if option is None:
        near = did_you_mean(key, [each.name for each in TABLE_OPTIONS.options])
        raise ConfigurationError(f"there is no option {key!r}{near}")
    return option
