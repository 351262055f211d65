"""Says where a closed union is taken apart."""

from __future__ import annotations

from typing import NoReturn

from flinkpy.core.errors import EngineError


def assert_never(value: NoReturn) -> NoReturn:
    """Stands behind the last case of a union: mypy refuses the module if a type of the union comes
    here. (``typing.assert_never``, which Python has from 3.11 on.)"""
    raise EngineError(f"{value!r:.100} has no handler")
