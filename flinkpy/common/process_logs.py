"""What the processes of a cluster log: from which level on, and in which form. It goes to standard
error, on Ray a file of the process.

A program's own set-up of Python's logging counts first: records that a handler of its own takes go
there alone."""

from __future__ import annotations

import logging
import sys

from flinkpy.common.json_logs import JsonFormatter
from flinkpy.core.options.logs import LogConfig


class PlainFormatter(logging.Formatter):
    """Shows the time of the engine's records; those of a program look as Python writes them without
    set-up."""

    def __init__(self) -> None:
        super().__init__(logging.BASIC_FORMAT)
        self._engine = logging.Formatter("%(asctime)s %(levelname)-8s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        is_engine = record.name == "flinkpy" or record.name.startswith("flinkpy.")
        return self._engine.format(record) if is_engine else super().format(record)


def set_up_logs(config: LogConfig, default: int) -> None:
    """Sets up the logs of a process that belongs to a cluster. The engine logs from level
    ``default`` on, if the options say nothing."""
    written = logging.StreamHandler(sys.stderr)
    written.setFormatter(JsonFormatter() if config.is_json else PlainFormatter())
    logging.lastResort = written
    root = logging.getLogger()
    if config.level is not None:
        root.setLevel(config.level)
    _set_levels(config, default)


def set_up_embedded_logs(config: LogConfig) -> None:
    """Sets up the logs of a program. Loggers that are not flinkpy's stay as the program wants them,
    unless the options name them. Without any of these options nothing changes."""
    if config == LogConfig():
        return
    written = logging.StreamHandler(sys.stderr)
    written.setFormatter(JsonFormatter() if config.is_json else PlainFormatter())
    logging.lastResort = written
    _set_levels(config, logging.NOTSET)


def _set_levels(config: LogConfig, default: int) -> None:
    engine, events = logging.getLogger("flinkpy"), logging.getLogger("flinkpy.events")
    if config.level is not None or engine.level == logging.NOTSET:
        engine.setLevel(config.level or default)
    if config.is_json and config.level is None and events.level == logging.NOTSET:
        events.setLevel(logging.INFO)
    for name, level in config.levels.items():
        logging.getLogger(name).setLevel(level)
