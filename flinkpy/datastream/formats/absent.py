"""Names of PyFlink's formats that are not here: importing one says what to use instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

from flinkpy.common.pyflink_imports import NoSuchPyflinkModule


def absent(module: str, instead: Mapping[str, str]) -> Callable[[str], NoReturn]:
    """A module's ``__getattr__``. Of the names in ``instead`` it raises an ImportError with that advice, of others an AttributeError."""

    def __getattr__(name: str) -> NoReturn:
        if name in instead:
            raise NoSuchPyflinkModule(f"flinkpy has no {module}.{name}: {instead[name]}", name=module)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__
