"""Functions of SQL for expressions of tables, with PyFlink's names; published by
``flinkpy.table.expressions``."""

from __future__ import annotations

from flinkpy.columns.expression import Column, Expression, SqlCall, as_expression, sql_call
from flinkpy.core.program.program_line import refuse
from flinkpy.table.expression_trees.sql_of_expressions import Tree
from flinkpy.table.expression_trees.user_calls import UserCall
from flinkpy.table.udf import UserDefinedFunctionWrapper


def current_database() -> Expression:
    """``CURRENT_DATABASE`` of SQL.

    >>> current_database()
    CURRENT_DATABASE()
    """
    return sql_call("CURRENT_DATABASE")


def current_date() -> Expression:
    """``CURRENT_DATE`` of SQL.

    >>> current_date()
    CURRENT_DATE()
    """
    return sql_call("CURRENT_DATE")


def current_time() -> Expression:
    """``CURRENT_TIME`` of SQL.

    >>> current_time()
    CURRENT_TIME()
    """
    return sql_call("CURRENT_TIME")


def current_timestamp() -> Expression:
    """``CURRENT_TIMESTAMP`` of SQL.

    >>> current_timestamp()
    CURRENT_TIMESTAMP()
    """
    return sql_call("CURRENT_TIMESTAMP")


def local_time() -> Expression:
    """``LOCALTIME`` of SQL.

    >>> local_time()
    LOCALTIME()
    """
    return sql_call("LOCALTIME")


def local_timestamp() -> Expression:
    """``LOCALTIMESTAMP`` of SQL.

    >>> local_timestamp()
    LOCALTIMESTAMP()
    """
    return sql_call("LOCALTIMESTAMP")


def e() -> Expression:
    """``E()`` of SQL.

    >>> e()
    E()
    """
    return sql_call("E")


def pi() -> Expression:
    """``PI()`` of SQL.

    >>> pi()
    PI()
    """
    return sql_call("PI")


def uuid() -> Expression:
    """``UUID()`` of SQL.

    >>> uuid()
    UUID()
    """
    return sql_call("UUID")


def atan2(y: object, x: object) -> Expression:
    """``ATAN2(y, x)`` of SQL.

    >>> atan2(1, 2)
    ATAN2(1, 2)
    """
    return sql_call("ATAN2", y, x)


def convert_tz(date_str: object, tz_from: object, tz_to: object) -> Expression:
    """``CONVERT_TZ(date_str, tz_from, tz_to)`` of SQL.

    >>> convert_tz(1, 2, 3)
    CONVERT_TZ(1, 2, 3)
    """
    return sql_call("CONVERT_TZ", date_str, tz_from, tz_to)


def current_watermark(rowtime_attribute: object) -> Expression:
    """``CURRENT_WATERMARK(rowtime_attribute)`` of SQL.

    >>> current_watermark(1)
    CURRENT_WATERMARK(1)
    """
    return sql_call("CURRENT_WATERMARK", rowtime_attribute)


def from_unixtime(unixtime: object, format: object = None) -> Expression:
    """``FROM_UNIXTIME(unixtime, format)`` of SQL.

    >>> from_unixtime(1)
    FROM_UNIXTIME(1)
    """
    return sql_call("FROM_UNIXTIME", unixtime, format)


def json(value: object) -> Expression:
    """``JSON(value)`` of SQL.

    >>> json(1)
    JSON(1)
    """
    return sql_call("JSON", value)


def json_string(value: object) -> Expression:
    """``JSON_STRING(value)`` of SQL.

    >>> json_string(1)
    JSON_STRING(1)
    """
    return sql_call("JSON_STRING", value)


def map_from_arrays(key: object, value: object) -> Expression:
    """``MAP_FROM_ARRAYS(key, value)`` of SQL.

    >>> map_from_arrays(1, 2)
    MAP_FROM_ARRAYS(1, 2)
    """
    return sql_call("MAP_FROM_ARRAYS", key, value)


def rand(seed: object = None) -> Expression:
    """``RAND(seed)`` of SQL.

    >>> rand()
    RAND()
    """
    return sql_call("RAND", seed)


def temporal_overlaps(
    left_time_point: object, left_temporal: object, right_time_point: object, right_temporal: object
) -> Expression:
    """``OVERLAPS(left_time_point, left_temporal, right_time_point, right_temporal)`` of SQL.

    >>> temporal_overlaps(1, 2, 3, 4)
    OVERLAPS(1, 2, 3, 4)
    """
    return sql_call("OVERLAPS", left_time_point, left_temporal, right_time_point, right_temporal)


def unix_timestamp(date_str: object = None, format: object = None) -> Expression:
    """``UNIX_TIMESTAMP(date_str, format)`` of SQL.

    >>> unix_timestamp()
    UNIX_TIMESTAMP()
    """
    return sql_call("UNIX_TIMESTAMP", date_str, format)


def log(v: object, base: object = None) -> Expression:
    """The natural logarithm, or that to a base.

    >>> log(8, 2)
    LOG(2, 8)
    """
    return sql_call("LOG", v) if base is None else sql_call("LOG", base, v)


def rand_integer(bound: object, seed: object = None) -> Expression:
    """A whole number from 0 up to the bound.

    >>> rand_integer(6)
    RAND_INTEGER(6)
    """
    return (
        sql_call("RAND_INTEGER", bound) if seed is None else sql_call("RAND_INTEGER", seed, bound)
    )


def negative(v: object) -> Expression:
    """The number with the other sign.

    >>> negative(3)
    -3
    """
    return -as_expression(v)


def array(head: object, *tail: object) -> Expression:
    """An ARRAY of these elements.

    >>> from flinkpy.table.expressions import col
    >>> array(1, col("n"))
    ARRAY(1, col('n'))
    """
    return SqlCall("ARRAY", tuple(map(as_expression, (head, *tail))))


def map_(key: object, value: object, *tail: object) -> Expression:
    """A MAP: key, value, key, value, ...

    >>> map_("a", 1)
    MAP('a', 1)
    """
    if len(tail) % 2:
        raise refuse("map_() takes a value behind each key")
    return SqlCall("MAP", tuple(map(as_expression, (key, value, *tail))))


def row(head: object, *tail: object) -> Expression:
    """A ROW of these values.

    >>> row(1, "a")
    ROW(1, 'a')
    """
    return SqlCall("ROW", tuple(map(as_expression, (head, *tail))))


def lag(expr: object, offset: int = 1, default: object = None) -> Expression:
    """The value so many rows before, with ``over``.

    >>> lag(1)
    LAG(1, 1)
    """
    return sql_call("LAG", expr, offset, default, is_aggregate=True)


def lead(expr: object, offset: int = 1, default: object = None) -> Expression:
    """The value so many rows behind, with ``over``.

    >>> lead(1)
    LEAD(1, 1)
    """
    return sql_call("LEAD", expr, offset, default, is_aggregate=True)


def call(f: str | UserDefinedFunctionWrapper, *args: object) -> Expression:
    """A function by its name in SQL, or one of ``udf``.

    >>> from flinkpy.table.expressions import col
    >>> call("shorten", col("text"), 3)
    shorten(col('text'), 3)
    """
    if isinstance(f, UserDefinedFunctionWrapper):
        made: UserCall = f(*args)
        return made
    if not isinstance(f, str):
        raise refuse(f"call() takes a name or a function of udf, this is {f!r:.80}")
    return SqlCall(f, tuple(map(as_expression, args)))


def call_sql(sql_expression: str) -> Expression:
    """An expression as SQL writes it.

    >>> call_sql("CASE WHEN n > 1 THEN 'many' END")
    CASE WHEN n > 1 THEN 'many' END
    """
    from flinkpy.sql.parsing.parse import parse_expression

    return Tree(parse_expression(sql_expression), sql_expression)


def source_watermark() -> Expression:
    """In a Schema: the watermarks of the source.

    >>> source_watermark()
    SOURCE_WATERMARK()
    """
    return sql_call("SOURCE_WATERMARK")


def row_interval(rows: int) -> Expression:
    """So many rows, for ``preceding`` and ``following`` of Over.

    >>> row_interval(3)
    ROWS(3)
    """
    return SqlCall("$ROWS", (as_expression(rows),))


def range_(start: str | int, end: str | int) -> Expression:
    """The columns from one to another, by name or by number from 1, for ``with_columns``.

    >>> range_("a", "c")
    RANGE()
    """
    return SqlCall("$RANGE", (), (("ends", (start, end)),))


def with_columns(head: object, *tails: object) -> Expression:
    """These columns, in ``select``.

    >>> with_columns("a", range_("c", "e"))
    WITH_COLUMNS(col('a'), RANGE())
    """
    return SqlCall("$WITH_COLUMNS", tuple(map(_columns, (head, *tails))))


def without_columns(head: object, *tails: object) -> Expression:
    """All columns but these, in ``select``.

    >>> without_columns("a")
    WITHOUT_COLUMNS(col('a'))
    """
    return SqlCall("$WITHOUT_COLUMNS", tuple(map(_columns, (head, *tails))))


def with_all_columns() -> Expression:
    """All columns, in ``select``.

    >>> with_all_columns()
    WITH_ALL_COLUMNS()
    """
    return SqlCall("$WITH_ALL_COLUMNS", ())


def _columns(value: object) -> Expression:
    return Column(value) if isinstance(value, str) else as_expression(value)
