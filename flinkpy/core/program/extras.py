"""Packages that flinkpy uses if they are installed: each comes with an extra, ``pip install
'flinkpy[EXTRA]'``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flinkpy.core.errors import ProgramError


def needs(what: str, extra: str) -> str:
    """The sentence for something that an extra has to bring.

    >>> needs("to_pandas()", "pandas")
    "to_pandas() needs the extra: pip install 'flinkpy[pandas]'"
    """
    return f"{what} needs the extra: pip install 'flinkpy[{extra}]'"


def imported(module: str, extra: str, what: str) -> Any:
    """The module. Raises ProgramError, which names the extra, if it is not installed.

    >>> imported("json", "pandas", "to_pandas()").dumps([1])
    '[1]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        why = (
            ""
            if isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
            else f" ({error})"
        )
        raise ProgramError(needs(what, extra) + why) from error
