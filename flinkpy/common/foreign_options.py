"""Options of Flink and PyFlink that flinkpy does not have: they are stored without effect, and a
warning names them once.

A program written for PyFlink sets options of the JVM, and so does Flink's own ``config.yaml``. In a
program written for flinkpy an unknown option counts as a typo; it is refused, and the error names
the nearest option."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkpy.common.pyflink_imports import is_installed
from flinkpy.core.options.schema import SCHEMA, read, validate
from flinkpy.core.secrets.engine_logs import engine_logger

_LOG = engine_logger(__name__)
_told: set[str] = set()


def check_options(values: Mapping[str, Any], *, foreign: bool = False) -> None:
    """Raises ConfigurationError for values that do not parse and for unknown options. In a program
    written for PyFlink, or with ``foreign``, unknown options only cause a warning."""
    unknown = [
        key for key in validate(values, keep_unknown=foreign or is_installed()) if key not in _told
    ]
    if unknown:
        _told.update(unknown)
        _LOG.warning(
            "options that flinkpy does not know are kept and have no effect: %s",
            ", ".join(map(_with_nearest, sorted(unknown))),
        )


def tell_without_effect(values: Mapping[str, Any]) -> None:
    """Warns of the options that a program sets and nothing reads, once of each."""
    found = {option.key: option for option in SCHEMA if option.without_effect is not None}
    tell_reasons(
        {
            key: str(option.without_effect)
            for key, option in found.items()
            if (value := read(values, option)) is not None and value != option.default
        }
    )


def tell_reasons(reasons: Mapping[str, str]) -> None:
    """Warns of options without effect, each with its reason, once of each."""
    new = {key: reason for key, reason in reasons.items() if key not in _told}
    if new:
        _told.update(new)
        told = (f"{key} ({reason})" for key, reason in sorted(new.items()))
        _LOG.warning("options that have no effect here: %s", "; ".join(told))


def _with_nearest(key: str) -> str:
    """Most of these are Flink's own, so only what looks like a slip of the pen is pointed to."""
    near = SCHEMA.nearest(key, cutoff=0.9)
    return key if near is None else f"{key} (did you mean {near!r}?)"
