"""The expression tree: pure Python, immutable, picklable, with a repr that reads like the
expression.

``flinkpy.columns.rowwise`` defines what an expression means for one row;
``flinkpy.columns.compiler`` computes it for a batch. Where PyFlink has properties (``upper_case``,
``is_null``, ``sum``), these are properties too."""

from __future__ import annotations

from typing import Any

from flinkpy.columns.methods.aggregate_methods import AggregateMethods
from flinkpy.columns.methods.expression_base import name as checked_name
from flinkpy.columns.methods.moment_methods import IntervalMethods, MomentMethods
from flinkpy.columns.methods.nested_methods import NestedMethods
from flinkpy.columns.methods.number_methods import NumberMethods
from flinkpy.columns.methods.sql_methods import SqlAggregates, SqlMethods, WindowMethods
from flinkpy.columns.methods.text_methods import RegularMethods, TextMethods
from flinkpy.columns.units import MONTHS
from flinkpy.columns.values.literals import is_literal, python_value
from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.common.logical_types.type_conversion import stream_type
from flinkpy.common.typeinfo import TypeInformation, Types
from flinkpy.core.errors import ProgramError

MOST_NESTED = 100  # half of what pickle manages within Python's limit of recursion


def as_expression(value: object) -> Expression:
    """An expression unchanged; any other value as a literal."""
    return value if isinstance(value, Expression) else Literal(value)


class Expression(
    MomentMethods["Expression"],
    IntervalMethods["Expression"],
    TextMethods["Expression"],
    RegularMethods["Expression"],
    NestedMethods["Expression"],
    NumberMethods["Expression"],
    AggregateMethods["Expression"],
    SqlMethods["Expression"],
    SqlAggregates["Expression"],
    WindowMethods["Expression"],
):
    """A value computed from the columns of a row. ``col`` and ``lit`` make expressions; operators
    and methods combine them.

    An operation on null gives null, unless its description says otherwise; ``filter`` keeps only
    what is true. Integers are computed in 64 bits, and an overflow is an error. ``/`` gives a
    float; ``//`` rounds down, and the result of ``%`` has the divisor's sign, as in Python.

    >>> from flinkpy.table.expressions import col
    >>> (col("price") * 0.908).alias("euro")
    (col('price') * 0.908).alias('euro')
    """

    __slots__ = ()

    # -- what it is made of ------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return ()

    @property
    def depth(self) -> int:
        """How many expressions are nested in each other here."""
        return 1 + max((each.depth for each in self.inputs), default=0)

    @property
    def name(self) -> str | None:
        """The name of the resulting column; None if it needs an alias."""
        return None

    def column_name(self, where: str) -> str:
        """The column's name. Raises ProgramError if this is not a plain column; ``where`` names the
        method in the message."""
        raise ProgramError(
            f"{where} takes a column, this is an expression: {self!r}; "
            f'compute it before, with select(..., ({self!r}).alias("name"))'
        )

    def _call(self, function: str, *arguments: Any, **options: Any) -> Expression:
        return Call(function, (self, *map(as_expression, arguments)), tuple(options.items()))

    def _aggregate(self, kind: str, **options: Any) -> Expression:
        return Aggregate(kind, self, tuple(options.items()))

    def _sql(self, function: str, *arguments: Any, is_first: bool = True) -> Expression:
        return sql_call(function, *((self, *arguments) if is_first else (*arguments, self)))

    def _sql_aggregate(self, function: str, *arguments: Any) -> Expression:
        return sql_call(function, self, *arguments, is_aggregate=True)

    def _of_window(self, word: str, *arguments: Any) -> Expression:
        return SqlCall(f"${word}", (self, *map(as_expression, arguments)))

    # -- arithmetic --------------------------------------------------------------------------------

    def __add__(self, other: object) -> Expression:
        return _moved(self, as_expression(other), "+")

    def __radd__(self, other: object) -> Expression:
        return as_expression(other) + self

    def __sub__(self, other: object) -> Expression:
        return _moved(self, as_expression(other), "-")

    def __rsub__(self, other: object) -> Expression:
        return as_expression(other) - self

    def __mul__(self, other: object) -> Expression:
        return self._call("*", other)

    def __rmul__(self, other: object) -> Expression:
        return as_expression(other)._call("*", self)

    def __truediv__(self, other: object) -> Expression:
        """The quotient as a float, also of integers; division by zero gives an infinity or NaN."""
        return self._call("/", other)

    def __rtruediv__(self, other: object) -> Expression:
        return as_expression(other)._call("/", self)

    def __floordiv__(self, other: object) -> Expression:
        """The quotient rounded down to a whole number, as in Python; an integer divided by zero is
        an error."""
        return self._call("//", other)

    def __rfloordiv__(self, other: object) -> Expression:
        return as_expression(other)._call("//", self)

    def __mod__(self, other: object) -> Expression:
        """The remainder, with the divisor's sign; an integer modulo zero is an error."""
        return self._call("%", other)

    def __rmod__(self, other: object) -> Expression:
        return as_expression(other)._call("%", self)

    def __pow__(self, other: object) -> Expression:
        """The power as a float, also of integers; NaN where no real number is the power."""
        return self._call("**", other)

    def __rpow__(self, other: object) -> Expression:
        return as_expression(other)._call("**", self)

    def __neg__(self) -> Expression:
        return self._call("negate")

    # -- comparison --------------------------------------------------------------------------------

    # an expression, not a bool
    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._call("==", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._call("!=", other)

    def __lt__(self, other: object) -> Expression:
        return self._call("<", other)

    def __le__(self, other: object) -> Expression:
        return self._call("<=", other)

    def __gt__(self, other: object) -> Expression:
        return self._call(">", other)

    def __ge__(self, other: object) -> Expression:
        return self._call(">=", other)

    __hash__ = object.__hash__

    def between(self, lower_bound: object, upper_bound: object) -> Expression:
        """Whether the value lies between the bounds, both included."""
        return self._call(">=", lower_bound)._call("&", self._call("<=", upper_bound))

    def in_(self, first_element: Any, *remaining_elements: Any) -> Expression:
        """Whether the value is one of these. Raises ProgramError for None and for values that
        cannot be literals.

        >>> from flinkpy.table.expressions import col
        >>> col("carrier").in_("UA", "DL")
        col('carrier').in_('UA', 'DL')
        """
        is_list = (
            isinstance(first_element, (list, tuple, set, frozenset)) and not remaining_elements
        )
        elements = first_element if is_list else (first_element, *remaining_elements)
        values = tuple(
            each.value if isinstance(each, Literal) else python_value(each) for each in elements
        )
        if not values or any(each is None or not is_literal(each) for each in values):
            raise ProgramError(
                f"in_() takes plain values, none of them None; these are {values!r:.100}"
            )
        return self._call("in_", values=values)

    @property
    def is_null(self) -> Expression:
        """Whether the value is null; never null itself."""
        return self._call("is_null")

    @property
    def is_not_null(self) -> Expression:
        """Whether the value is not null; never null itself."""
        return self._call("is_not_null")

    @property
    def is_true(self) -> Expression:
        """Whether the value is true; false for null."""
        return self._call("is_true")

    @property
    def is_false(self) -> Expression:
        """Whether the value is false; false for null."""
        return self._call("is_false")

    # -- order: what order_by() of a table takes ---------------------------------------------------

    @property
    def asc(self) -> Expression:
        """Upwards, in ``order_by`` of a table."""
        return self._call("asc")

    @property
    def desc(self) -> Expression:
        """Downwards, in ``order_by`` of a table."""
        return self._call("desc")

    # -- logic -------------------------------------------------------------------------------------

    def __and__(self, other: object) -> Expression:
        """False if one side is false, whatever the other is."""
        return self._call("&", other)

    def __rand__(self, other: object) -> Expression:
        return as_expression(other)._call("&", self)

    def __or__(self, other: object) -> Expression:
        """True if one side is true, whatever the other is."""
        return self._call("|", other)

    def __ror__(self, other: object) -> Expression:
        return as_expression(other)._call("|", self)

    def __invert__(self) -> Expression:
        return self._call("not")

    def __bool__(self) -> bool:
        raise ProgramError(
            f"{self!r} has no truth of its own: it is computed for every row. Combine "
            "expressions with & | ~ instead of and, or, not, "
            "with parentheses around comparisons; for a < x < b, x in "
            "(...), max and min there are between, in_, greatest and least"
        )

    def then(self, if_true: object, if_false: object) -> Expression:
        """``if_true`` where this is true, ``if_false`` where it is false or null. A value that
        cannot be computed is an error only where it is chosen.

        >>> from flinkpy.table.expressions import col
        >>> (col("delay") > 15).then("late", "on time")
        (col('delay') > 15).then('late', 'on time')
        """
        return self._call("then", if_true, if_false)

    def if_null(self, null_replacement: object) -> Expression:
        """The value, or the replacement where it is null."""
        return self._call("coalesce", null_replacement)

    # -- type and name -----------------------------------------------------------------------------

    def cast(self, data_type: LogicalType | TypeInformation) -> Expression:
        """The value in another type: ``cast(DataTypes.BIGINT())`` or ``cast(Types.LONG())``. Floats
        are truncated to integers; a value that does not fit is an error.

        Between TIMESTAMP and BIGINT the value is in milliseconds since 1970. A timestamp with a
        zone becomes its local date, time or TIMESTAMP. Raises ProgramError if ``data_type`` is no
        type."""
        return self._call("cast", to=_type(data_type, "cast()"))

    def try_cast(self, data_type: LogicalType | TypeInformation) -> Expression:
        """The value in another type, as ``cast`` gives it, but null where the cast fails."""
        return self._call("try_cast", to=_type(data_type, "try_cast()"))

    @property
    def to_date(self) -> Expression:
        """Text such as 2024-05-31 as a date; the date of a timestamp."""
        return self.cast(Types.SQL_DATE())

    @property
    def to_time(self) -> Expression:
        """Text such as 12:30:00 as a time of day; the time of a timestamp."""
        return self.cast(Types.SQL_TIME())

    @property
    def to_timestamp(self) -> Expression:
        """Text such as 2024-05-31 12:30:00 as a timestamp without a zone."""
        return self.cast(Types.SQL_TIMESTAMP())

    @property
    def distinct(self) -> Expression:
        """Of an aggregate: that of different values only."""
        raise ProgramError(f"{self!r:.80} is no aggregate, and distinct is for aggregates")

    def alias(self, name: str, *extra_names: str) -> Expression:
        """The expression under this name. Only a table function gives several columns."""
        if extra_names:
            raise ProgramError(
                f"{self!r:.80} is one column, and {1 + len(extra_names)} names are given"
            )
        return Alias(self, checked_name(name, "alias()"))


def _type(data_type: object, where: str) -> LogicalType | TypeInformation:
    if not isinstance(data_type, (LogicalType, TypeInformation)):
        raise ProgramError(
            f"{where} takes a type such as DataTypes.BIGINT(), this is {data_type!r:.80}"
        )
    return data_type


class Column(Expression):
    __slots__ = ("column",)

    def __init__(self, column: str) -> None:
        self.column = column

    @property
    def name(self) -> str:
        return self.column

    def column_name(self, where: str) -> str:
        return self.column

    def __repr__(self) -> str:
        return f"col({self.column!r})"


class Literal(Expression):
    """A constant; ``type_info`` is its type if the value does not show it."""

    __slots__ = ("type_info", "value")

    def __init__(
        self, value: object, type_info: LogicalType | TypeInformation | None = None
    ) -> None:
        value = python_value(value)
        if not is_literal(value):
            raise ProgramError(
                f"{value!r:.80} cannot stand in an expression: use numbers, text, truth "
                "values, dates, or None"
            )
        self.value, self.type_info = value, type_info

    def __repr__(self) -> str:
        return repr(self.value)


class Alias(Expression):
    __slots__ = ("_name", "expression")

    def __init__(self, expression: Expression, name: str) -> None:
        self.expression, self._name = expression, name

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return (self.expression,)

    @property
    def name(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"{self.expression!r}.alias({self._name!r})"


class Call(Expression):
    """A function of other expressions; ``options`` are the function's constant options."""

    __slots__ = ("_depth", "arguments", "function", "options")

    def __init__(
        self,
        function: str,
        arguments: tuple[Expression, ...],
        options: tuple[tuple[str, Any], ...] = (),
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.options = options
        self._depth = super().depth
        if self._depth > MOST_NESTED:
            raise ProgramError(
                f"an expression is nested more than {MOST_NESTED} deep, which Python could "
                "not send to the workers: give many "
                "conditions to and_(...) or or_(...) at once, or compute a "
                "part before, with with_columns(...)"
            )

    @property
    def depth(self) -> int:
        return self._depth

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return self.arguments

    def stream_options(self) -> dict[str, Any]:
        """The options as streams read them: a type of tables is the stream's type for it."""
        return {
            name: stream_type(value, repr(self)) if isinstance(value, LogicalType) else value
            for name, value in self.options
        }

    @property
    def shown_function(self) -> str:
        """The function's name as it is written."""
        options = dict(self.options)
        if self.function in ("interval", "months"):
            return _SHOWN_UNITS.get(options["unit"], str(options["unit"]))
        return (
            f"to_{options['to']}"
            if self.function == "read_moment"
            else _METHODS.get(self.function, self.function)
        )

    def __repr__(self) -> str:
        first, *rest = map(repr, self.arguments)
        if len(self.arguments) == 2 and not self.function[0].isalpha():
            return f"({first} {self.function} {rest[0]})"
        if self.function in _PREFIXES:
            return f"{_PREFIXES[self.function]}{first}"
        if self.function in _PROPERTIES:
            return f"{first}.{_PROPERTIES[self.function]}"
        options = [
            str(each) if isinstance(each, LogicalType) else repr(each)
            for _, value in self.options
            for each in (value if self.function == "in_" else (value,))
            if each is not None
        ]
        if self.function in ("interval", "months"):
            return f"{first}.{self.shown_function}"
        if self.function == "read_moment":
            return f"{self.shown_function}({first}, {options[0]})"
        if self.function in _FUNCTIONS:
            return f"{self.function}({', '.join([first, *rest, *options])})"
        return f"{first}.{self.shown_function}({', '.join([*rest, *options])})"


class SqlCall(Call):
    """A function of SQL's by its name; only tables have it."""

    __slots__ = ("is_aggregate", "is_distinct")

    def __init__(
        self,
        function: str,
        arguments: tuple[Expression, ...],
        options: tuple[tuple[str, Any], ...] = (),
        *,
        is_aggregate: bool = False,
        is_distinct: bool = False,
    ) -> None:
        super().__init__(function, arguments, options)
        self.is_aggregate = is_aggregate
        self.is_distinct = is_distinct

    @property
    def distinct(self) -> Expression:
        """The aggregate of different values only."""
        return SqlCall(
            self.function,
            self.arguments,
            self.options,
            is_aggregate=self.is_aggregate,
            is_distinct=True,
        )

    def __repr__(self) -> str:
        distinct = "DISTINCT " if self.is_distinct else ""
        return f"{self.function.strip('$')}({distinct}{', '.join(map(repr, self.arguments))})"


def sql_call(function: str, *arguments: object, is_aggregate: bool = False) -> SqlCall:
    """A function by SQL's name; trailing arguments that are None were not given."""
    given = list(arguments)
    while given and given[-1] is None:
        given.pop()
    return SqlCall(function, tuple(map(as_expression, given)), is_aggregate=is_aggregate)


def refuse_sql(expression: Expression) -> None:
    """Raises ProgramError for a function that only tables have."""
    if isinstance(expression, SqlCall):
        raise ProgramError(
            f"{expression!r} is a function of SQL, which tables have and streams do not: make a "
            "table of the stream with from_data_stream(), or compute it in map()"
        )


_PREFIXES = {"negate": "-", "not": "~"}
_PROPERTIES = {
    "upper": "upper_case",
    "lower": "lower_case",
    **{
        name: name
        for name in (
            "abs",
            "sign",
            "sqrt",
            "exp",
            "ln",
            "is_null",
            "is_not_null",
            "is_nan",
            "is_true",
            "is_false",
            "asc",
            "desc",
            "char_length",
            "init_cap",
            "reverse",
            "cardinality",
        )
    },
}
_METHODS = {"floor_to": "floor", "ceil_to": "ceil"}
_FUNCTIONS = frozenset({"greatest", "least", "date_format", "timestamp_diff", "add_months"})
_SHOWN_UNITS = {"millisecond": "milli"}


def _moved(left: Expression, right: Expression, operator: str) -> Expression:
    """A sum or a difference. An interval of months is no value of its own, because months last
    differently long, so it is joined with what it is added to."""
    if operator == "+" and _is_months(left) and not _is_months(right):
        left, right = right, left
    if not isinstance(right, Call) or not _is_months(right):
        return left._call(operator, right)
    months = MONTHS[dict(right.options)["unit"]]
    return Call(
        "add_months",
        (left, right.arguments[0]),
        (("months", months if operator == "+" else -months),),
    )


def _is_months(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.function == "months"


class Aggregate(Expression):
    """An aggregate of many rows; ``options`` are its constant options."""

    __slots__ = ("expression", "kind", "options")

    def __init__(
        self, kind: str, expression: Expression, options: tuple[tuple[str, Any], ...] = ()
    ) -> None:
        refuse_aggregates(expression, kind)
        self.kind = kind
        self.expression = expression
        self.options = options

    @property
    def distinct(self) -> Expression:
        """The aggregate of different values only; of the built-in ones, only ``count`` has it."""
        if self.kind != "count":
            raise ProgramError(f"{self!r}.distinct is not there; only count has it")
        return Aggregate("count_distinct", self.expression)

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return (self.expression,)

    def __repr__(self) -> str:
        return f"{self.expression!r}.{self.kind}" + (
            f"({', '.join(repr(value) for _, value in self.options)})" if self.options else ""
        )


# -- questions about expressions -------------------------------------------------------------------


def refuse_aggregates(expression: Expression, where: str) -> None:
    """Raises ProgramError if the expression contains an aggregate."""
    if isinstance(expression, Aggregate):
        raise ProgramError(
            f"{where} cannot take the aggregate {expression!r}; aggregates belong into "
            "aggregate(...)"
        )
    for each in expression.inputs:
        refuse_aggregates(each, where)


def columns_of(expression: Expression) -> set[str]:
    """The names of the columns that it is computed from."""
    if isinstance(expression, Column):
        return {expression.column}
    return {name for each in expression.inputs for name in columns_of(each)}
