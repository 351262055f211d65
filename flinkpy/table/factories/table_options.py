"""The options of tables: one table for each factory, with Flink's names, types and defaults. What
``WITH (...)`` says is read through it, and the documentation is made from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.common.types import RowKind
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.options.schema import parse_duration, parse_memory
from flinkpy.sql.sql_errors import ValidationError, did_you_mean, proposed


@dataclass(frozen=True)
class OptionKind:
    """How the text of an option becomes a value. ``name`` is what errors and pages say."""

    name: str
    parse: Callable[[str], Any]


def _bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it is true or false")
    return text.lower() == "true"


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("it is a whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("it is a number") from None


def _char(text: str) -> str:
    named = {"\\t": "\t", "\\u0001": "\x01"}.get(text, text)
    if len(named) != 1:
        raise ValueError("it is one character")
    return named


def _zone(text: str) -> str:
    if text == "default":
        return own_zone()
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("it is the name of a zone, such as Europe/Oslo") from None
    return text


# what /etc/localtime may call it
_NAMES_OF_UTC = ("Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu")


def own_zone() -> str:
    """The name of this machine's zone; UTC if it does not say."""
    named = os.environ.get("TZ", "").lstrip(":")
    if not named and os.path.islink("/etc/localtime"):
        named = os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    if named in _NAMES_OF_UTC:
        return "UTC"
    try:
        return ZoneInfo(named).key if named else "UTC"
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"


_KINDS = {
    "I": RowKind.INSERT,
    "UB": RowKind.UPDATE_BEFORE,
    "UA": RowKind.UPDATE_AFTER,
    "D": RowKind.DELETE,
}


def _changes(text: str) -> ChangelogMode:
    words = [word.strip().upper() for word in text.strip("[]").split(",")]
    if not set(words) <= _KINDS.keys():
        raise ValueError("it is some of I, UB, UA, D with commas between them")
    return ChangelogMode.of(*(_KINDS[word] for word in words))


STRING = OptionKind("String", str)
INT = OptionKind("Integer", _whole_number)
LONG = OptionKind("Long", _whole_number)
DOUBLE = OptionKind("Double", _number)
BOOLEAN = OptionKind("Boolean", _bool)
CHARACTER = OptionKind("Character", _char)
DURATION = OptionKind("Duration", parse_duration)
MEMORY = OptionKind("MemorySize", parse_memory)
CHANGES = OptionKind("ChangelogMode", _changes)
ZONE = OptionKind("String", _zone)
LIST = OptionKind("List", lambda text: [part.strip() for part in text.split(";") if part.strip()])


def one_of(*words: str) -> OptionKind:
    """One of a few words."""

    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"it is {' or '.join(words)}{did_you_mean(text, words)}")
        return text.lower()

    return OptionKind("Enum", parse)


@dataclass(frozen=True)
class TableOption:
    """One option. A name that ends in ``*`` stands for all that begin so. ``without_effect`` says
    why nothing reads it."""

    name: str
    kind: OptionKind
    default: Any = None
    description: str = ""
    required: bool = False
    without_effect: str | None = None

    def fits(self, key: str) -> bool:
        return key.startswith(self.name[:-1]) if self.name.endswith("*") else key == self.name


@dataclass(frozen=True)
class OptionTable:
    """The options that a connector or a format knows."""

    options: tuple[TableOption, ...]

    def __add__(self, other: OptionTable) -> OptionTable:
        return OptionTable(self.options + other.options)

    def option(self, key: str) -> TableOption | None:
        """What this key sets."""
        return next((option for option in self.options if option.fits(key)), None)

    def read(self, given: Mapping[str, str], whose: str) -> TableValues:
        """The values of a table's options. Raises ValidationError for a key that is not known, a
        value that does not fit, and an option that is missing."""
        values: dict[str, Any] = {}
        for key, text in given.items():
            option = self.option(key)
            if option is None:
                near = proposed(key, [each.name for each in self.options])
                raise ValidationError(f"{whose} has no option {key!r}{near}")
            try:
                values[key] = option.kind.parse(text)
            except (ValueError, FlinkpyError) as error:
                raise ValidationError(
                    f"the option {key!r} of {whose} cannot be {text!r}: {error}"
                ) from None
        for option in self.options:
            if option.required and option.name not in values:
                raise ValidationError(f"{whose} needs the option {option.name!r}")
        return TableValues(self, values)


@dataclass(frozen=True)
class TableValues:
    """The values of one table's options, with the defaults of those that it leaves out."""

    table: OptionTable
    given: Mapping[str, Any]

    def __getitem__(self, key: str) -> Any:
        if key in self.given:
            return self.given[key]
        option = self.table.option(key)
        if option is None:
            raise KeyError(key)
        return option.default

    def within(self, prefix: str) -> TableValues:
        """The options that begin so, under the rest of their names."""
        options = tuple(
            replace(option, name=option.name[len(prefix) :])
            for option in self.table.options
            if option.name.startswith(prefix)
        )
        return TableValues(OptionTable(options), self.with_prefix(prefix))

    def with_prefix(self, prefix: str) -> dict[str, Any]:
        """The given options that begin so, without the prefix."""
        return {
            key[len(prefix) :]: value for key, value in self.given.items() if key.startswith(prefix)
        }


def milliseconds(duration: timedelta) -> int:
    """A duration as the connectors take it."""
    return int(duration / timedelta(milliseconds=1))


def prefixed(options: Sequence[TableOption], prefix: str) -> tuple[TableOption, ...]:
    """The options of a format, as a table names them: ``csv.field-delimiter``."""
    return tuple(
        TableOption(f"{prefix}.{each.name}", each.kind, each.default, each.description)
        for each in options
    )
