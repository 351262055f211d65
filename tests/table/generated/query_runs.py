"""Runs a drawn query in every way that must give the same rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa

from flinkpy.common.types import Row, RowKind
from flinkpy.core.errors import FlinkpyError
from flinkpy.sql.logical.logical_nodes import LogicalNode
from flinkpy.sql.physical import physical_planner
from flinkpy.sql.plans import planner
from flinkpy.sql.rules.optimizer import EXPAND
from flinkpy.sql.rules.rule_phases import RuleContext
from flinkpy.sql.sql_errors import SqlError
from flinkpy.table import EnvironmentSettings, TableEnvironment
from flinkpy.testing.tables import clear_results, register_rows
from tests.table.generated.drawn_queries import EXTREME, TABLES, Case

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Way:
    """How a query is run. ``all_rules``: else only what makes a plan of it."""

    name: str
    is_batch: bool = True
    parallelism: int = 1
    rows_per_batch: int = 8192
    two_phases: bool = True
    all_rules: bool = True
    changes: bool = False  # rows come, change and go before the tables have those of the case
    mapped: bool = False  # the rows that operators keep lie in files


PLAIN = Way("BATCH")
WAYS = (
    Way("BATCH of 3 subtasks, row by row, in one phase", True, 3, 1, two_phases=False),
    Way("BATCH of 3 subtasks without rules", True, 3, 3, all_rules=False),
    Way("STREAMING", False),
    Way("STREAMING of 3 subtasks, row by row, in one phase", False, 3, 1, two_phases=False),
)
CHANGING_WAYS = tuple(
    Way(
        f"STREAMING of tables that change, {parallelism} subtasks, batches of {rows}, {memory}",
        False,
        parallelism,
        rows,
        changes=True,
        mapped=memory == "mapped",
    )
    for parallelism in (1, 3)
    for rows in (1, 7, 8192)
    for memory in ("in memory", "mapped")
)


def ways_of(case: Case) -> tuple[Way, ...]:
    """All ways, with two of the many in which tables change, of both parallelisms."""
    random = Random(case.text)
    half = len(CHANGING_WAYS) // 2
    return (*WAYS, random.choice(CHANGING_WAYS[:half]), random.choice(CHANGING_WAYS[half:]))


@cache
def environment_of(way: Way) -> TableEnvironment:
    settings = EnvironmentSettings
    made = settings.in_batch_mode() if way.is_batch else settings.in_streaming_mode()
    environment = TableEnvironment.create(made)
    config = environment.get_config()
    config.set("parallelism.default", str(way.parallelism))
    config.set("client.progress", "false")
    if way.mapped:
        config.set("state.backend.columns.memory", "0")
    if not way.two_phases:
        config.set("table.optimizer.agg-phase-strategy", "ONE_PHASE")
    return environment


def expanded_only(plan: LogicalNode, context: RuleContext) -> LogicalNode:
    """The plan as it was written, but for subqueries and set operations."""
    return EXPAND.applied(plan, context)


@contextmanager
def _switched(way: Way) -> Iterator[None]:
    with ExitStack() as stack:
        if not way.two_phases:
            stack.enter_context(mock.patch.object(physical_planner, "GROUPS_IN_PARTS", -1))
        if not way.all_rules:
            stack.enter_context(mock.patch.object(planner, "optimized", expanded_only))
        yield


def run(case: Case, way: Way) -> Rows | None:
    """The rows of the result; None if STREAMING cannot carry the query yet."""
    environment = environment_of(way)
    try:
        declare_tables(environment, case, way)
        with _switched(way):
            try:
                result = environment.execute_sql(case.flink)
            except FlinkpyError as error:
                if way.is_batch or not is_refusal(error):
                    raise
                return None
            with result.collect() as rows:
                return last_state(rows)
    finally:
        clear_results()


def last_state(changes: Iterable[Row]) -> Rows:
    """The rows that stand when each change has been carried out, the oldest first."""
    standing: dict[Any, Rows] = {}
    for change in changes:
        row = tuple(change)
        equal = standing.setdefault(_shown(row), [])
        if change.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            equal.append(row)
        else:
            assert equal, f"{change} goes and was not there"
            equal.pop()
    return [row for equal in standing.values() for row in equal]


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def with_changes(rows: Sequence[tuple[Any, ...]], random: Random) -> list[Row]:
    """Changes after which these rows stand: each comes at once, or for another one that came
    before, or comes, goes and comes again. Rows that are not finite do not go: SUM subtracts them,
    which leaves NaN, in Flink too."""
    changes: list[Row] = []
    waiting: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
    finite = [row for row in rows if all(map(_is_finite, row))]
    for row in rows:
        how = random.randrange(4)
        if how == 0 and row in finite:
            changes += _of_kind(row, RowKind.INSERT, RowKind.DELETE, RowKind.INSERT)
        elif how == 1 and finite:
            other = random.choice(finite)
            changes += _of_kind(other, RowKind.INSERT)
            waiting.append((other, row))
        else:
            changes += _of_kind(row, RowKind.INSERT)
        if waiting and random.random() < 0.3:
            changes += _updated(*waiting.pop(random.randrange(len(waiting))))
    for before, after in waiting:
        changes += _updated(before, after)
    return changes


def _updated(before: tuple[Any, ...], after: tuple[Any, ...]) -> list[Row]:
    return [*_of_kind(before, RowKind.UPDATE_BEFORE), *_of_kind(after, RowKind.UPDATE_AFTER)]


def _of_kind(values: tuple[Any, ...], *kinds: RowKind) -> list[Row]:
    made = []
    for kind in kinds:
        row = Row(*values)
        row.set_row_kind(kind)
        made.append(row)
    return made


def is_refusal(error: FlinkpyError) -> bool:
    """Whether this is what STREAMING says of a query that it cannot carry."""
    return isinstance(error, SqlError) or "STREAMING yet" in str(error)


def declare_tables(environment: TableEnvironment, case: Case, way: Way) -> None:
    """The tables of the case, with its rows."""
    for name, columns in TABLES.items():
        _declare(environment, name, columns, case.rows[name], way)


def _declare(
    environment: TableEnvironment, name: str, columns: dict[str, str], rows: Sequence[Any], way: Way
) -> None:
    declared = ", ".join(f"{each} {_type(type)}" for each, type in columns.items())
    if name == "e":
        # equal times are not late; a row that changes may come when time has gone on
        delay = "'1' HOUR" if way.changes else "'0.001' SECOND"
        declared += f", WATERMARK FOR ts AS ts - INTERVAL {delay}"
    mode = ""
    if way.changes:
        rows = with_changes(rows, Random(len(rows)))
        mode = ", 'changelog-mode' = 'I,UB,UA,D'"
    environment.execute_sql(f"DROP TEMPORARY TABLE IF EXISTS {name}")
    environment.execute_sql(
        f"CREATE TEMPORARY TABLE {name} ({declared}) WITH ('connector' = 'values', "
        f"'bounded' = 'true', 'data-id' = '{register_rows(rows)}', "
        f"'rows-per-batch' = '{way.rows_per_batch}'{mode})"
    )


def _type(type: str) -> str:
    return "DOUBLE" if type == EXTREME else type


# -- the judge -------------------------------------------------------------------------------------

_ARROW = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "EXTREME": pa.float64(),
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DECIMAL(20, 4)": pa.decimal128(20, 4),
    "DECIMAL(38, 10)": pa.decimal128(38, 10),
    "DATE": pa.date32(),
    "TIMESTAMP(3)": pa.timestamp("us"),
    "ARRAY<INT>": pa.list_(pa.int32()),
}


def judged(case: Case) -> Rows | None:
    """DuckDB's rows; None where it stops at a number that is too large, as Flink does not."""
    connection = _judge().cursor()
    for name, columns in TABLES.items():
        fields = [(each, _ARROW[type]) for each, type in columns.items()]
        lists = zip(*case.rows[name]) if case.rows[name] else [[] for _ in fields]
        arrays = [pa.array(list(column), type) for column, (_, type) in zip(lists, fields)]
        connection.register(name, pa.table(arrays, schema=pa.schema(fields)))
    try:
        return connection.execute(case.duckdb).fetchall()
    except (duckdb.OutOfRangeException, duckdb.ConversionException):
        return None
    finally:
        connection.close()


@cache
def _judge() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


# -- what is equal ---------------------------------------------------------------------------------


def comparable(rows: Rows, ordered: bool) -> Any:
    """Equal results are equal as this."""
    shown = [tuple(map(_shown, row)) for row in rows]
    return shown if ordered else Counter(shown)


def _shown(value: Any) -> Any:
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return float(f"{value:.9g}") + 0.0  # -0.0 becomes 0.0
    if isinstance(value, Decimal):
        return format(value.normalize(), "f") if value else "0"
    if isinstance(value, (list, tuple)):
        return tuple(map(_shown, value))
    return value
