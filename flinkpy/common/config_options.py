"""Options that a program declares for itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """A key, the type of its value, and its default."""

    key: str
    kind: type[T]
    default: T | None = None


class ConfigOptions:
    """
    >>> ConfigOptions.key("user.threshold").int_type().default_value(3)
    ConfigOption(key='user.threshold', kind=<class 'int'>, default=3)
    """

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, bool)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, int)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, int)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, float)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, float)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, str)

    class TypedConfigOptionBuilder(Generic[T]):
        def __init__(self, key: str, kind: type[T]) -> None:
            self._key, self._kind = key, kind

        def default_value(self, value: T) -> ConfigOption[T]:
            return ConfigOption(self._key, self._kind, value)

        def no_default_value(self) -> ConfigOption[Any]:
            return ConfigOption(self._key, self._kind)
