"""Configurations as strangers may see them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

HIDDEN = "******"
# As Flink's: the value of a key with one of these in it is not shown
_SENSITIVE = ("password", "secret", "account.key", "apikey", "api-key", "api_key", "auth-params", "service-key", "token", "basic-auth",
              "jaas.config", "http-headers", "credential", "access-key", "access_key")


def shown(configuration: Mapping[str, Any]) -> dict[str, str]:
    """The values as text, those of secrets hidden."""
    return {key: HIDDEN if any(word in key.lower() for word in _SENSITIVE) else _text(value) for key, value in sorted(configuration.items())}


def _text(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)
