"""The fields of records, where all must have the same: in a table, in CSV, Parquet, Avro."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from flinkpy.core.errors import ProgramError
from flinkpy.formats.text_values import fields_of, plain


class RecordFields:
    """Puts the fields of a file's records into the order of its columns: by name those of records
    with names, by position those of other records and of rows whose fields are called f0, f1 and so
    on.

    The columns are ``given``, or those that the first record has. A record with a field that is no
    column is refused. A field that a record does not have is None where the columns were given,
    unless it is among ``required``; otherwise the record is refused. ``file`` is what messages call
    the file, ``advice`` what they say of fields that not all records have.

    >>> RecordFields(["a", "b"], "CSV", "").of({"b": 1})
    [None, 1]
    """

    def __init__(
        self, given: Sequence[str] | None, file: str, advice: str, required: Collection[str] = ()
    ) -> None:
        self._names: list[Any] | None = None if given is None else list(given)
        self._is_given = given is not None
        self._required = frozenset(required)
        self._has_names = True
        self._file = file
        self._advice = advice

    def begin(self, value: object) -> list[Any] | None:
        """The names of the columns: the given ones, or those of the first record. None if it has no
        names."""
        if self._names is None:
            record = plain(value)
            self._has_names = isinstance(record, dict)
            self._names = list(record) if self._has_names else numbered(len(fields_of(record)))
        return self._names if self._has_names else None

    def of(self, value: object) -> Sequence[Any]:
        """The values of the record's fields, one for each column. Raises ProgramError for a record
        that does not fit."""
        record = plain(value)
        names = self._names or []
        if not isinstance(record, dict) or list(record) == names:
            fields = fields_of(record)
            if len(fields) != len(names):
                raise ProgramError(self._other_length(value, len(fields)))
            return fields
        return self._by_name(record, value)

    def of_columns(self, columns: dict[str, Any]) -> Sequence[Any]:
        """The columns of a batch in the order of the file's; None for one that it does not have."""
        if list(columns) == self._names:
            return list(columns.values())
        return self._by_name(columns, f"a batch of columns {', '.join(columns)}")

    def columns_of(self, values: Sequence[Any]) -> list[Sequence[Any]]:
        """The fields of all these records, column by column."""
        names = self._names or []
        if set(map(type, values)) == {dict}:
            try:
                if set(map(len, values)) == {len(names)}:
                    return [[value[name] for value in values] for name in names]
            except KeyError:
                pass  # one by one shows which record it is
        return list(zip(*map(self.of, values)))

    def _by_name(self, record: dict[Any, Any], shown: object) -> Sequence[Any]:
        names = self._names or []
        if list(record) == numbered(len(names)):
            return list(record.values())
        if len(record) == len(names) and record.keys() == set(names):
            return [record[name] for name in names]
        more = [name for name in record if name not in names]
        if more:
            raise ProgramError(self._unknown(more[0], shown))
        for name in names:
            if name not in record and (not self._is_given or name in self._required):
                raise ProgramError(self._missing(name, shown))
        return [record.get(name) for name in names]

    def _unknown(self, name: object, shown: object) -> str:
        if self._is_given:
            return (
                f"a record has a field {name!r} that is not among the file's columns, which are "
                f"{_listed(self._names)}: {_short(shown)}; add it to them, or leave it out of the "
                "records before the sink"
            )
        return (
            f"a record has a field {name!r} that the first record of its {self._file} has "
            f"not: {_short(shown)}; {self._advice}"
        )

    def _missing(self, name: object, shown: object) -> str:
        if self._is_given:
            return (
                f"a record has no field {name!r}, and the schema has nullable=False for it: "
                f"{_short(shown)}"
            )
        return (
            f"a record has no field {name!r}, which the first record of its {self._file} "
            f"has: {_short(shown)}; {self._advice}"
        )

    def _other_length(self, value: object, length: int) -> str:
        names = self._names or []
        return (
            f"{value!r:.100} has {length} fields, and the {self._file} has {len(names)} columns: "
            f"{_listed(names)}"
        )


def numbered(count: int) -> list[str]:
    """The names of so many fields without names.

    >>> numbered(2)
    ['f0', 'f1']
    """
    return [f"f{at}" for at in range(count)]


def _listed(names: Sequence[Any] | None) -> str:
    return f"{', '.join(map(str, names or ())):.100}"


def _short(shown: object) -> str:
    return f"{shown:.100}" if isinstance(shown, str) else f"{shown!r:.100}"
