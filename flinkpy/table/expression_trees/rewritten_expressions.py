"""Expressions with parts replaced: the words of windows, and sets of columns."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from flinkpy.columns.expression import Aggregate, Alias, Call, Column, Expression, SqlCall
from flinkpy.core.errors import ProgramError
from flinkpy.sql.sql_errors import did_you_mean
from flinkpy.sql.syntax.query_tree import FunctionCall, OverWindow, SqlExpression
from flinkpy.table.expression_trees.sql_of_expressions import Tree, tree_of

Change = Callable[[Expression], "Expression | None"]


def replaced(expression: Expression, change: Change) -> Expression:
    """The expression with each part replaced for which ``change`` gives another one."""
    found = change(expression)
    if found is not None:
        return found
    if isinstance(expression, Alias):
        return Alias(replaced(expression.expression, change), expression.name)
    if isinstance(expression, Aggregate):
        inside = replaced(expression.expression, change)
        return Aggregate(expression.kind, inside, expression.options)
    if isinstance(expression, Call):
        made = copy.copy(expression)
        made.arguments = tuple(replaced(each, change) for each in expression.arguments)
        return made
    return expression


def with_window(
    expression: Expression, name: str, call: Callable[[str], FunctionCall]
) -> Expression:
    """``col(name).start`` and its like as what the window has of that."""

    def change(part: Expression) -> Expression | None:
        if not isinstance(part, SqlCall) or part.function not in _PARTS:
            return None
        [window] = part.arguments
        if not isinstance(window, Column) or window.column != name:
            raise ProgramError(f"{part!r:.80}: there is no window {window!r}, only col({name!r})")
        return Tree(call(f"_{part.function[1:]}"), repr(part))

    return replaced(expression, change)


_PARTS = frozenset(["$START", "$END", "$ROWTIME", "$PROCTIME"])


def with_over(expression: Expression, windows: Mapping[str, OverWindow]) -> Expression:
    """``aggregate.over(col("w"))`` over the window of that name."""

    def change(part: Expression) -> Expression | None:
        if not isinstance(part, SqlCall) or part.function != "$OVER":
            return None
        aggregate, window = part.arguments
        if not isinstance(window, Column) or window.column not in windows:
            raise ProgramError(f"{part!r:.80}: over_window() has {', '.join(windows)}")
        tree: SqlExpression = tree_of(aggregate)
        if not isinstance(tree, FunctionCall):
            raise ProgramError(f"{part!r:.80}: over() is for aggregates")
        return Tree(replace(tree, over=windows[window.column]), repr(part))

    return replaced(expression, change)


def expanded(fields: Sequence[Expression], names: Sequence[str]) -> list[Expression]:
    """The expressions, with ``with_columns`` and ``without_columns`` as the columns they mean."""
    found: list[Expression] = []
    for each in fields:
        if isinstance(each, SqlCall) and each.function in _SETS:
            chosen = _places(each, names)
            if each.function == "$WITHOUT_COLUMNS":
                chosen = [at for at in range(len(names)) if at not in chosen]
            found += [Column(names[at]) for at in chosen]
        else:
            found.append(each)
    return found


_SETS = frozenset(["$WITH_COLUMNS", "$WITHOUT_COLUMNS", "$WITH_ALL_COLUMNS"])


def _places(columns: SqlCall, names: Sequence[str]) -> list[int]:
    if columns.function == "$WITH_ALL_COLUMNS":
        return list(range(len(names)))
    places: list[int] = []
    for each in columns.arguments:
        if isinstance(each, SqlCall) and each.function == "$RANGE":
            first, last = (_place(value, names) for value in dict(each.options)["ends"])
            places += range(first, last + 1)
        elif isinstance(each, Column):
            places.append(_place(each.column, names))
        else:
            raise ProgramError(f"{columns!r:.80} takes columns and range_(first, last)")
    return places


def _place(given: str | int, names: Sequence[str]) -> int:
    if isinstance(given, int) and 1 <= given <= len(names):
        return given - 1
    if given not in names:
        near = did_you_mean(str(given), names)
        raise ProgramError(f"the table has no column {given!r}{near}")
    return names.index(str(given))
