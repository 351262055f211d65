"""Log records as JSON, one on each line."""

from __future__ import annotations

import json
import logging
from typing import Any


class JsonFormatter(logging.Formatter):
    """For a handler of Python's ``logging``. A record about an event has the event as ``event``.

    >>> record = logging.LogRecord("flinkpy", logging.INFO, "", 0, "ready", None, None)
    >>> record.created = 1.5
    >>> JsonFormatter().format(record)
    '{"timestamp": 1500, "level": "INFO", "logger": "flinkpy", "message": "ready"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "timestamp": round(record.created * 1000),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        event = getattr(record, "event", None)
        if event is not None:
            told["event"] = event
        if record.exc_info:
            told["exception"] = record.exc_text or self.formatException(record.exc_info)
        return json.dumps(told, default=str)
