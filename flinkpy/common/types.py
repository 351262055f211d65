"""Row: a record with a kind and, usually, field names. Functions on a columnar stream get Rows;
Types.ROW and ROW_NAMED declare them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import lru_cache
from itertools import repeat
from typing import Any, ClassVar

from flinkpy.core.errors import ProgramError
from flinkpy.core.mutability import ATOMS


class RowKind(Enum):
    """What a row means for its key in a changing table."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        """Flink's short form.

        >>> str(RowKind.UPDATE_AFTER)
        '+U'
        """
        return _SHORT_KINDS[self.value]


_SHORT_KINDS = ("+I", "-U", "+U", "-D")
_has_kinds = False  # whether a row of this process was ever given a kind


def has_kinds() -> bool:
    """Whether rows need be asked for their kind: False as long as none in this process was given
    one. To ask a row that has none takes longer than to make it."""
    return _has_kinds


class Row:
    """Values by position and, if the row has names, by name.

    >>> row = Row(name="Ada", born=1815)
    >>> row.name, row[1], row["born"], row.as_dict()
    ('Ada', 1815, 1815, {'name': 'Ada', 'born': 1815})

    A row without names has only positions. Called with names, ``Row`` makes a factory:

    >>> Row("Ada", 1815)
    <Row('Ada', 1815)>
    >>> Person = Row("name", "born")
    >>> Person("Ada", 1815)
    Row(name='Ada', born=1815)
    """

    __slots__ = ("_fields", "_row_kind", "_values")
    _values: list[Any]
    _fields: tuple[str, ...] | None
    _row_kind: RowKind  # if not set, INSERT, as for nearly every row
    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *values: Any, **named: Any) -> None:
        if values and named:
            raise ProgramError("a Row takes values by position or by name, not both")
        set_attribute = object.__setattr__
        set_attribute(self, "_values", list(named.values()) if named else list(values))
        set_attribute(self, "_fields", tuple(named) if named else None)

    # -- by name -----------------------------------------------------------------------------------

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """The fields by name; with ``recursive`` also those of rows inside it, in lists and dicts
        too. Raises ProgramError for a row without names."""
        if self._fields is None:
            raise ProgramError("this Row has no field names; set_field_names gives it some")
        values = map(_plain, self._values) if recursive else self._values
        return dict(zip(self._fields, values))

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """The values of these fields, in this order.

        >>> Row(a=1, b=2, c=3).get_fields_by_names(["c", "a"])
        [3, 1]
        """
        return [self._values[self._position(name)] for name in names]

    def set_field_names(self, field_names: Iterable[str]) -> None:
        """Sets the names of the fields. Raises ProgramError unless there are as many as values."""
        fields = tuple(field_names)
        if len(fields) != len(self._values):
            raise ProgramError(f"{len(fields)} names for a Row of {len(self._values)} values")
        object.__setattr__(self, "__class__", Row)  # the class of a columnar row has its own names
        object.__setattr__(self, "_fields", fields)

    def _position(self, name: str) -> int:
        try:
            # a row without names ends in the handler
            return self._fields.index(name)  # type: ignore[union-attr]
        except (ValueError, AttributeError):
            known = listed(self._fields) if self._fields else "it has no field names"
            raise KeyError(f"this Row has no field {name!r} ({known})") from None

    def __getattr__(self, name: str) -> Any:
        if name == "_row_kind":
            return RowKind.INSERT
        if name == "_values":
            return _made_late(self)
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._values[self._position(name)]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __setattr__(self, name: str, value: object) -> None:
        try:
            self._values[self._position(name)] = value
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    # -- by position -------------------------------------------------------------------------------

    def __getitem__(self, item: Any) -> Any:
        return self._values[self._position(item) if isinstance(item, str) else item]

    def __setitem__(self, item: int | str, value: object) -> None:
        self._values[self._position(item) if isinstance(item, str) else item] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, item: object) -> bool:
        return item in self._values

    def __call__(self, *values: Any) -> Row:
        """A row whose field names are the values of this one, as in ``Row("name", "age")("Ann",
        3)``."""
        if len(values) > len(self._values):
            raise ProgramError(f"{len(values)} values for a Row of the fields {self._values}")
        return named_row(tuple(map(str, self._values[: len(values)])), values)

    # -- its kind ----------------------------------------------------------------------------------

    @staticmethod
    def of_kind(row_kind: RowKind, *values: Any, **named: Any) -> Row:
        """A row of another kind than INSERT.

        >>> Row.of_kind(RowKind.DELETE, 7).get_row_kind()
        <RowKind.DELETE: 3>
        """
        row = Row(*values, **named)
        row.set_row_kind(row_kind)
        return row

    def get_row_kind(self) -> RowKind:
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        global _has_kinds
        _has_kinds = True
        object.__setattr__(self, "_row_kind", row_kind)

    # -- as a value --------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Whether kind, names and values are equal."""
        return (
            isinstance(other, Row)
            and self._values == other._values
            and self._fields == other._fields
            and self._row_kind is other._row_kind
        )

    def __hash__(self) -> int:
        return hash(tuple(self._values))

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join([repr(each) for each in self._values])})>"
        fields = zip(self._fields, self._values)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in fields)})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Row:
        row = named_row(
            self._fields,
            [each if type(each) in ATOMS else copy.deepcopy(each, memo) for each in self._values],
        )
        if self._row_kind is not RowKind.INSERT:
            row.set_row_kind(self._row_kind)
        return row

    def __reduce__(self) -> tuple[Any, ...]:
        if self._row_kind is RowKind.INSERT:
            return named_row, (self._fields, self._values)
        return _rebuild, (self._fields, self._values, self._row_kind)


# bypasses __setattr__, which assigns fields
_SET_VALUES: Callable[[Row, Any], None] = vars(Row)["_values"].__set__
_SET_FIELDS: Callable[[Row, Any], None] = vars(Row)["_fields"].__set__


_late_of: Callable[[Row], tuple[LateValues, int]] = vars(Row)["_fields"].__get__


class LateValues:
    """The values of many rows, made when one of the rows is looked at."""

    __slots__ = ("_make", "_values")

    def __init__(self, make: Callable[[], list[list[Any]]]) -> None:
        """``make`` gives a list of values for each row."""
        self._make: Callable[[], list[list[Any]]] | None = make
        self._values: list[list[Any]] = []

    def of(self, number: int) -> list[Any]:
        """Those of one row."""
        if self._make is not None:
            self._values, self._make = self._make(), None
        return self._values[number]


def late_rows(names: tuple[str, ...], length: int, late: LateValues) -> list[Row]:
    """Rows that have no values before somebody looks at one of them. Until then each has, in the
    slot for names, which rows of this class have no need of, where its values come from.

    >>> late_rows(("a", "b"), 2, LateValues(lambda: [[1, 2], [3, 4]]))[1].b
    4
    """
    rows = list(map(Row.__new__, repeat(_row_class(names), length)))
    for row, place in zip(rows, zip(repeat(late), range(length))):
        _SET_FIELDS(row, place)
    return rows


def _made_late(row: Row) -> list[Any]:
    late, number = _late_of(row)
    values = late.of(number)
    _SET_VALUES(row, values)
    _SET_FIELDS(row, None)
    return values


def named_row(names: tuple[str, ...] | None, values: Iterable[Any]) -> Row:
    """A Row with these names, even if they are no identifiers (``class``, ``dep delay``).

    >>> named_row(("class", "n"), (1, 2))["class"]
    1
    """
    row = Row.__new__(Row if names is None else _row_class(names))
    _SET_VALUES(row, list(values))
    if names is None:
        _SET_FIELDS(row, None)
    return row


def _rebuild(names: tuple[str, ...] | None, values: list[Any], kind: RowKind) -> Row:
    row = named_row(names, values)
    row.set_row_kind(kind)
    return row


def _plain(value: object) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True) if value._fields is not None else list(map(_plain, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


@lru_cache(maxsize=256)
def _row_class(names: tuple[str, ...]) -> type[Row]:
    """A subclass of Row that has the names. Making such a row only stores its values, and fields
    are found without a search."""

    def getter(position: int) -> Callable[[Any], Any]:
        return lambda row: row._values[position]

    def setter(position: int) -> Callable[[Any, Any], None]:
        def assign(row: Any, value: Any) -> None:
            row._values[position] = value

        return assign

    fields = {
        name: property(getter(at), setter(at))
        for at, name in enumerate(names)
        if not hasattr(Row, name)
    }
    return type("Row", (Row,), {**fields, "__slots__": (), "_fields": names})


def listed(names: Iterable[str]) -> str:
    """Names for a message; those with blanks at an end are in quotes.

    >>> listed(["a", " b"])
    "a, ' b'"
    """
    return ", ".join(name if name and name == name.strip() else repr(name) for name in names)


def rows_of_columns(
    names: tuple[str, ...], columns: Sequence[Sequence[Any]], length: int
) -> list[Row]:
    """Makes many rows at once, from the Python values of each column.

    >>> rows_of_columns(("a", "b"), [[1, 2], ["x", "y"]], 2)
    [Row(a=1, b='x'), Row(a=2, b='y')]
    """
    kind, new, set_values = _row_class(names), Row.__new__, _SET_VALUES
    rows: list[Row] = []
    append = rows.append
    for values in map(list, zip(*columns)) if columns else ([] for _ in range(length)):
        row = new(kind)
        set_values(row, values)
        append(row)
    return rows
