"""Options by key, as a program holds them. An environment checks them against the schema
(``flinkpy.core.options.engine``) when it takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from flinkpy.common.config_options import ConfigOption
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.schema import parse_bool
from flinkpy.core.secrets.option_text import text_of

T = TypeVar("T")


class Configuration:
    """
    >>> conf = Configuration({"parallelism.default": "2"}).set_boolean(
    ...     "pipeline.object-reuse", True
    ... )
    >>> conf.get_integer("parallelism.default", 1), conf.to_dict()["pipeline.object-reuse"]
    (2, 'true')
    """

    def __init__(self, other: Configuration | Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = {}
        if other is not None:
            self.add_all(other)

    @staticmethod
    def from_dict(map: Mapping[str, Any]) -> Configuration:
        return Configuration(map)

    # -- reading -----------------------------------------------------------------------------------

    def get_string(self, key: str, default_value: str) -> str:
        value = self._values.get(key)
        return default_value if value is None else _text(value)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        return self._converted(
            key,
            default_value,
            lambda value: value if isinstance(value, bool) else parse_bool(str(value)),
        )

    def get_integer(self, key: str, default_value: int) -> int:
        return self._converted(key, default_value, int)

    def get_float(self, key: str, default_value: float) -> float:
        return self._converted(key, default_value, float)

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        return self._converted(key, default_value, bytearray)

    def get(self, option: ConfigOption[Any], default_value: object = None) -> Any:
        """The value of a declared option in its type; else ``default_value``; else the option's
        default."""
        if option.key not in self._values:
            return option.default if default_value is None else default_value
        read: dict[Any, Callable[[str, Any], Any]] = {
            bool: self.get_boolean,
            int: self.get_integer,
            float: self.get_float,
            str: self.get_string,
        }
        return read[option.kind](option.key, default_value)

    def _converted(self, key: str, default_value: T, convert: Callable[[Any], T]) -> T:
        value = self._values.get(key)
        if value is None:
            return default_value
        try:
            return convert(value)
        except (ValueError, TypeError) as error:
            raise ConfigurationError(f"option {key}: {error}") from None

    def key_set(self) -> set[str]:
        return set(self._values)

    def contains_key(self, key: str) -> bool:
        return key in self._values

    def to_dict(self) -> dict[str, str]:
        """All options as text."""
        return {key: _text(value) for key, value in self._values.items()}

    # -- writing -----------------------------------------------------------------------------------

    def set_string(self, key: str, value: str) -> Configuration:
        return self._set(key, value, str)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        return self._set(key, value, bool)

    def set_integer(self, key: str, value: int) -> Configuration:
        return self._set(key, value, int)

    def set_float(self, key: str, value: float) -> Configuration:
        return self._set(key, value, (float, int))

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        return self._set(key, value, (bytearray, bytes))

    def set(self, option: ConfigOption[Any], value: object) -> Configuration:
        """Sets a declared option."""
        return self._set(option.key, value, option.kind)

    def _set(self, key: str, value: object, kind: type | tuple[type, ...]) -> Configuration:
        if not isinstance(key, str) or not isinstance(value, kind):
            wanted = " or ".join(
                each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,))
            )
            raise ConfigurationError(
                f"option {key!r} was given {value!r:.80}; this setter takes {wanted}"
            )
        self._values[key] = value
        return self

    def add_all(
        self, other: Configuration | Mapping[str, Any], prefix: str | None = None
    ) -> Configuration:
        """Adds all options of another configuration, with ``prefix`` before their keys."""
        values = other._values if isinstance(other, Configuration) else other
        for key in values:
            if not isinstance(key, str):
                raise ConfigurationError(f"option {key!r:.80}: the keys of options are text")
        self._values.update({(prefix or "") + key: value for key, value in values.items()})
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        target_dict.update(self._values)

    def remove_config(self, key: str) -> bool:
        """Removes an option; returns whether it was set."""
        return self._values.pop(key, None) is not None

    @staticmethod
    def parse_list_value(value: str) -> list[str]:
        """Parses a list in the notation of options: ``a;b`` or ``[a, b]``.

        >>> Configuration.parse_list_value("a;b"), Configuration.parse_list_value("['a', b]")
        (['a', 'b'], ['a', 'b'])
        """
        text = (value or "").strip()
        is_yaml = text.startswith("[") and text.endswith("]")
        parts = text[1:-1].split(",") if is_yaml else text.split(";")
        return [part.strip().strip("'\"") for part in parts if part.strip()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.to_dict().items())))

    def __deepcopy__(self, memo: object) -> Configuration:
        return Configuration(self)

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}={value}" for key, value in self.to_dict().items()) + "}"

    def __repr__(self) -> str:
        return f"Configuration({self.to_dict()})"


def _text(value: object) -> str:
    return text_of(value)
