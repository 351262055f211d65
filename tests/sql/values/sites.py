"""Where each function of the tables may stand: calls over real types, and values of these types as
real data has them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

from hypothesis import strategies as st

from flinkpy.columns.sql.call_site import VARYING, CallSite
from flinkpy.columns.sql.sql_kernels.json_kernels import JSON_KERNELS
from flinkpy.columns.sql.sql_meanings.calendar_part_meanings import UNITS
from flinkpy.columns.sql.sql_meanings.moments.current_meanings import CURRENT_MEANINGS
from flinkpy.columns.sql.sql_meanings.moments.moment_text_meanings import MOMENT_TEXT_MEANINGS
from flinkpy.columns.sql.sql_meanings.moments.moment_unit_meanings import MOMENT_UNIT_MEANINGS
from flinkpy.columns.sql.sql_meanings.number_rules import EXACT, single
from flinkpy.common.logical_types.allowed_casts import explicit_cast_allowed
from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BinaryType,
    BitmapType,
    BooleanType,
    CharType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    MultisetType,
    NullType,
    RowType,
    SizedType,
    TimestampType,
    TimeType,
    TypeFamily,
    YearMonthIntervalType,
)
from flinkpy.core.clock import ManualClock
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.functions.function_port import Argument
from flinkpy.sql.sql_errors import ValidationError

UTC = datetime.timezone.utc
BOOLEAN, STRING = DataTypes.BOOLEAN(), DataTypes.STRING()
INTEGERS: list[LogicalType] = [
    DataTypes.TINYINT(),
    DataTypes.SMALLINT(),
    DataTypes.INT(),
    DataTypes.BIGINT(),
]
INT, BIGINT = INTEGERS[2:]
FLOATS: list[LogicalType] = [DataTypes.FLOAT(), DataTypes.DOUBLE()]
DECIMALS: list[LogicalType] = [
    DataTypes.DECIMAL(3, 1),
    DataTypes.DECIMAL(15, 2),
    DataTypes.DECIMAL(18, 18),
    DataTypes.DECIMAL(19, 0),
    DataTypes.DECIMAL(38, 0),
    DataTypes.DECIMAL(38, 10),
    DataTypes.DECIMAL(38, 38),
]
NUMBERS = [*INTEGERS, *FLOATS, *DECIMALS]
MONTHS, MILLIS = YearMonthIntervalType(), DayTimeIntervalType()
TIMES: list[LogicalType] = [
    DataTypes.DATE(),
    DataTypes.TIME(3),
    DataTypes.TIMESTAMP(0),
    DataTypes.TIMESTAMP(3),
    DataTypes.TIMESTAMP(6),
    DataTypes.TIMESTAMP_LTZ(3),
    DataTypes.TIMESTAMP_LTZ(6),
]
NESTED: list[LogicalType] = [
    DataTypes.ARRAY(INT),
    DataTypes.ARRAY(DataTypes.DOUBLE()),
    DataTypes.MAP(STRING, INT),
    RowType.of(("a", INT), ("b", STRING)).with_nullable(True),
]
BITMAP = DataTypes.BITMAP()
PLAIN: list[LogicalType] = [BOOLEAN, STRING, DataTypes.BYTES(), *NUMBERS, *TIMES, MONTHS, MILLIS]


# -- values ----------------------------------------------------------------------------------------

_TEXTS = st.one_of(
    st.text("aAbé漢😀%_ \n\\", max_size=5),
    st.sampled_from(
        ["1", "-7", " 42 ", "2.9", "+5", "1e3", "NaN", "Infinity", "true", "F", "", "-0.0", "127"]
    ),
    st.sampled_from(["2024-5-3", "2024-02-30", "10:11", "2024-05-31 10:11:12.345", "99999999999"]),
)
_FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 1e20, -1e300, 5e-324, 127.9, -2147483648.5]),
    st.sampled_from([float("nan"), float("inf"), float("-inf")]),
    st.floats(),
    st.integers(-5, 5).map(float),
)
_DAYS = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
_SOME_DAYS = st.dates(datetime.date(1900, 1, 1), datetime.date(2035, 1, 1))


def values_of_type(kind: LogicalType, near: bool = False) -> st.SearchStrategy[Any]:
    """Values of the type, without null. ``near``: times that an interval leaves in the calendar."""
    if isinstance(kind, IntegerType):
        bound = 1 << (kind.bits - 1)
        edges = st.sampled_from([-bound, bound - 1, 0, 1, -1])
        return st.one_of(edges, st.integers(-bound, bound - 1), st.integers(-9, 9))
    if isinstance(kind, FloatType):
        return _FLOATS.map(single)
    if isinstance(kind, DoubleType):
        return _FLOATS
    if isinstance(kind, BitmapType):
        return _bitmaps()
    if isinstance(kind, DecimalType):
        return _decimals(kind)
    if isinstance(kind, SizedType):
        return _sized(kind)
    if isinstance(kind, BooleanType):
        return st.booleans()
    if isinstance(kind, DateType):
        return _SOME_DAYS if near else _DAYS
    if isinstance(kind, TimeType):
        return st.times().map(lambda time: _cut(time, kind.precision))
    if isinstance(kind, (TimestampType, LocalZonedTimestampType)):
        return _moments(kind, near)
    if isinstance(kind, YearMonthIntervalType):
        return st.integers(-600, 600) if near else st.integers(-(2**31), 2**31 - 1)
    if isinstance(kind, DayTimeIntervalType):
        return st.integers(-(10**11), 10**11) if near else st.integers(-(2**40), 2**40)
    if isinstance(kind, NullType):
        return st.none()
    return _nested(kind)


def _decimals(kind: DecimalType) -> st.SearchStrategy[Decimal]:
    most = 10**kind.precision - 1
    digits = st.one_of(
        st.integers(-most, most),
        st.sampled_from([0, 1, -1, 5, -5, most, -most]),
        st.integers(-min(most, 10**9), min(most, 10**9)),
    )
    return digits.map(lambda number: Decimal(number).scaleb(-kind.scale, EXACT))


def _bitmaps() -> st.SearchStrategy[Any]:
    """Sets of single numbers, of long runs and of every second number of many."""
    starts = st.one_of(st.integers(0, 9), st.integers(65530, 65540), st.integers(0, 2**32 - 20000))
    steps = st.sampled_from([(1, 1), (5, 1), (9, 2), (12, 3), (9000, 1), (18000, 2)])
    parts = st.builds(lambda start, step: range(start, start + step[0], step[1]), starts, steps)
    return st.lists(parts, max_size=3).map(
        lambda lists: frozenset(n for each in lists for n in each)
    )


def _sized(kind: SizedType) -> st.SearchStrategy[Any]:
    length = kind.length
    if kind.is_a(TypeFamily.CHARACTER_STRING):
        if isinstance(kind, CharType):
            return _TEXTS.map(lambda text: text[:length].ljust(length))
        return _TEXTS.map(lambda text: text[:length])
    if isinstance(kind, BinaryType):
        return st.binary(min_size=length, max_size=length)
    return st.binary(max_size=min(length, 4))


def _cut(moment: Any, precision: int) -> Any:
    unit = 10 ** max(0, 6 - min(precision, 6))
    return moment.replace(microsecond=moment.microsecond // unit * unit)


def _moments(kind: Any, near: bool) -> st.SearchStrategy[Any]:
    first = datetime.datetime(1900, 1, 1) if near else datetime.datetime(1, 1, 3)
    last = datetime.datetime(2035, 1, 1) if near else datetime.datetime(9999, 12, 29)
    local = st.datetimes(first, last).map(lambda moment: _cut(moment, kind.precision))
    if isinstance(kind, LocalZonedTimestampType):
        return local.map(lambda moment: moment.replace(tzinfo=UTC))
    return local


def _nested(kind: LogicalType) -> st.SearchStrategy[Any]:
    inside = [st.one_of(st.none(), values_of_type(each)) for each in kind.children]
    if isinstance(kind, ArrayType):
        return st.lists(inside[0], max_size=3)
    if isinstance(kind, RowType):
        return st.tuples(*inside)
    keys = values_of_type(kind.children[0])
    values = st.integers(1, 9) if isinstance(kind, MultisetType) else inside[1]
    assert isinstance(kind, (MapType, MultisetType))
    return st.dictionaries(keys, values, max_size=3)


# -- calls -----------------------------------------------------------------------------------------


def site(
    name: str, kinds: Sequence[LogicalType], result: LogicalType | None = None, **options: object
) -> CallSite | None:
    """The call of a function with these types, as the registry binds it; None if it does not take
    them."""
    if result is not None:
        return _called(kinds, result, options)
    function = built_in_functions().find(name)
    assert function is not None, name
    try:
        signature = function.bind([Argument(each) for each in kinds], options)
    except ValidationError:
        return None
    return _called(signature.arguments, signature.result, options)


def _called(
    kinds: Sequence[LogicalType], result: LogicalType, options: dict[str, object]
) -> CallSite:
    clock = ManualClock(1e9 + 0.5)
    return CallSite(tuple(kinds), result, (VARYING,) * len(kinds), options, clock=clock)


@cache
def calls(name: str) -> list[CallSite]:
    """Calls of the function over all types that it takes."""
    return [each for each in _calls(name) if each is not None]


def _pairs(kinds: Sequence[LogicalType]) -> list[list[LogicalType]]:
    return [[one, other] for one in kinds for other in kinds]


_TRUTHS = ("NOT", "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN")
_BINARY = ("+", "-", "*", "/", "%")
_UNARY = ("- (unary)", "+ (unary)", "ABS", "CEIL", "FLOOR", "SIGN", "ROUND", "TRUNCATE")
_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_OF_TWO = ("POWER", "ATAN2", "LOG")


def _calls(name: str) -> Iterator[CallSite | None]:
    same = [[kind, kind] for kind in [*PLAIN, BITMAP, *NESTED]]
    if name in (*_TRUTHS, "IS NOT UNKNOWN"):
        yield site(name, [BOOLEAN])
    elif name in ("AND", "OR"):
        yield site(name, [BOOLEAN] * 2, BOOLEAN)
        yield site(name, [BOOLEAN] * 3, BOOLEAN)
    elif name in ("IS NULL", "IS NOT NULL"):
        yield from (site(name, [kind]) for kind in [*PLAIN, *NESTED])
    elif name in _COMPARED:
        pairs = [*same, *_pairs(DECIMALS[:5])]
        if name in ("<", "<=", ">", ">="):  # sets and nested values have no order
            pairs = [pair for pair in pairs if pair[0] not in (BITMAP, *NESTED)]
        yield from (site(name, kinds, BOOLEAN) for kinds in pairs)
        yield site(name, [INT, DataTypes.DECIMAL(15, 2)], BOOLEAN)
    elif name in ("BETWEEN", "NOT BETWEEN"):
        for kind in PLAIN:
            yield site(name, [kind] * 3, BOOLEAN)
            yield site(name, [kind] * 3, BOOLEAN, symmetric=True)
    elif name in ("IN", "NOT IN"):
        yield from (site(name, [kind] * 3, BOOLEAN) for kind in PLAIN)
    elif name in ("GREATEST", "LEAST"):
        yield from (site(name, [kind] * 3) for kind in PLAIN)
    elif name in ("CASE", "IF"):
        yield from (site(name, [BOOLEAN, kind, kind], kind) for kind in [*PLAIN, *NESTED])
    elif name in ("COALESCE", "IFNULL", "NULLIF"):
        yield from (site(name, kinds, kinds[0]) for kinds in same)
    elif name in ("LIKE", "NOT LIKE", "SIMILAR TO", "NOT SIMILAR TO"):
        yield site(name, [STRING, STRING], BOOLEAN)
    elif name in _BINARY or name == "MOD":
        yield from (site(name, kinds) for kinds in _pairs([*NUMBERS, *TIMES, MONTHS, MILLIS]))
        if name == "-":
            times = DataTypes.TIMESTAMP(3), DataTypes.TIMESTAMP_LTZ(3)
            yield from (site(name, [each, each], MILLIS) for each in times)
    elif name in _UNARY:
        yield from (site(name, [kind]) for kind in [*NUMBERS, MONTHS, MILLIS])
        if name in ("ROUND", "TRUNCATE"):
            yield from (site(name, [kind, INT]) for kind in NUMBERS)
        if name in ("CEIL", "FLOOR"):
            yield from _of_units(name)
    elif name in _OF_TWO:
        yield from (site(name, kinds) for kinds in _pairs([INT, *FLOATS, DECIMALS[1]]))
    elif name in ("CAST", "TRY_CAST"):
        yield from _casts(name)
    elif name == "REINTERPRET":
        yield site(name, [BIGINT], BIGINT)
    elif name == "FIELD":
        yield site(name, [NESTED[-1]], STRING, index=1)
    elif name == "HEX":
        yield from (site(name, [kind]) for kind in [*INTEGERS, STRING])
    elif name == "UNHEX":
        yield site(name, [STRING])
    elif name == "BIN":
        yield from (site(name, [kind]) for kind in INTEGERS)
    elif name == "EXTRACT" or name in UNITS:
        yield from _parts(name)
    elif name in ("||", "SUBSTRING", "SUBSTR", "UPPER", "LOWER", "CHAR_LENGTH"):
        yield from _of_texts(name)
    elif name in ("LPAD", "RPAD"):  # short ones: no number that fills the memory
        yield site(name, [STRING, INTEGERS[0], STRING], STRING)
    elif name == "REPEAT":
        yield site(name, [STRING, INTEGERS[0]], STRING)
    elif name in COLLECTION_CALLS:
        yield from (site(name, kinds) for kinds in COLLECTION_CALLS[name])
    elif name in TEXT_CALLS:
        yield from (site(name, kinds) for kinds in TEXT_CALLS[name])
        if name == "TRIM":
            yield site(name, [STRING], side="LEADING")
            yield site(name, [STRING, STRING], side="TRAILING")
    elif name in ("IS_ALPHA", "IS_DIGIT", "IS_DECIMAL"):
        yield from (site(name, [kind]) for kind in [STRING, *NUMBERS])
    elif name in ("PI", "E", *CURRENT_MEANINGS):
        yield site(name, [])
    elif name in BITMAP_CALLS:
        yield site(name, BITMAP_CALLS[name])
    elif name in JSON_KERNELS:
        yield from _of_json(name)
    elif name in MOMENT_TEXT_MEANINGS:
        yield from _of_moments_and_texts(name)
    elif name in MOMENT_UNIT_MEANINGS:
        yield from _of_units(name)
    elif name not in RANDOM:
        yield from (site(name, [kind]) for kind in NUMBERS)


_BYTES = DataTypes.BYTES()
_ONE: list[LogicalType] = [STRING]
_TWO, _THREE = _ONE * 2, _ONE * 3
_HASHED: list[list[LogicalType]] = [_ONE, [_BYTES]]
TEXT_CALLS: dict[str, list[list[LogicalType]]] = {
    "CONCAT": [_TWO, _THREE, [_BYTES, _BYTES], _ONE],
    "CONCAT_WS": [_TWO, _THREE],
    **{key: [_ONE, _TWO] for key in ("TRIM", "LTRIM", "RTRIM", "BTRIM")},
    **{key: [[STRING, INT], [STRING, BIGINT]] for key in ("LEFT", "RIGHT")},
    **{key: [_ONE] for key in ("REVERSE", "INITCAP", "ASCII", "TO_BASE64", "FROM_BASE64")},
    "OVERLAY": [[STRING, STRING, INT], [STRING, STRING, INT, INT]],
    **{key: [_THREE] for key in ("REPLACE", "TRANSLATE")},
    **{key: [_TWO, [STRING, STRING, INT]] for key in ("POSITION", "LOCATE")},
    "INSTR": [_TWO, [STRING, STRING, INT], [STRING, STRING, INT, INT]],
    **{key: [_TWO, [_BYTES, _BYTES]] for key in ("STARTSWITH", "ENDSWITH")},
    "SPLIT": [_TWO],
    **{key: [_TWO] for key in ("REGEXP", "REGEXP_COUNT", "REGEXP_INSTR", "REGEXP_SUBSTR")},
    "REGEXP_REPLACE": [_THREE],
    "PRINTF": [_TWO, [STRING, INT, BOOLEAN]],
    "REGEXP_EXTRACT": [_TWO, [STRING, STRING, INT]],
    "REGEXP_EXTRACT_ALL": [_TWO, [STRING, STRING, BIGINT]],
    "STR_TO_MAP": [_ONE, _THREE],
    "SPLIT_INDEX": [[STRING, STRING, INT], [STRING, INT, INT]],
    "ELT": [[INT, STRING, STRING], [INT, _BYTES, _BYTES]],
    **{key: [[BIGINT]] for key in ("CHR", "INET_NTOA")},
    "ENCODE": [_TWO],
    "DECODE": [[_BYTES, STRING]],
    **{key: [_ONE] for key in ("URL_ENCODE", "URL_DECODE", "INET_ATON")},
    "PARSE_URL": [_TWO, _THREE],
    **dict.fromkeys(("MD5", "SHA1", "SHA224", "SHA256", "SHA384", "SHA512"), _HASHED),
    "SHA2": [[STRING, INT], [_BYTES, INT]],
}
_ARRAY, _REALS, _MAP, _ROW = NESTED
_WORDS = DataTypes.ARRAY(STRING)
_ARRAYS: list[LogicalType] = [_ARRAY, _REALS, _WORDS, DataTypes.ARRAY(_ROW)]
_ONE_ARRAY = [[each] for each in _ARRAYS]
_TWO_ARRAYS = [[each, each] for each in _ARRAYS]
_AND_ONE = [[each, each.children[0]] for each in _ARRAYS]
_ADDED = ("ARRAY_APPEND", "ARRAY_PREPEND", "ARRAY_CONTAINS", "ARRAY_REMOVE", "ARRAY_POSITION")
COLLECTION_CALLS: dict[str, list[list[LogicalType]]] = {
    "ROW": [[INT, STRING, _ARRAY], [_ROW, _MAP]],
    "ARRAY": [[INT, INT, INT], [STRING], [_ARRAY, _ARRAY], [_ROW, _ROW], [INT, BIGINT]],
    "MAP": [[STRING, INT, STRING, INT], [INT, _ARRAY]],
    "CARDINALITY": [*_ONE_ARRAY, [_MAP]],
    "ITEM": [*([each, INT] for each in _ARRAYS), [_MAP, STRING]],
    **dict.fromkeys(("ELEMENT", "ARRAY_DISTINCT", "ARRAY_REVERSE"), _ONE_ARRAY),
    **dict.fromkeys(("ARRAY_MAX", "ARRAY_MIN"), _ONE_ARRAY[:3]),
    **dict.fromkeys(_ADDED, _AND_ONE),
    **dict.fromkeys(("ARRAY_UNION", "ARRAY_EXCEPT", "ARRAY_INTERSECT"), _TWO_ARRAYS),
    "ARRAY_CONCAT": [*_TWO_ARRAYS, [_WORDS] * 3],
    "ARRAY_SLICE": [[_ARRAY, INT], [_WORDS, INT, INT]],
    "ARRAY_SORT": [*_ONE_ARRAY[:3], [_ARRAY, BOOLEAN], [_REALS, BOOLEAN, BOOLEAN]],
    "ARRAY_JOIN": [[_WORDS, STRING], [_WORDS, STRING, STRING]],
    **{key: [[_MAP]] for key in ("MAP_KEYS", "MAP_VALUES", "MAP_ENTRIES")},
    "MAP_UNION": [[_MAP], [_MAP, _MAP]],
    "MAP_FROM_ARRAYS": [[_ARRAY, _WORDS], [_WORDS, _REALS]],
}
BITMAP_CALLS: dict[str, list[LogicalType]] = {
    "BITMAP_BUILD": [DataTypes.ARRAY(INT)],
    "BITMAP_FROM_BYTES": [_BYTES],
    **{f"BITMAP_{key}": [BITMAP] for key in ("TO_BYTES", "TO_ARRAY", "TO_STRING", "CARDINALITY")},
    **{f"BITMAP_{key}": [BITMAP, BITMAP] for key in ("AND", "OR", "XOR", "ANDNOT")},
}
RANDOM = frozenset({"RAND", "RAND_INTEGER", "UUID"})


def _is_absent(source: LogicalType, target: LogicalType) -> bool:
    """Casts that Flink allows and then does not have, as far as we know: to an interval, from what
    is neither an integer nor an interval."""
    has_it = isinstance(source, (IntegerType, type(target)))
    return target.is_a(TypeFamily.INTERVAL) and not has_it


def _parts(name: str) -> Iterator[CallSite | None]:
    if name != "EXTRACT":
        yield from (site(name, [kind]) for kind in TIMES if not isinstance(kind, TimeType))
        return
    for unit in ("YEAR", "WEEK", "ISOYEAR", "DOW", "ISODOW", "DOY", "CENTURY", "EPOCH", "SECOND"):
        for kind in TIMES:
            if not isinstance(kind, TimeType):
                yield site(name, [kind], unit=unit)
    yield site(name, [DataTypes.TIME(3)], unit="MINUTE")
    yield site(name, [MONTHS], unit="MONTH")
    yield site(name, [MILLIS], unit="HOUR")


_DAYS_AND_MOMENTS = [kind for kind in TIMES if not isinstance(kind, TimeType)]


def _of_units(name: str) -> Iterator[CallSite | None]:
    day, moment = DataTypes.DATE(), DataTypes.TIMESTAMP(3)
    for unit in ("CENTURY", "YEAR", "QUARTER", "WEEK", "DAY", "HOUR", "SECOND"):
        for kind in _DAYS_AND_MOMENTS:
            if name in ("CEIL", "FLOOR"):
                yield site(name, [kind], kind, unit=unit)
            elif name == "TIMESTAMPADD":
                yield site(name, [INT, kind], unit=unit)
            elif name == "TIMESTAMPDIFF":
                yield site(name, [kind, kind], unit=unit)
                yield site(name, [day, kind], unit=unit)
    if name == "OVERLAPS":
        yield site(name, [moment, moment, moment, MILLIS])
        yield site(name, [day, MONTHS, day, MILLIS])


def _of_json(name: str) -> Iterator[CallSite | None]:
    if name in ("JSON_VALUE", "JSON_QUERY", "JSON_EXISTS"):
        yield site(name, [STRING, STRING], STRING if name != "JSON_EXISTS" else BOOLEAN)
        if name == "JSON_VALUE":
            yield site(name, [STRING, STRING], INT, on_empty=("DEFAULT", 7), on_error="ERROR")
    elif name in ("JSON_STRING", "JSON_ARRAY", "TYPEOF"):
        for kind in [*PLAIN[:-2], *NESTED]:
            yield site(name, [kind])
    elif name == "JSON_OBJECT":
        yield site(name, [STRING, INT, STRING, NESTED[-1]], STRING.not_null(), on_null="ABSENT")
    else:
        yield site(name, [STRING])


def _of_moments_and_texts(name: str) -> Iterator[CallSite | None]:
    if name == "DATE_FORMAT":
        yield from (site(name, [kind, STRING]) for kind in TIMES[2:])
    if name in ("FROM_UNIXTIME", "TO_TIMESTAMP_LTZ"):
        yield from (site(name, [kind]) for kind in [BIGINT, DataTypes.DOUBLE(), DECIMALS[1]])
    if name == "TO_TIMESTAMP_LTZ":
        yield site(name, [BIGINT, INT])
    for count in (0, 1, 2, 3):
        yield site(name, [STRING] * count)


def _of_texts(name: str) -> Iterator[CallSite | None]:
    if name == "||":
        yield site(name, [STRING, STRING])
        yield site(name, [DataTypes.BYTES(), DataTypes.BYTES()])
    elif name in ("SUBSTRING", "SUBSTR"):
        yield site(name, [STRING, INT])
        yield site(name, [STRING, INT, INT])
    else:
        yield site(name, [STRING])


def _casts(name: str) -> Iterator[CallSite | None]:
    sized = [DataTypes.CHAR(3), DataTypes.VARCHAR(3), DataTypes.BINARY(2), DataTypes.VARBINARY(2)]
    kinds = [*PLAIN, *sized]
    function = built_in_functions().find(name)
    assert function is not None
    for source in kinds:
        for target in kinds:
            if explicit_cast_allowed(source, target) and not _is_absent(source, target):
                yield site(name, [source], target)
    for source in [*NESTED, BITMAP]:
        yield site(name, [source], STRING)
        yield site(name, [source], source)
    yield site(name, [DataTypes.ARRAY(INT)], DataTypes.ARRAY(STRING))
    yield site(name, [DataTypes.MULTISET(STRING)], STRING)
    yield site(name, [NESTED[-1]], RowType.of(("x", BIGINT), ("y", DataTypes.CHAR(2))))
