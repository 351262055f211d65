"""``datagen``: rows of random values or of sequences."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BigIntType,
    BooleanType,
    CharType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    RowType,
    TimestampType,
    TimeType,
    VarCharType,
)
from flinkpy.core.clock import SystemClock
from flinkpy.sql.catalog.catalog_port import CatalogTable, SourceAbilities
from flinkpy.sql.sql_errors import ValidationError, proposed
from flinkpy.table.factories.connector_factory import ConnectorFactory, stored_columns
from flinkpy.table.factories.table_options import (
    DURATION,
    INT,
    LONG,
    STRING,
    OptionTable,
    TableOption,
    TableValues,
    one_of,
)

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.sql.physical.physical_nodes import TableScan

_FIELD = (
    TableOption("kind", one_of("random", "sequence"), "random", "How its values are made."),
    TableOption("min", STRING, None, "The least random number."),
    TableOption("max", STRING, None, "The greatest random number."),
    TableOption("max-past", DURATION, None, "How old a random time may be."),
    TableOption("length", INT, None, "Of a random text (100), an array or a map (3)."),
    TableOption("start", LONG, None, "Where the sequence begins."),
    TableOption("end", LONG, None, "Where the sequence ends; the table ends there too."),
    TableOption("null-rate", STRING, "0", "Which share of the values is null."),
)
_LETTERS = "0123456789abcdef"


@dataclass(frozen=True)
class _Field:
    """What one column is made of."""

    name: str
    type: LogicalType
    kind: str
    low: Decimal | None
    high: Decimal | None
    length: int
    start: int
    end: int | None
    null_rate: float
    seed: int
    parts: tuple[_Field, ...] = ()  # of a nested type


class DatagenFactory(ConnectorFactory):
    """Generates rows. Each value is a function of the row's number, so a job that restarts goes on
    where it was."""

    identifier = "datagen"
    writes = False
    options = (
        TableOption("rows-per-second", LONG, 10_000, "How many rows come in a second."),
        TableOption("number-of-rows", LONG, None, "How many rows there are; without it no end."),
        TableOption("fields.*", STRING, None, "Of a column: fields.NAME.kind, .min, .max ..."),
    )

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        count = _count(_fields(table, values), values)
        return SourceAbilities(is_bounded=count is not None, takes_projection=True, rows=count)

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of

        values = self.values(node.table)
        fields = _fields(node.table, values)
        count = _count(fields, values)
        wanted = {field.name: field for field in fields}
        generate = _Generator(
            [wanted[name] for name in node.schema.names], arrow_schema_of(node.schema)
        )
        # a table with an end is generated as fast as it is read, unless a rate is asked for
        is_paced = count is None or "rows-per-second" in values.given
        rate = values["rows-per-second"] if is_paced else None
        return env.generate(generate, count, rate, columns=True).name(f"Source: {node.path.name}")


def _fields(table: CatalogTable, values: TableValues) -> list[_Field]:
    said: dict[str, dict[str, str]] = {}
    names = [column.name for column in stored_columns(table)]
    for key, text in values.with_prefix("fields.").items():
        name, _, word = key.rpartition(".")
        if name not in names and name.partition(".")[0] not in names:
            raise ValidationError(
                f"the option 'fields.{key}' names {name!r}, which is no column of the table"
                f"{proposed(name, names)}"
            )
        said.setdefault(name, {})[word] = text
    fields = [
        _field(column.name, column.type, said, seed)
        for seed, column in enumerate(stored_columns(table))
    ]
    for name in said:
        raise ValidationError(f"the options 'fields.{name}.*' name no part of a column")
    return fields


def _parts(kind: LogicalType) -> list[tuple[str, LogicalType]]:
    """What the options of a nested type's parts are called."""
    if isinstance(kind, ArrayType):
        return [("element", kind.element)]
    if isinstance(kind, MapType):
        return [("key", kind.key.not_null()), ("value", kind.value)]
    return [(field.name, field.type) for field in kind] if isinstance(kind, RowType) else []


def _field(name: str, kind: LogicalType, said: dict[str, dict[str, str]], seed: int) -> _Field:
    """``said`` are the options by the name of a column or part; those that are read go away."""
    own = said.pop(name, {})
    values = OptionTable(_FIELD).read(own, f"the column {name!r} of a table of 'datagen'")
    parts = _parts(kind)
    if not parts and type(kind) not in _MAKERS and not isinstance(kind, IntegerType):
        raise ValidationError(f"'datagen' cannot make values of the type {kind} ({name!r})")
    is_sequence = values["kind"] == "sequence"
    if is_sequence and (values["start"] is None or values["end"] is None):
        raise ValidationError(f"a sequence needs 'fields.{name}.start' and 'fields.{name}.end'")
    past, low, high = values["max-past"], values["min"], values["max"]
    if past is not None:
        high = int(past.total_seconds() * 1000)
    return _Field(
        name,
        kind,
        values["kind"],
        None if low is None else Decimal(low),
        Decimal(int(past.total_seconds() * 1000))
        if past
        else None
        if high is None
        else Decimal(high),
        _length(kind, values),
        values["start"] or 0,
        values["end"],
        float(values["null-rate"]),
        seed,
        tuple(
            _field(f"{name}.{part}", type, said, 31 * (seed + 1) + at)
            for at, (part, type) in enumerate(parts)
        ),
    )


def _length(kind: LogicalType, values: TableValues) -> int:
    if isinstance(kind, CharType):
        return kind.length
    default = 3 if isinstance(kind, (ArrayType, MapType)) else 100
    return default if values["length"] is None else int(values["length"])


def _count(fields: list[_Field], values: TableValues) -> int | None:
    ends = [each.end - each.start + 1 for each in fields if each.end is not None]
    if values["number-of-rows"] is not None:
        ends.append(values["number-of-rows"])
    return min(ends) if ends else None


class _Generator:
    """Makes the columns of the rows of these numbers."""

    def __init__(self, fields: list[_Field], schema: pa.Schema) -> None:
        self._fields, self._schema = fields, schema

    def __call__(self, indices: npt.NDArray[Any]) -> Any:
        import pyarrow as pa

        arrays = [
            _made(field, indices, kind) for field, kind in zip(self._fields, self._schema.types)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _made(field: _Field, indices: npt.NDArray[Any], kind: pa.DataType) -> Any:
    import numpy as np
    import pyarrow as pa

    if field.kind == "sequence":
        made = pa.array(indices + field.start).cast(kind)
    elif field.parts:
        made = _nested(field, indices, kind)
    else:
        maker = _integers if isinstance(field.type, IntegerType) else _MAKERS[type(field.type)]
        made = maker(field, _draws(indices, field.seed), kind)
    if not field.null_rate:
        return made
    share = _draws(indices, field.seed + 7919) / np.float64(2**64)
    return pa.compute.if_else(pa.array(share < field.null_rate), pa.scalar(None, kind), made)


def _nested(field: _Field, indices: npt.NDArray[Any], kind: pa.DataType) -> Any:
    import numpy as np
    import pyarrow as pa

    if isinstance(field.type, RowType):
        kinds = [part.type for part in kind]
        parts = [_made(part, indices, each) for part, each in zip(field.parts, kinds)]
        return pa.StructArray.from_arrays(parts, fields=list(kind))
    length = field.length
    inner = (indices[:, None] * length + np.arange(length)).ravel()
    if isinstance(field.type, ArrayType):
        elements = _made(field.parts[0], inner, kind.value_type)
        offsets = pa.array(np.arange(len(indices) + 1, dtype=np.int32) * length)
        return pa.ListArray.from_arrays(offsets, elements).cast(kind)
    keys = _made(field.parts[0], inner, kind.key_type).to_pylist()
    items = _made(field.parts[1], inner, kind.item_type).to_pylist()
    maps = []
    for at in range(0, len(inner), max(1, length)):
        # equal keys of one map are one
        pairs = dict(zip(keys[at : at + length], items[at : at + length]))
        maps.append(list(pairs.items()))
    return pa.array(maps or [[]] * len(indices), kind)


def _draws(indices: npt.NDArray[Any], seed: int) -> Any:
    """64 random bits for each index (splitmix64)."""
    import numpy as np

    with np.errstate(over="ignore"):
        bits = indices.astype(np.uint64) + np.uint64(seed + 1) * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return bits ^ (bits >> np.uint64(31))


def _integers(field: _Field, draws: npt.NDArray[Any], kind: pa.DataType) -> Any:
    import numpy as np
    import pyarrow as pa

    bits = field.type.bits if isinstance(field.type, IntegerType) else 64
    low = -(2 ** (bits - 1)) if field.low is None else int(field.low)
    high = 2 ** (bits - 1) - 1 if field.high is None else int(field.high)
    span = high - low + 1
    offsets = draws if span >= 2**64 else draws % np.uint64(span)
    with np.errstate(over="ignore"):
        return pa.array((offsets + np.uint64(low % 2**64)).astype(np.int64)).cast(kind)


def _floats(field: _Field, draws: npt.NDArray[Any], kind: pa.DataType) -> Any:
    import numpy as np
    import pyarrow as pa

    low = 0.0 if field.low is None else float(field.low)
    high = 1.0 if field.high is None else float(field.high)
    return pa.array(low + (draws / np.float64(2**64)) * (high - low)).cast(kind)


def _decimals(field: _Field, draws: npt.NDArray[Any], kind: pa.DataType) -> Any:
    import numpy as np
    import pyarrow as pa

    scale = kind.scale
    most = min(10**kind.precision - 1, 2**62)
    low = 0 if field.low is None else int(field.low.scaleb(scale))
    high = most if field.high is None else int(field.high.scaleb(scale))
    units = (draws % np.uint64(max(1, high - low + 1))).astype(np.int64) + low
    values = [Decimal(int(unit)).scaleb(-scale) for unit in units]
    return pa.array(values, kind)


def _texts(field: _Field, draws: npt.NDArray[Any], kind: pa.DataType) -> Any:
    import numpy as np
    import pyarrow as pa

    letters = np.frombuffer(_LETTERS.encode(), np.uint8)
    places = [
        letters[(_draws(draws, at) >> np.uint64(40)) % np.uint64(len(letters))]
        for at in range(field.length)
    ]
    joined = np.stack(places, axis=1).tobytes() if places else b""
    width = field.length
    return pa.array(
        [joined[at * width : (at + 1) * width].decode() for at in range(len(draws))], kind
    )


def _booleans(field: _Field, draws: npt.NDArray[Any], kind: pa.DataType) -> Any:
    import numpy as np
    import pyarrow as pa

    return pa.array((draws & np.uint64(1)).astype(bool))


def _moments(field: _Field, draws: npt.NDArray[Any], kind: pa.DataType) -> Any:
    """Now, or up to ``max-past`` before."""
    import numpy as np
    import pyarrow as pa

    now = SystemClock().time_ms()
    past = int(field.high or 0)
    ages = (draws % np.uint64(past + 1)).astype(np.int64)
    return pa.array(now - ages).cast(pa.timestamp("ms")).cast(pa.timestamp(kind.unit)).cast(kind)


def _days(field: _Field, draws: npt.NDArray[Any], kind: pa.DataType) -> Any:
    import pyarrow as pa

    return _moments(field, draws, pa.timestamp("ms")).cast(kind)


def _times(field: _Field, draws: npt.NDArray[Any], kind: pa.DataType) -> Any:
    import numpy as np
    import pyarrow as pa

    return pa.array((draws % np.uint64(86_400_000)).astype(np.int32)).cast(kind)


_MAKERS: dict[type[LogicalType], Any] = {
    BigIntType: _integers,
    FloatType: _floats,
    DoubleType: _floats,
    DecimalType: _decimals,
    CharType: _texts,
    VarCharType: _texts,
    BooleanType: _booleans,
    TimestampType: _moments,
    LocalZonedTimestampType: _moments,
    DateType: _days,
    TimeType: _times,
}
