"""The functions that a session's plans call: SQL's own, and those of users."""

from __future__ import annotations

from collections.abc import Sequence

from flinkpy.sql.catalog.catalog_port import CatalogFunction
from flinkpy.sql.catalog.user_functions import UserFunctions
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.functions.function_port import Function
from flinkpy.table.python_objects import named_object
from flinkpy.table.udf import function_of


class SessionFunctions:
    """A FunctionRegistry by the names that plans keep."""

    def __init__(self, own: UserFunctions) -> None:
        self._own = own
        self._built_in = built_in_functions()

    def find(self, name: str) -> Function | None:
        return self._own.planned(name) or self._built_in.find(name)

    def absence(self, name: str) -> str | None:
        return self._built_in.absence(name)

    def names(self) -> Sequence[str]:
        return self._built_in.names()


def python_function(name: str, declared: CatalogFunction) -> Function:
    """The function that ``module.object`` names. Raises ValidationError, which says what is
    missing."""
    path = declared.class_name
    return function_of(named_object(path), name=name, shown=path)
