"""Windows of the Table API, at PyFlink's module path: of groups (``Tumble``, ``Slide``,
``Session``), and of the rows around each row (``Over``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flinkpy.columns import Expression
from flinkpy.columns.expression import Call, Column, Literal, SqlCall
from flinkpy.core.program.program_line import refuse
from flinkpy.core.program.public_names import publish
from flinkpy.sql.syntax.query_tree import FrameBound, FunctionCall, Identifier, OrderItem
from flinkpy.sql.syntax.query_tree import OverWindow as OverTree
from flinkpy.table.expression_trees.sql_of_expressions import constant, tree_of

__all__ = ["GroupWindow", "Over", "OverWindow", "Session", "Slide", "Tumble"]


@dataclass(frozen=True, eq=False)
class GroupWindow:
    """A window in the making: ``on`` names the time, ``alias`` gives it its name."""

    kind: str
    lengths: tuple[Expression, ...]
    time: str | None = None
    name: str | None = None

    def on(self, time_field: Expression) -> GroupWindow:
        """The column of the time: a time attribute, or in BATCH any timestamp."""
        if not isinstance(time_field, Column):
            raise refuse(f"on() takes the column of the time, this is {time_field!r:.80}")
        return replace(self, time=time_field.column)

    def every(self, slide: Expression) -> GroupWindow:
        """How far apart windows of ``Slide`` begin."""
        if self.kind != "HOP" or len(self.lengths) != 1:
            raise refuse("every() is for Slide.over(size)")
        return replace(self, lengths=(slide, *self.lengths))

    def alias(self, alias: str) -> GroupWindow:
        """The name by which ``group_by`` and ``select`` know the window."""
        return replace(self, name=alias)

    def call(self, suffix: str = "") -> FunctionCall:
        """The window in GROUP BY; with a suffix such as ``_START``, what it has of that."""
        assert self.time is not None, "checked() looked at it"
        arguments = (Identifier((self.time,)), *map(tree_of, self.lengths))
        return FunctionCall(f"{self.kind}{suffix}", arguments)

    def checked(self) -> GroupWindow:
        """The same. Raises ProgramError, with the user's line, if something is missing."""
        if self.kind == "HOP" and len(self.lengths) != 2:
            raise refuse("Slide.over(size) needs .every(slide)")
        if self.time is None:
            raise refuse("the window needs its time: .on(col('ts'))")
        if self.name is None:
            raise refuse("the window needs a name: .alias('w')")
        for each in self.lengths:
            if not isinstance(each, Call) or each.function != "interval":
                raise refuse(
                    f"windows have a length such as lit(10).minutes, this is {each!r:.80}; windows "
                    "of so many rows are those of count_window() of streams"
                )
        return self


class Tumble:
    """Windows of one length, each beginning where the last one ends.

    >>> from flinkpy.table.expressions import col, lit
    >>> Tumble.over(lit(10).minutes).on(col("ts")).alias("w").name
    'w'
    """

    @classmethod
    def over(cls, size: Expression) -> GroupWindow:
        """How long they are."""
        return GroupWindow("TUMBLE", (size,))


class Slide:
    """Windows of one length that overlap: ``Slide.over(lit(10).minutes).every(lit(5).minutes)``."""

    @classmethod
    def over(cls, size: Expression) -> GroupWindow:
        """How long they are."""
        return GroupWindow("HOP", (size,))


class Session:
    """Windows that end when nothing has come for a while."""

    @classmethod
    def with_gap(cls, gap: Expression) -> GroupWindow:
        """For how long nothing comes."""
        return GroupWindow("SESSION", (gap,))


UNBOUNDED_ROW = SqlCall("$UNBOUNDED_ROW", ())
UNBOUNDED_RANGE = SqlCall("$UNBOUNDED_RANGE", ())
CURRENT_ROW = SqlCall("$CURRENT_ROW", ())
CURRENT_RANGE = SqlCall("$CURRENT_RANGE", ())


@dataclass(frozen=True, eq=False)
class OverWindow:
    """The rows around each row, in the making."""

    partition: tuple[Expression, ...] = ()
    order: Expression | None = None
    before: Expression | None = None
    behind: Expression | None = None
    name: str | None = None

    def order_by(self, order_by: Expression) -> OverWindow:
        """The time by which rows stand in order."""
        return replace(self, order=order_by)

    def preceding(self, preceding: Expression) -> OverWindow:
        """How far back it goes: UNBOUNDED_RANGE, UNBOUNDED_ROW, ``row_interval(n)`` or an
        interval. If this is left out, to the first row."""
        return replace(self, before=preceding)

    def following(self, following: Expression) -> OverWindow:
        """How far forward: CURRENT_ROW, CURRENT_RANGE, ``row_interval(n)`` or an interval. If this
        is left out, to the row itself."""
        return replace(self, behind=following)

    def alias(self, alias: str) -> OverWindow:
        """The name by which ``over(col(...))`` knows it."""
        return replace(self, name=alias)

    def tree(self) -> OverTree:
        """The same in SQL. Raises ProgramError, with the user's line, for what does not fit."""
        if self.order is None:
            raise refuse("Over needs order_by(col('ts'))")
        order = self.order
        descending = isinstance(order, Call) and order.function == "desc"
        if isinstance(order, Call) and order.function in ("asc", "desc"):
            order = order.arguments[0]
        items = (OrderItem(tree_of(order), descending),)
        partition = tuple(map(tree_of, self.partition))
        if self.before is None and self.behind is None:
            return OverTree(partition, items)
        first = UNBOUNDED_RANGE if self.before is None else self.before
        before, lower = _bound(first, "PRECEDING")
        last = _current(before) if self.behind is None else self.behind
        behind, upper = _bound(last, "FOLLOWING")
        if before != behind:
            raise refuse("preceding() and following() count both rows or both times")
        return OverTree(partition, items, before, lower, upper)


def _current(unit: str) -> Expression:
    return CURRENT_ROW if unit == "ROWS" else CURRENT_RANGE


def _bound(given: Expression, side: str) -> tuple[str, FrameBound]:
    """ROWS or RANGE, and where the frame ends on this side."""
    word = given.function if isinstance(given, Call) else ""
    if word.startswith("$UNBOUNDED"):
        return _unit(word), FrameBound(f"UNBOUNDED {side}")
    if word.startswith("$CURRENT"):
        return _unit(word), FrameBound("CURRENT ROW")
    if word == "$ROWS" and isinstance(given, Call):
        [count] = given.arguments
        assert isinstance(count, Literal)
        return "ROWS", FrameBound(side, constant(count.value))
    if word == "interval":
        return "RANGE", FrameBound(side, tree_of(given))
    raise refuse(f"{side.lower()}() takes row_interval(n) or an interval, this is {given!r:.80}")


def _unit(word: str) -> str:
    return "ROWS" if word.endswith("_ROW") else "RANGE"


class Over:
    """The rows around each row: ``Over.partition_by(col("k")).order_by(col("ts"))``."""

    @classmethod
    def partition_by(cls, *partition_by: Expression) -> OverWindow:
        """The columns that rows have in common."""
        return OverWindow(tuple(partition_by))

    @classmethod
    def order_by(cls, order_by: Expression) -> OverWindow:
        """The order of all rows."""
        return OverWindow(order=order_by)


def names_of(windows: Sequence[OverWindow]) -> dict[str, OverTree]:
    """The windows by name. Raises ProgramError for one without."""
    for each in windows:
        if not isinstance(each, OverWindow) or each.name is None:
            raise refuse("over_window() takes windows with a name: Over....alias('w')")
    return {str(each.name): each.tree() for each in windows}


publish(__name__)
