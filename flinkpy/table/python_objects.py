"""Python objects that SQL names."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

from flinkpy.core.program.code import travels_by_value
from flinkpy.sql.sql_errors import ValidationError, did_you_mean


def named_object(path: str) -> Any:
    """What ``module.object`` names, as ``import`` finds it: on ``sys.path``, where the program and
    what ``env.add_python_file`` added lie, and in the working directory. Raises ValidationError,
    which says what is missing."""
    module, holder = _module_of(path)
    found: Any = module
    for part in holder:
        try:
            found = getattr(found, part)
        except AttributeError:
            near = did_you_mean(part, [each for each in dir(found) if not each.startswith("_")])
            raise ValidationError(
                f"{getattr(found, '__name__', found)!s} has no {part!r}, so there is no function "
                f"{path!r}{near}"
            ) from None
    return found


def _module_of(path: str) -> tuple[ModuleType, list[str]]:
    """The longest beginning of the path that is a module, and the names in it."""
    parts = path.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise ValidationError(
            f"a Python function is named as 'module.function', and this is {path!r}"
        )
    folder = os.getcwd()
    if "" not in sys.path and folder not in sys.path:
        sys.path.append(folder)  # as where Python is started with -m
    for count in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:count])
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
                continue  # perhaps a class in a module
            raise ValidationError(f"the module {name!r} cannot be imported: {error}") from error
        except Exception as error:
            raise ValidationError(
                f"the module {name!r} cannot be imported: {type(error).__name__}: {error}"
            ) from error
        travels_by_value(module)
        return module, parts[count:]
    raise ValidationError(
        f"there is no Python module {parts[0]!r} for {path!r}: it must lie in the working "
        "directory, beside the program, or in what is installed"
    )
