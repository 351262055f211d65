"""Names of PyFlink's formats that are not here: importing one says what to use instead."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import NoReturn

from flinkpy.common.pyflink_imports import NoSuchPyflinkModule
from flinkpy.core.errors import ProgramError

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]


class NoSuchPyflinkName(ProgramError, AttributeError):
    """The program asks a module for a name of PyFlink's that flinkpy does not have."""


def absent(module: str, instead: Mapping[str, str]) -> Callable[[str], NoReturn]:
    """A module's ``__getattr__``. Of the names in ``instead`` it raises an error with that advice:
    where one is imported, an ImportError, because Python replaces any AttributeError there by one
    without advice; elsewhere an AttributeError, so that ``hasattr`` answers False. Of other names
    it raises an AttributeError."""

    def __getattr__(name: str) -> NoReturn:
        if name not in instead:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        message = f"flinkpy has no {module}.{name}: {instead[name]}"
        if _imports(sys._getframe(1)):
            raise NoSuchPyflinkModule(message, name=module)
        raise NoSuchPyflinkName(message)

    return __getattr__


def _imports(caller: FrameType) -> bool:
    """Whether the caller is at a statement ``from … import …``."""
    at = caller.f_lasti
    return at >= 0 and caller.f_code.co_code[at] == _IMPORT_FROM
