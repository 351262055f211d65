"""SQL in cells of a notebook: ``%load_ext flinkpy.table.notebook``, then ``%%sql`` and ``%sql``.

::

    %%sql --into late
    SELECT carrier, COUNT(*) AS n FROM flights WHERE dep_delay > 60 GROUP BY carrier

A cell may have several statements with semicolons between; the last one's result is the cell's.
With ``--into`` the rows of the query become a Table of that name, for Python, and a temporary view
for the statements that follow; nothing runs yet. The statements go to the TableEnvironment of the
notebook; if there is none, ``table_env`` is made, in BATCH."""

from __future__ import annotations

import argparse
import shlex
from typing import Any, NoReturn

from flinkpy.core.errors import ProgramError
from flinkpy.table.environment_settings import EnvironmentSettings
from flinkpy.table.table_environment import TableEnvironment
from flinkpy.table.table_result import TableResult

MADE = "table_env"


def load_ipython_extension(shell: Any) -> None:
    """What ``%load_ext`` calls: registers the magics."""
    sql = SqlMagic(shell)
    shell.register_magic_function(sql.line, "line", "sql")
    shell.register_magic_function(sql.cell, "cell", "sql")


class SqlMagic:
    """``%sql`` and ``%%sql`` of one notebook."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def line(self, line: str) -> object:
        """``%sql SELECT 1``: one statement in a line."""
        return self._run(self._environment(None), line)

    def cell(self, line: str, cell: str) -> object:
        """``%%sql [--into NAME] [--env NAME]``: the statements of a cell."""
        options = _options(line)
        tables = self._environment(options.env)
        if options.into is None:
            return self._run(tables, cell)
        if not options.into.isidentifier():
            raise ProgramError(f"--into takes a name of Python, this is {options.into!r}")
        table = tables.sql_query(cell.strip().removesuffix(";"))
        self._shell.user_ns[options.into] = table
        tables.drop_temporary_view(options.into)
        tables.create_temporary_view(options.into, table)
        return table

    def _run(self, tables: TableEnvironment, text: str) -> TableResult | None:
        from flinkpy.sql.parsing.parse import parse_script

        last = None
        for piece in parse_script(text):
            last = tables.execute(piece.statement, piece.text)
            if tables.get_config().is_batch:
                last.wait()  # the next statement may read what this one has written
        return last

    def _environment(self, name: str | None) -> TableEnvironment:
        names = self._shell.user_ns
        if name is not None:
            found = names.get(name)
            if not isinstance(found, TableEnvironment):
                raise ProgramError(f"{name!r} is no TableEnvironment of this notebook")
            return found
        # a notebook's history holds its results too, under names such as _3
        own = {
            id(value): (key, value)
            for key, value in names.items()
            if isinstance(value, TableEnvironment) and not key.startswith("_")
        }
        if len(own) > 1:
            listed = ", ".join(key for key, _ in own.values())
            raise ProgramError(f"there are several TableEnvironments ({listed}): name one, --env")
        if own:
            return next(iter(own.values()))[1]
        made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        names[MADE] = made
        return made


class _Parser(argparse.ArgumentParser):
    """Raises instead of ending the program."""

    def error(self, message: str) -> NoReturn:
        raise ProgramError(f"%%sql [--into NAME] [--env NAME]: {message}")


def _options(line: str) -> argparse.Namespace:
    parser = _Parser(prog="%%sql", add_help=False, allow_abbrev=False)
    parser.add_argument("--into")
    parser.add_argument("--env")
    return parser.parse_args(shlex.split(line))
