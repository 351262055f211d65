"""The loggers of the engine: none of their records has a secret."""

from __future__ import annotations

import logging

from flinkpy.core.secrets.hidden_secrets import without_secrets


class HidesSecrets(logging.Filter):
    """Passes every log record, and hides secrets in its message and in its traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        hidden = without_secrets(said)
        if hidden != said:
            record.msg, record.args = hidden, None
        if record.exc_info and record.exc_text is None:
            text = _FORMATTER.formatException(record.exc_info)
            hidden = without_secrets(text)
            if hidden != text:
                record.exc_text = hidden  # formatters show it instead of the exception
        return True


_FORMATTER = logging.Formatter()
_HIDES = HidesSecrets()


def engine_logger(name: str) -> logging.Logger:
    """The logger of a module of flinkpy: none of its records has a secret, whatever handlers a
    program gives it."""
    logger = logging.getLogger(name)
    logger.addFilter(_HIDES)
    return logger
