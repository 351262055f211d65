"""Values as keys of a dict."""

from __future__ import annotations

from typing import Any


def hashable(value: Any) -> Any:
    """The value, or a tuple that stands for it as the key of a dict.

    >>> hashable([1, [2]])
    (1, (2,))
    """
    if isinstance(value, dict):
        return tuple((hashable(key), hashable(each)) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(hashable, value))
    return value
