"""A declaration as a table of the catalog, checked; and what LIKE takes from another table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from flinkpy.common.logical_types.logical_type import RowField
from flinkpy.sql.catalog.catalog_port import CatalogTable
from flinkpy.sql.sql_errors import ValidationError, did_you_mean, proposed
from flinkpy.sql.syntax.statements import (
    AnyColumn,
    ColumnDefinition,
    ComputedColumn,
    CreateTable,
    LikeClause,
    MetadataColumn,
    PrimaryKey,
    WatermarkDefinition,
)

T = TypeVar("T")

INCLUDING, EXCLUDING, OVERWRITING = "INCLUDING", "EXCLUDING", "OVERWRITING"
_FEATURES = (
    "CONSTRAINTS",
    "DISTRIBUTION",
    "GENERATED",
    "METADATA",
    "OPTIONS",
    "PARTITIONS",
    "WATERMARKS",
)
_MAY_OVERWRITE = ("GENERATED", "METADATA", "OPTIONS", "WATERMARKS")


def declared_table(statement: CreateTable, liked: CatalogTable | None = None) -> CatalogTable:
    """What the statement declares, with what its LIKE takes from the table that it names, and
    without the columns of a query. Raises ValidationError for a declaration that contradicts
    itself."""
    definition = statement.definition
    table = CatalogTable(
        definition.columns,
        dict(statement.options),
        definition.watermarks,
        definition.primary_key,
        statement.partitioned_by,
        statement.comment,
    )
    if statement.like is not None and liked is not None:
        table = _merged_like(table, statement.like, liked)
    return checked_table(table)


def checked_table(table: CatalogTable) -> CatalogTable:
    """The table, with NOT NULL for the columns of its primary key. Raises ValidationError for names
    that are there twice or not at all."""
    names = [column.name for column in table.columns]
    for name, count in Counter(names).items():
        if count > 1:
            raise ValidationError(f"the table has {count} columns of the name {name!r}")
    for key in table.partition_keys:
        _require_column(key, names, "PARTITIONED BY")
    if len(table.watermarks) > 1:
        raise ValidationError("a table has one WATERMARK at most")
    for watermark in table.watermarks:
        _require_column(watermark.column.parts[0], names, "WATERMARK")
    return table if table.primary_key is None else _with_key(table, table.primary_key, names)


def table_of_query(statement: CreateTable, fields: Sequence[RowField]) -> CreateTable:
    """CREATE TABLE AS without its query: the columns that the query does not have, and then those
    of the query, with the types that are declared for them. A list of names alone says their
    order."""
    definition, given = statement.definition, {field.name: field.type for field in fields}
    for name in statement.columns_only:
        _require_column(name, given, "the list of columns")
    if statement.columns_only and sorted(statement.columns_only) != sorted(given):
        raise ValidationError(f"the list of columns has each of the query once: {', '.join(given)}")
    own = {each.name: each for each in definition.columns if isinstance(each, ColumnDefinition)}
    columns = [each for each in definition.columns if each.name not in own.keys() & given.keys()]
    taken = [
        own.get(name, ColumnDefinition(name, given[name]))
        for name in statement.columns_only or given
    ]
    return replace(
        statement,
        definition=replace(definition, columns=(*columns, *taken)),
        query=None,
        columns_only=(),
    )


def _with_key(table: CatalogTable, key: PrimaryKey, names: list[str]) -> CatalogTable:
    if key.enforced:
        raise ValidationError(
            "a PRIMARY KEY is NOT ENFORCED, as no connector checks it: write PRIMARY KEY "
            f"({', '.join(key.columns)}) NOT ENFORCED",
            span=key.span,
        )
    for name in key.columns:
        _require_column(name, names, "PRIMARY KEY")
    for column in table.columns:
        if column.name in key.columns and isinstance(column, ComputedColumn):
            raise ValidationError(
                f"the column {column.name!r} of the PRIMARY KEY is computed; a key has columns "
                "that the table stores",
                span=key.span,
            )
    columns = tuple(
        replace(column, type=column.type.not_null())
        if column.name in key.columns and not isinstance(column, ComputedColumn)
        else column
        for column in table.columns
    )
    return replace(table, columns=columns)


def _require_column(name: str, names: Iterable[str], clause: str) -> None:
    known = list(names)
    if name not in known:
        raise ValidationError(
            f"{clause} names {name!r}, which is no column of the table{proposed(name, known)}"
        )


# -- LIKE ------------------------------------------------------------------------------------------


def _merged_like(declared: CatalogTable, like: LikeClause, source: CatalogTable) -> CatalogTable:
    """The declaration, with what LIKE takes from the source table: its columns stand first.

    Without options it is INCLUDING ALL OVERWRITING OPTIONS, as in Flink."""
    strategy = strategies(like)
    columns = _merged_columns(declared, source, strategy)
    key = _one_of(
        "CONSTRAINTS", strategy, source.primary_key, declared.primary_key, "a PRIMARY KEY"
    )
    partitions = _one_of(
        "PARTITIONS", strategy, source.partition_keys, declared.partition_keys, "PARTITIONED BY"
    )
    return CatalogTable(
        columns,
        _merged_options(declared.options, source.options, strategy["OPTIONS"]),
        _merged_watermarks(declared, source, strategy["WATERMARKS"]),
        key,
        partitions or (),
        declared.comment,
    )


def strategies(like: LikeClause) -> dict[str, str]:
    """For each feature: INCLUDING, EXCLUDING or OVERWRITING."""
    given = dict.fromkeys(_FEATURES, INCLUDING)
    given["OPTIONS"] = OVERWRITING
    options = [(how.upper(), what.upper()) for how, what in like.options]
    for how, what in options:
        if what == "ALL":
            given = dict.fromkeys(_FEATURES, how)
    for how, what in options:
        if what == "ALL":
            continue
        if what not in _FEATURES:
            raise ValidationError(
                f"LIKE knows no {what}{did_you_mean(what, [*_FEATURES, 'ALL'])}", span=like.span
            )
        if how == OVERWRITING and what not in _MAY_OVERWRITE:
            raise ValidationError(
                f"OVERWRITING {what} is not possible: write EXCLUDING {what}, and declare them "
                "anew",
                span=like.span,
            )
        given[what] = how
    return given


def _merged_columns(
    declared: CatalogTable, source: CatalogTable, strategy: Mapping[str, str]
) -> tuple[AnyColumn, ...]:
    own = {column.name: column for column in declared.columns}
    taken: list[AnyColumn] = []
    for column in source.columns:
        if _strategy_of(column, strategy) == EXCLUDING:
            continue
        if column.name in own:
            overwrites = _strategy_of(column, strategy) == OVERWRITING
            if isinstance(column, ColumnDefinition) or not overwrites:
                raise ValidationError(
                    f"the table of LIKE has a column {column.name!r} too: leave it out here"
                )
            continue
        taken.append(column)
    return (*taken, *declared.columns)


def _strategy_of(column: AnyColumn, strategy: Mapping[str, str]) -> str:
    if isinstance(column, ComputedColumn):
        return strategy["GENERATED"]
    return strategy["METADATA"] if isinstance(column, MetadataColumn) else INCLUDING


def _merged_options(own: Mapping[str, str], others: Mapping[str, str], how: str) -> dict[str, str]:
    if how == EXCLUDING:
        return dict(own)
    twice = sorted(own.keys() & others.keys())
    if how == INCLUDING and twice:
        raise ValidationError(
            f"the table of LIKE has the option {twice[0]!r} too: write OVERWRITING OPTIONS"
        )
    return {**others, **own}


def _merged_watermarks(
    declared: CatalogTable, source: CatalogTable, how: str
) -> tuple[WatermarkDefinition, ...]:
    if how == EXCLUDING:
        return declared.watermarks
    if how == INCLUDING and declared.watermarks and source.watermarks:
        raise ValidationError("the table of LIKE has a WATERMARK too: write OVERWRITING WATERMARKS")
    return declared.watermarks or source.watermarks


def _one_of(
    feature: str, strategy: Mapping[str, str], other: T | None, own: T | None, name: str
) -> T | None:
    if strategy[feature] == EXCLUDING:
        return own
    if other and own:
        raise ValidationError(
            f"the table of LIKE has {name} too: write EXCLUDING {feature}, or leave it out here"
        )
    return own or other
