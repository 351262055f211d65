"""The functions of users in one session: temporary ones, those of the system, those of catalogs,
and those that a program uses without giving them a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from flinkpy.sql.catalog.catalog_port import Catalog, CatalogFunction, ObjectPath
from flinkpy.sql.functions.function_port import Function
from flinkpy.sql.functions.user_function import UserFunction, inline_name
from flinkpy.sql.sql_errors import CatalogError, ValidationError, proposed

# Finds the Python object of a function, which plans know by the name. Raises ValidationError, which
# says why there is none.
LoadFunction: TypeAlias = "Callable[[str, CatalogFunction], Function]"


def loads_nothing(name: str, function: CatalogFunction) -> Function:
    """For sessions whose SQL must not name Python code."""
    raise ValidationError(
        f"this session does not run Python code that SQL names ({function.class_name})"
    )


class UserFunctions:
    """Functions by name. A temporary one hides that of a catalog which has the same name; one of
    the system is called without a path, and hides even SQL's own."""

    def __init__(self, catalogs: Mapping[str, Catalog], load: LoadFunction) -> None:
        self._catalogs = catalogs
        self._load = load
        self._temporary: dict[ObjectPath, Function] = {}
        self._system: dict[str, Function] = {}
        self._inline: dict[str, Function] = {}
        # what catalogs have, once it was used
        self._loaded: dict[ObjectPath, tuple[CatalogFunction, Function]] = {}

    # -- finding -----------------------------------------------------------------------------------

    def system_function(self, name: str) -> Function | None:
        """The one that is called without a path; case does not matter."""
        return self._inline.get(name) or self._system.get(name.lower())

    def at(self, path: ObjectPath) -> Function | None:
        """The function of this full name."""
        path = _key(path)
        if path in self._temporary:
            return self._temporary[path]
        catalog = self._catalogs.get(path.catalog)
        declared = None if catalog is None else catalog.get_function(path.database, path.name)
        if declared is None:
            return None
        known = self._loaded.get(path)
        if known is None or known[0] != declared:
            known = self._loaded[path] = declared, self._load(str(path), declared)
        return known[1]

    def planned(self, name: str) -> Function | None:
        """The function that plans know by this name."""
        found = self._inline.get(name) or self._system.get(name)
        if found is None and name.startswith("`"):
            known = [*self._temporary.values(), *(each for _, each in self._loaded.values())]
            found = next((each for each in known if each.name == name), None)
        return found

    def names(self) -> list[str]:
        """The names of all, without catalog and database."""
        paths = {path.name for path in self._temporary}
        for catalog in self._catalogs.values():
            for database in catalog.list_databases():
                paths.update(catalog.list_functions(database))
        return sorted({*self._system, *paths})

    # -- changing ----------------------------------------------------------------------------------

    def adopted_name(self, function: Function) -> str:
        """The name that plans know a function by which has none in this session."""
        assert isinstance(function, UserFunction)
        number = 0
        while True:
            number += 1
            name = inline_name(function.name, number)
            known = self._inline.get(name)
            if known is None:
                self._inline[name] = replace(function, name=name)
                return name
            if isinstance(known, UserFunction) and known.body is function.body:
                return name

    def set_system(self, name: str, function: Function, *, or_replace: bool = True) -> None:
        """Gives a function a name without a path. Raises CatalogError if it is taken, unless that
        may be."""
        if not or_replace and name.lower() in self._system:
            raise CatalogError(f"there is a temporary system function {name!r} already")
        self._system[name.lower()] = _named(function, name.lower())

    def set_temporary(
        self, path: ObjectPath, function: Function, *, or_replace: bool = True
    ) -> None:
        """The same for a name of this session."""
        path = _key(path)
        if not or_replace and path in self._temporary:
            raise CatalogError(f"there is a temporary function {path} already")
        self._temporary[path] = _named(function, str(path))

    def create(self, path: ObjectPath, function: CatalogFunction) -> None:
        """Puts a function into its catalog. Raises CatalogError if there is one already."""
        path = _key(path)
        self._catalog(path).create_function(path.database, path.name, function)

    def load(self, name: str, function: CatalogFunction) -> Function:
        """The function itself."""
        return self._load(name, function)

    def has_system(self, name: str) -> bool:
        return name.lower() in self._system

    def has_temporary(self, path: ObjectPath) -> bool:
        path = _key(path)
        return path in self._temporary

    def in_catalog(self, path: ObjectPath) -> CatalogFunction | None:
        """What its catalog says of it."""
        path = _key(path)
        return self._catalog(path).get_function(path.database, path.name)

    def drop_system(self, name: str) -> bool:
        """Whether there was one."""
        return self._system.pop(name.lower(), None) is not None

    def drop_temporary(self, path: ObjectPath) -> bool:
        """Whether there was one."""
        path = _key(path)
        return self._temporary.pop(path, None) is not None

    def drop(self, path: ObjectPath) -> bool:
        """Whether its catalog had one. Raises CatalogError if a temporary one hides it."""
        path = _key(path)
        if path in self._temporary:
            raise CatalogError(
                f"a temporary function has the name {path}: DROP TEMPORARY FUNCTION it first"
            )
        if self.in_catalog(path) is None:
            return False
        self._catalog(path).drop_function(path.database, path.name)
        self._loaded.pop(path, None)
        return True

    def _catalog(self, path: ObjectPath) -> Catalog:
        if path.catalog not in self._catalogs:
            near = proposed(path.catalog, self._catalogs)
            raise CatalogError(f"there is no catalog {path.catalog!r}{near}")
        return self._catalogs[path.catalog]


def _key(path: ObjectPath) -> ObjectPath:
    """Names of functions are written in any case."""
    return replace(path, name=path.name.lower())


def _named(function: Function, name: str) -> Function:
    return replace(function, name=name) if isinstance(function, UserFunction) else function
