"""What the processes of a cluster log, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from flinkpy.core.options.schema import SCHEMA, Option, option, read


class LogFormat(Enum):
    TEXT = "text"
    JSON = "json"


class LogLevel(Enum):
    """The levels of Python's ``logging``."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


_OF_LOGGERS = "log.level."

LOG_FORMAT = option(
    "log.format",
    LogFormat,
    LogFormat.TEXT,
    "json: log records of the cluster's processes that no handler of the program's takes "
    "are lines of JSON on standard error, those of events among "
    "them.",
)
LOG_LEVEL = option(
    "log.level",
    LogLevel,
    None,
    "From which level on the cluster's processes log. By default a JobManager on Ray logs "
    "from INFO on, workers and embedded clusters from "
    "WARNING on.",
)
LOGGER_LEVEL = SCHEMA.add_family(
    _OF_LOGGERS,
    Option(
        f"{_OF_LOGGERS}<logger>",
        LogLevel,
        None,
        (
            "The same for one logger and those beneath it, log.level.flinkpy.rpc say; it counts "
            "before log.level."
        ),
    ),
)


@dataclass(frozen=True)
class LogConfig:
    """``level`` is None where nothing was said; ``levels`` are those of single loggers."""

    is_json: bool = False
    level: str | None = None
    levels: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(values: Mapping[str, Any]) -> LogConfig:
        level = read(values, LOG_LEVEL)
        levels = {
            key.removeprefix(_OF_LOGGERS): SCHEMA.get(key).parse(value)
            for key, value in values.items()
            if key.startswith(_OF_LOGGERS)
        }
        return LogConfig(
            read(values, LOG_FORMAT) is LogFormat.JSON,
            None if level is None else level.name,
            {logger: each.name for logger, each in levels.items()},
        )
