"""``python``: a table that a function of the program is asked for."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.relational.functions.user_defined import UserDefinedFunction
from flinkpy.relational.lookups.lookup_port import AskedTable
from flinkpy.sql.catalog.catalog_port import CatalogTable, SourceAbilities
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.connector_factory import ConnectorFactory, stored_columns
from flinkpy.table.factories.lookups.lookup_options import ASKED_OPTIONS, cache_of
from flinkpy.table.factories.table_options import STRING, TableOption, TableValues
from flinkpy.table.python_objects import named_object

if TYPE_CHECKING:
    from flinkpy.sql.physical.physical_nodes import LookupJoin

FUNCTION = "lookup.function"
_HELD = "(held) "  # before the number of a function that the program handed over
_held: dict[str, Any] = {}
_numbers = itertools.count(1)


def hold_function(function: object) -> str:
    """A name for a function, for the option of its table."""
    name = f"{_HELD}{next(_numbers)}"
    _held[name] = function
    return name


class PythonFactory(ConnectorFactory):
    """Asks a function for the rows of a key; it cannot be read as a whole."""

    identifier = "python"
    writes = False
    options = (
        TableOption(
            FUNCTION,
            STRING,
            None,
            "module.function: it is called with the key's columns by name, and gives rows.",
            required=True,
        ),
        *ASKED_OPTIONS,
    )

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        cache_of(values)
        _called(_function_of(values))
        return SourceAbilities(
            is_bounded=True, takes_lookups=True, is_scanned=False, takes_projection=True
        )

    def lookup(self, node: LookupJoin) -> AskedTable:
        values = self.values(node.table)
        function = _function_of(values)
        names = [node.columns.names[column] for column, _ in node.keys]
        call = _called(function)
        columns = stored_columns(node.table)
        return AskedTable(
            function,
            RowType.of(*((column.name, column.type) for column in columns)),
            tuple(names),
            _arguments(node, call, names),
            node.columns.names,
            inspect.iscoroutinefunction(call),
            values["lookup.max-retries"],
            cache_of(values),
        )


def _function_of(values: TableValues) -> Any:
    name = values[FUNCTION]
    found = _held[name] if name in _held else named_object(name)
    if inspect.isclass(found) and issubclass(found, UserDefinedFunction):
        return found()
    return found


def _called(function: object) -> Callable[..., Any]:
    called = getattr(function, "eval", function)
    if not callable(called):
        raise ValidationError(
            f"{FUNCTION!r} names a {type(function).__name__}; it takes a function, or a class with "
            "eval()"
        )
    return called


def _arguments(node: LookupJoin, call: Callable[..., Any], names: Sequence[str]) -> tuple[str, ...]:
    """Which of the keys the function takes. Raises ValidationError where it takes others."""
    signature = inspect.signature(call)
    parameters = signature.parameters.values()
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    given = [name for name in names if takes_all or name in signature.parameters]
    try:
        signature.bind(**dict.fromkeys(given))
    except TypeError as error:
        raise ValidationError(
            f"the function of table '{node.path}' takes {signature}, and the condition says what "
            f"{', '.join(names)} must be equal to: {error}"
        ) from None
    return tuple(given)
