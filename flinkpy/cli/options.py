"""``flinkpy options``: every option, its default, and what it does."""

from __future__ import annotations

import difflib
from datetime import timedelta
from enum import Enum
from typing import Any

from flinkpy.cli.tell import tell
from flinkpy.cluster.option_sources import environment_name
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.ports import Ports
from flinkpy.core.options.schema import SCHEMA, Option
from flinkpy.core.secrets.option_text import text_of


def show_options(pattern: str) -> None:
    """Prints the options whose key contains ``pattern``."""
    found = [
        option
        for option in SCHEMA
        if any(pattern.lower() in key.lower() for key in (option.key, *option.aliases))
    ]
    if not found:
        near = difflib.get_close_matches(
            pattern, [option.key for option in SCHEMA], n=1, cutoff=0.3
        )
        raise ConfigurationError(
            f"no option contains {pattern!r}" + (f"; the nearest is {near[0]}" if near else "")
        )
    for option in found:
        tell(f"{option.key}  ({kind_of(option)}, default {default_of(option)})")
        tell(f"    {option.doc}")
        if option.without_effect is not None:
            tell(f"    no effect here: {option.without_effect}")
        tell(
            f"    ${environment_name(option.key)}"
            + (f"; also: {', '.join(option.aliases)}" if option.aliases else "")
        )


def kind_of(option: Option[Any]) -> str:
    if option.is_memory:
        return "memory"
    if issubclass(option.kind, Enum):
        return " | ".join(str(member.value) for member in option.kind)
    return {
        bool: "true | false",
        int: "integer",
        float: "number",
        str: "text",
        timedelta: "duration",
        Ports: "port | range of ports",
    }[option.kind]


def default_of(option: Option[Any]) -> str:
    value = option.default
    if value is None:
        return "none"
    if option.is_memory:
        units = (("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10))
        return next(
            (f"{value // size} {unit}" for unit, size in units if value and value % size == 0),
            str(value),
        )
    return text_of(value)
