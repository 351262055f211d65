"""CREATE, ALTER and DROP FUNCTION."""

from __future__ import annotations

from flinkpy.sql.catalog.catalog_manager import CatalogManager
from flinkpy.sql.catalog.catalog_port import CatalogFunction, ObjectPath
from flinkpy.sql.sql_errors import CatalogError, ValidationError, did_you_mean
from flinkpy.sql.syntax import statements as sql
from flinkpy.sql.syntax.query_tree import Identifier


def create_function(session: CatalogManager, statement: sql.CreateFunction) -> None:
    """Finds the Python object at once, so that a mistake in its path shows here."""
    declared = _declared(statement)
    functions = session.functions
    if statement.system:
        name = _system_name(statement.name)
        if statement.if_not_exists and functions.has_system(name):
            return
        made = functions.load(name.lower(), declared)
        functions.set_system(name, made, or_replace=False)
        return
    path = session.path_of(statement.name.parts)
    session.require_database(path.catalog, path.database)
    if statement.temporary:
        if statement.if_not_exists and functions.has_temporary(path):
            return
        functions.set_temporary(path, functions.load(str(path), declared), or_replace=False)
        return
    if statement.if_not_exists and functions.in_catalog(path) is not None:
        return
    functions.load(str(path), declared)
    functions.create(path, declared)


def alter_function(session: CatalogManager, statement: sql.AlterFunction) -> None:
    """Puts another Python object in the place of a function's."""
    created = sql.CreateFunction(
        statement.name,
        statement.class_name,
        statement.language,
        statement.temporary,
        statement.system,
        span=statement.span,
    )
    declared = _declared(created)
    name = statement.name.text if statement.system else str(_path(session, statement.name))
    session.functions.load(name, declared)
    dropped = sql.Drop(
        "FUNCTION",
        statement.name,
        statement.temporary,
        statement.system,
        statement.if_exists,
        span=statement.span,
    )
    if drop_function(session, dropped):
        create_function(session, created)


def drop_function(session: CatalogManager, statement: sql.Drop) -> bool:
    """Whether there was one. Raises CatalogError if there was none, unless that may be."""
    functions = session.functions
    if statement.system:
        is_gone = functions.drop_system(_system_name(statement.name))
    elif statement.temporary:
        is_gone = functions.drop_temporary(_path(session, statement.name))
    else:
        is_gone = functions.drop(_path(session, statement.name))
    if not is_gone and not statement.if_exists:
        raise _missing(session, statement)
    return is_gone


def _missing(session: CatalogManager, statement: sql.Drop) -> CatalogError:
    name, functions = statement.name, session.functions
    kind = "temporary system " if statement.system else "temporary " * statement.temporary
    hint = did_you_mean(name.text, functions.names())
    if not statement.system and len(name.parts) == 1 and functions.has_system(name.text):
        hint = "; it is one of the system: DROP TEMPORARY SYSTEM FUNCTION it"
    elif not statement.temporary and functions.has_temporary(_path(session, name)):
        hint = "; it is temporary: DROP TEMPORARY FUNCTION it"
    return CatalogError(f"there is no {kind}function {name.text!r} of yours{hint}", span=name.span)


def _declared(statement: sql.CreateFunction) -> CatalogFunction:
    if statement.language.upper() != "PYTHON":
        raise ValidationError(
            f"there is no JVM to run a function in {statement.language}: write it in Python, "
            "and CREATE FUNCTION ... LANGUAGE PYTHON",
            span=statement.span,
        )
    return CatalogFunction(statement.class_name)


def _path(session: CatalogManager, name: Identifier) -> ObjectPath:
    return session.path_of(name.parts)


def _system_name(name: Identifier) -> str:
    if len(name.parts) != 1:
        raise ValidationError(
            f"a function of the system has no catalog or database, and this is {name.text!r}",
            span=name.span,
        )
    return name.parts[0]
