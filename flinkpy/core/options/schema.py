"""Options: one typed schema and one parser. An unknown key is refused, and the error names the
nearest known key.

Files, environment variables, ``-D`` and code fill in a ``Configuration``; later ones win. Each
layer of the engine reads its own frozen dataclass from it once, where values enter the layer, and
does not look at it again."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from typing import Any, Generic, TypeVar

from flinkpy.core.errors import ConfigurationError, EngineError
from flinkpy.core.options.ports import Ports
from flinkpy.core.secrets.option_text import text_of

T = TypeVar("T")

_DURATION_UNITS = {
    "": "milliseconds",
    "ms": "milliseconds",
    "milli": "milliseconds",
    "millis": "milliseconds",
    "millisecond": "milliseconds",
    "milliseconds": "milliseconds",
    "us": "microseconds",
    "µs": "microseconds",
    "micro": "microseconds",
    "micros": "microseconds",
    "microsecond": "microseconds",
    "microseconds": "microseconds",
    "s": "seconds",
    "sec": "seconds",
    "second": "seconds",
    "seconds": "seconds",
    "m": "minutes",
    "min": "minutes",
    "minute": "minutes",
    "minutes": "minutes",
    "h": "hours",
    "hour": "hours",
    "hours": "hours",
    "d": "days",
    "day": "days",
    "days": "days",
}
_MEMORY_UNITS = {
    "": 1,
    "b": 1,
    "bytes": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "kibibytes": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "mebibytes": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
    "gibibytes": 1 << 30,
    "t": 1 << 40,
    "tb": 1 << 40,
    "tebibytes": 1 << 40,
}
_NUMBER_UNIT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Zµ]*)\s*")


def parse_duration(text: str) -> timedelta:
    """Parses a duration in Flink's notation: ``10 s``, ``100 ms``, ``1 min``, ``2 h``; a bare
    number is milliseconds.

    >>> parse_duration("1 min")
    datetime.timedelta(seconds=60)
    """
    match = _NUMBER_UNIT.fullmatch(text)
    unit = _DURATION_UNITS.get(match.group(2).lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"{text!r} is not a duration; write for example '500 ms', '10 s', '1 min'")
    try:
        return timedelta(**{unit: float(match.group(1))})
    except OverflowError:
        raise ValueError(
            f"{text!r} is longer than a duration can be; write at most '999999999 d'"
        ) from None


def parse_memory(text: str) -> int:
    """Parses an amount of memory into bytes: ``64 mb``, ``1g``, ``32768``.

    >>> parse_memory("64 mb")
    67108864
    """
    match = _NUMBER_UNIT.fullmatch(text)
    unit = _MEMORY_UNITS.get(match.group(2).lower()) if match else None
    if match is None or unit is None:
        raise ValueError(
            f"{text!r} is not an amount of memory; write for example '32 kb', '64 mb', '1 gb'"
        )
    return int(float(match.group(1)) * unit)


def parse_bool(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false", "yes", "no", "on", "off", "1", "0"):
        raise ValueError(f"{text!r} is neither true nor false")
    return lowered in ("true", "yes", "on", "1")


def _parse_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def _parse_float(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not a number")
    return number


def _parser_of(kind: type[Any]) -> Callable[[str], Any]:
    if issubclass(kind, Enum):

        def parse_member(text: str) -> Any:
            for member in kind:
                if _plain(text) == _plain(str(member.value)):
                    return member
            raise ValueError(_none_of(text, [str(member.value) for member in kind]))

        return parse_member
    return {
        bool: parse_bool,
        int: _parse_int,
        float: _parse_float,
        str: lambda text: text,
        timedelta: parse_duration,
        Ports: Ports.parse,
    }[kind]


@dataclass(frozen=True)
class Option(Generic[T]):
    """One option: its key, type, default and meaning. A default of ``None`` means that the value is
    derived, or absent. ``at_least`` and ``at_most`` bound numbers and durations. ``choices`` are
    the texts that it may be, each with what it means. ``without_effect`` says why nothing here
    reads the option, which programs set all the same."""

    key: str
    kind: type[Any]
    default: T
    doc: str
    is_memory: bool = False
    aliases: tuple[str, ...] = ()
    at_least: int | timedelta | None = None
    at_most: int | None = None
    choices: Mapping[str, str] | None = None
    without_effect: str | None = None

    def parse(self, value: object, key: str | None = None) -> T:
        """The value converted to the option's type. Raises ConfigurationError if that fails; it
        names the option by ``key``, under which the value stood."""
        key = key or self.key
        if value is None:
            return self.default
        try:
            parsed = self._parsed(value)
        except (ValueError, KeyError, OverflowError) as error:
            raise ConfigurationError(f"option {key}: {error}") from None
        if self.at_least is not None and parsed < self.at_least:
            raise ConfigurationError(
                f"option {key}: {text_of(value)} is too small; it must be at least "
                f"{text_of(self.at_least)}"
            )
        if self.at_most is not None and parsed > self.at_most:
            raise ConfigurationError(
                f"option {key}: {value} is too large; it must be at most {self.at_most}"
            )
        return parsed  # type: ignore[no-any-return]

    def _parsed(self, value: object) -> Any:
        if self.is_memory:
            return parse_memory(str(value))
        if isinstance(value, self.kind) and not (self.kind is int and isinstance(value, bool)):
            parsed = value
        else:
            parsed = _parser_of(self.kind)(str(value))
        return parsed if self.choices is None else _chosen(self.choices, parsed)


def choices(*names: str, **others: str) -> Mapping[str, str]:
    """These texts, and ``others`` that mean one of them (Flink's other spellings).

    >>> choices("none", "fixed-delay", off="none")
    {'none': 'none', 'fixed-delay': 'fixed-delay', 'off': 'none'}
    """
    return {**{name: name for name in names}, **others}


def _chosen(known: Mapping[str, str], text: str) -> str:
    plain = _plain(text)
    for name, meaning in known.items():
        if _plain(name) == plain:
            return meaning
    raise ValueError(_none_of(text, list(dict.fromkeys(known.values()))))


def _plain(text: str) -> str:
    return text.strip().lower().replace("_", "-")


def _none_of(text: str, names: list[str]) -> str:
    near = difflib.get_close_matches(
        _plain(text), [_plain(name) for name in names], n=1, cutoff=0.5
    )
    meant = next((name for name in names if near and _plain(name) == near[0]), None)
    return f"{text!r} is none of {', '.join(names)}" + (f"; did you mean {meant}?" if meant else "")


class Schema:
    """All declared options; each module declares its own with :func:`option`."""

    def __init__(self) -> None:
        self._options: dict[str, Option[Any]] = {}
        self._families: dict[str, Option[Any]] = {}  # by what their keys begin with

    def add(self, option: Option[T]) -> Option[T]:
        for key in (option.key, *option.aliases):
            if key in self._options:
                raise EngineError(f"option {key} is declared twice")
            self._options[key] = option
        return option

    def add_family(self, prefix: str, member: Option[T]) -> Option[T]:
        """Options whose keys begin with ``prefix``; ``member`` says for all of them what they are,
        and its key how they are shown."""
        self._families[prefix] = member
        return member

    def get(self, key: str) -> Option[Any]:
        """The option with that key. Raises ConfigurationError for an unknown key, and names the
        nearest known one."""
        found = self._options.get(key) or self._member(key)
        if found is None:
            near = self.nearest(key)
            raise ConfigurationError(
                f"unknown option {key!r}"
                + (f"; did you mean {near!r}?" if near else "; `flinkpy options` lists all of them")
            )
        return found

    def nearest(self, key: str, cutoff: float = 0.5) -> str | None:
        """The known key that is most like this one, if one is as like as ``cutoff`` (1.0:
        equal)."""
        return next(iter(difflib.get_close_matches(key, self._options, n=1, cutoff=cutoff)), None)

    def __contains__(self, key: str) -> bool:
        return key in self._options or self._member(key) is not None

    def __iter__(self) -> Iterator[Option[Any]]:
        return iter(
            {
                option.key: option for option in (*self._options.values(), *self._families.values())
            }.values()
        )

    def _member(self, key: str) -> Option[Any] | None:
        found = next(
            (
                member
                for prefix, member in self._families.items()
                if key.startswith(prefix) and key != prefix
            ),
            None,
        )
        return None if found is None else replace(found, key=key)


SCHEMA = Schema()


def option(
    key: str,
    kind: type[Any],
    default: object,
    doc: str,
    *,
    memory: bool = False,
    aliases: tuple[str, ...] = (),
    at_least: int | timedelta | None = None,
    at_most: int | None = None,
    choices: Mapping[str, str] | None = None,
    without_effect: str | None = None,
) -> Option[Any]:
    """Declares an option in ``SCHEMA`` and returns it."""
    return SCHEMA.add(
        Option(key, kind, default, doc, memory, aliases, at_least, at_most, choices, without_effect)
    )


def read(values: Mapping[str, Any], wanted: Option[T]) -> T:
    """The option's value in ``values`` (by its key or an alias), or its default."""
    for key in (wanted.key, *wanted.aliases):
        if key in values:
            return wanted.parse(values[key], key)
    return wanted.default


def key_in(values: Mapping[str, Any], wanted: Option[Any]) -> str:
    """The key under which the option stands in ``values``, for messages; its own if it is not
    there."""
    return next((key for key in (wanted.key, *wanted.aliases) if key in values), wanted.key)


def validate(
    values: Mapping[str, Any],
    prefixes_let_through: tuple[str, ...] = ("user.",),
    *,
    keep_unknown: bool = False,
) -> list[str]:
    """Raises ConfigurationError for a value that does not parse and for an unknown key. Keys under
    ``user.`` belong to the program and are not checked. With ``keep_unknown``, other unknown keys
    are not refused either, but returned."""
    unknown = []
    for key, value in values.items():
        if key.startswith(prefixes_let_through):
            continue
        if keep_unknown and key not in SCHEMA:
            unknown.append(key)
        else:
            SCHEMA.get(key).parse(value, key)
    return unknown
