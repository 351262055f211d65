"""Every type through every format of files and back: the values are the same, or there is an error.
Never others."""

from __future__ import annotations

import datetime
import decimal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flinkpy.columns.values.conversion import rows_of_batch
from flinkpy.connectors.files.reading.column_files import (
    AvroSource,
    CsvSource,
    JsonLinesSource,
    ParquetSource,
)
from flinkpy.connectors.files.writing.file_formats import (
    AvroFormat,
    CsvFormat,
    FileFormat,
    JsonLinesFormat,
    ParquetFormat,
)
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError
from tests.connectors.harness import World

WHOLE = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
AT = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SMALL = st.floats(width=32)


def cut(micros: int) -> Callable[[datetime.datetime], datetime.datetime]:
    return lambda at: at.replace(microsecond=at.microsecond // micros * micros)


def aware(at: datetime.datetime) -> datetime.datetime:
    return at.replace(tzinfo=datetime.timezone.utc)


PLAIN: dict[str, tuple[pa.DataType, Any]] = {
    **{
        str(kind): (kind, st.integers(-(1 << bits - 1), (1 << bits - 1) - 1))
        for kind, bits in WHOLE.items()
    },
    "uint8": (pa.uint8(), st.integers(0, 255)),
    "uint32": (pa.uint32(), st.integers(0, (1 << 32) - 1)),
    "bool": (pa.bool_(), st.booleans()),
    "float": (pa.float32(), SMALL),
    "double": (pa.float64(), st.floats()),
    "string": (pa.string(), TEXTS),
    "large_string": (pa.large_string(), TEXTS),
    "binary": (pa.binary(), st.binary(max_size=5)),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "decimal": (pa.decimal128(20, 5), st.decimals(-(10**14), 10**14, places=5)),
    "date": (pa.date32(), AT.map(datetime.datetime.date)),
    "time s": (pa.time32("s"), st.times().map(lambda at: at.replace(microsecond=0))),
    "time us": (pa.time64("us"), st.times()),
    "timestamp s": (pa.timestamp("s"), AT.map(cut(1_000_000))),
    "timestamp ms": (pa.timestamp("ms"), AT.map(cut(1000))),
    "timestamp us": (pa.timestamp("us"), AT),
    "timestamp us UTC": (pa.timestamp("us", "UTC"), AT.map(aware)),
    "timestamp ms Oslo": (pa.timestamp("ms", "Europe/Oslo"), AT.map(cut(1000)).map(aware)),
    "null": (pa.null(), st.none()),
}
NESTED: dict[str, tuple[pa.DataType, Any]] = {
    "list": (pa.list_(pa.int64()), st.lists(st.none() | st.integers(-9, 9), max_size=3)),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.none() | st.integers(-9, 9), "b": st.none() | TEXTS}),
    ),
    "floats": (pa.list_(pa.float64()), st.lists(st.none() | st.floats(), max_size=3)),
    "structs": (
        pa.list_(pa.struct([("a", pa.float64())])),
        st.lists(st.fixed_dictionaries({"a": st.floats()}), max_size=3),
    ),
}
ENTRIES = st.dictionaries(TEXTS, st.none() | st.integers(-9, 9), max_size=3).map(
    lambda it: list(it.items())
)
MAPS: dict[str, tuple[pa.DataType, Any]] = {"map": (pa.map_(pa.string(), pa.int64()), ENTRIES)}
UNSIGNED: dict[str, tuple[pa.DataType, Any]] = {
    "uint64": (pa.uint64(), st.integers(0, (1 << 64) - 1))
}

Reading = Callable[[Path, pa.Schema], Any]
FORMATS: dict[str, tuple[Callable[[], FileFormat], Reading, dict[str, tuple[pa.DataType, Any]]]] = {
    "parquet": (
        ParquetFormat,
        lambda path, schema: ParquetSource(path),
        {**PLAIN, **NESTED, **MAPS, **UNSIGNED},
    ),
    "avro": (
        lambda: AvroFormat(codec="null"),
        lambda path, schema: AvroSource(path, schema=schema),
        {**PLAIN, **NESTED, **MAPS},
    ),
    "avro.deflate": (
        AvroFormat,
        lambda path, schema: AvroSource(path, schema=schema),
        {**PLAIN, **NESTED, **MAPS},
    ),
    "csv": (CsvFormat, lambda path, schema: CsvSource(path, schema=schema), PLAIN),
    "csv.gz": (
        lambda: CsvFormat(compression="gzip"),
        lambda path, schema: CsvSource(path, schema=schema),
        PLAIN,
    ),
    "csv, quoted": (
        lambda: CsvFormat(delimiter=";", null_value="NULL", quoting_style="all_valid"),
        lambda path, schema: CsvSource(path, schema=schema, delimiter=";", null_values=["NULL"]),
        PLAIN,
    ),
    "csv, escaped": (
        lambda: CsvFormat(null_value="\\N", escape="\\"),
        lambda path, schema: CsvSource(path, schema=schema, null_values=["\\N"], escape="\\"),
        PLAIN,
    ),
    "csv, escaped and quoted": (
        lambda: CsvFormat(quoting_style="all_valid", escape="n", delimiter="\t"),
        lambda path, schema: CsvSource(path, schema=schema, escape="n", delimiter="\t"),
        PLAIN,
    ),
    "csv, no header": (
        lambda: CsvFormat(header=False, null_value="-"),
        lambda path, schema: CsvSource(path, schema=schema, header=False, null_values=["-"]),
        PLAIN,
    ),
    "csv, utf-16": (
        lambda: CsvFormat(encoding="utf-16", null_value="\\N"),
        lambda path, schema: CsvSource(path, schema=schema, encoding="utf-16", null_values=["\\N"]),
        PLAIN,
    ),
    "json": (
        JsonLinesFormat,
        lambda path, schema: JsonLinesSource(path, schema=schema),
        {**PLAIN, **NESTED},
    ),
    "json.zst": (
        lambda: JsonLinesFormat(compression="zstd"),
        lambda path, schema: JsonLinesSource(path, schema=schema),
        {**PLAIN, **NESTED},
    ),
}


def plain(value: Any) -> Any:
    """Values that can be compared: NaN is one, -0.0 is not 0.0, moments with a zone are
    instants."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.timezone.utc).isoformat()
    if isinstance(value, decimal.Decimal):
        return value.normalize() if value else decimal.Decimal(0)
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return (
        repr(value)
        if isinstance(value, float)
        else list(map(plain, value))
        if isinstance(value, (list, tuple))
        else value
    )


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_type_comes_back(name: str, data: st.DataObject) -> None:
    make, source_of, kinds = FORMATS[name]
    chosen = data.draw(st.lists(st.sampled_from(list(kinds)), min_size=1, max_size=4, unique=True))
    rows = data.draw(st.integers(1, 6))
    columns = [
        pa.array(
            data.draw(st.lists(st.none() | kinds[each][1], min_size=rows, max_size=rows)),
            kinds[each][0],
        )
        for each in chosen
    ]
    batch = pa.RecordBatch.from_arrays(
        [*columns, pa.array(range(rows))], names=[f"c{at}" for at in range(len(chosen))] + ["n"]
    )
    as_rows = data.draw(st.booleans())
    with tempfile.TemporaryDirectory() as folder:
        form = make()
        path = Path(folder, f"it{form.suffix}")
        # the type of rows is declared
        if as_rows and isinstance(form, (ParquetFormat, AvroFormat)):
            form = type(form)(batch.schema)
        write(form, path, RowBatch(rows_of_batch(batch)) if as_rows else ColumnBatch(batch))
        found = read(source_of(path, batch.schema))
        assert found.schema.names == batch.schema.names
        for column in batch.schema.names:
            assert list(map(plain, found.column(column).to_pylist())) == list(
                map(plain, batch.column(column).to_pylist())
            ), column


def write(form: FileFormat, path: Path, batch: Batch) -> None:
    part = form.open(open(path, "wb"))  # noqa: SIM115  (the part closes it)
    try:
        part.write(batch)
    except ProgramError:
        part.abandon()
        raise
    part.close()


def read(source: Any) -> pa.Table:
    world = World(source)
    try:
        world.run()
        assert not world.errors
        return pa.Table.from_batches([batch.data for batch in world.subtasks[0].output.batches])  # type: ignore[union-attr]
    finally:
        world.close()


def test_avro_records_with_names_of_spaces_are_read_and_those_that_contain_themselves_refused(
    tmp_path: Path,
) -> None:
    fastavro = pytest.importorskip("fastavro")
    point = {
        "type": "record",
        "name": "point",
        "namespace": "geo",
        "fields": [{"name": "x", "type": "int"}],
    }
    line = {
        "type": "record",
        "name": "line",
        "namespace": "geo",
        "fields": [{"name": "a", "type": point}, {"name": "b", "type": ["null", "point"]}],
    }
    with (tmp_path / "line.avro").open("wb") as file:
        fastavro.writer(file, line, [{"a": {"x": 1}, "b": {"x": 2}}])
    assert read(AvroSource(tmp_path / "line.avro")).to_pylist() == [{"a": {"x": 1}, "b": {"x": 2}}]
    chain = {
        "type": "record",
        "name": "chain",
        "fields": [{"name": "next", "type": ["null", "chain"]}],
    }
    with (tmp_path / "chain.avro").open("wb") as file:
        fastavro.writer(file, chain, [{"next": {"next": None}}])
    with pytest.raises(ProgramError, match="the Avro record 'chain' contains itself"):
        AvroSource(tmp_path / "chain.avro")


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (pa.uint64(), 1, "no type for column 'v', which is uint64"),
        (pa.map_(pa.int64(), pa.int64()), [(1, 2)], "no type for column 'v', which is map"),
        (pa.timestamp("ns"), 1, "Avro cannot hold these values: column 'v'"),
        (pa.duration("s"), 1, "no type for column 'v', which is duration"),
    ],
)
def test_what_avro_has_not_is_refused(
    tmp_path: Path, kind: pa.DataType, value: Any, message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        write(
            AvroFormat(),
            tmp_path / "it.avro",
            ColumnBatch(pa.RecordBatch.from_arrays([pa.array([value], kind)], names=["v"])),
        )
    with pytest.raises(ProgramError, match="no field 'a b': names are of letters"):
        AvroFormat(pa.schema([("a b", pa.int64())]))


def test_avro_files_of_others_are_read(tmp_path: Path) -> None:
    fastavro = pytest.importorskip("fastavro")
    old = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "n", "type": "int"},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
            {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "next", "type": ["null", "Kind"]},
        ],
    }
    new = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "n", "type": "long"}, {"name": "late", "type": ["null", "string"]}],
    }
    with (tmp_path / "1.avro").open("wb") as file:
        fastavro.writer(
            file,
            old,
            [{"n": 1, "kind": "B", "id": "c3f2b0c4-7f4e-4b0e-8a53-0d8f0a1f6f10", "next": None}],
            codec="deflate",
        )
    with (tmp_path / "2.avro").open("wb") as file:
        fastavro.writer(file, new, [{"n": 1 << 40, "late": "x"}, {"n": 2, "late": None}])
    source = AvroSource(tmp_path)
    assert [str(field.type) for field in source.schema] == [
        "int64",
        "string",
        "string",
        "string",
        "string",
    ]
    assert read(source).to_pylist() == [
        {
            "n": 1,
            "kind": "B",
            "id": "c3f2b0c4-7f4e-4b0e-8a53-0d8f0a1f6f10",
            "next": None,
            "late": None,
        },
        {"n": 1 << 40, "kind": None, "id": None, "next": None, "late": "x"},
        {"n": 2, "kind": None, "id": None, "next": None, "late": None},
    ]
    assert read(AvroSource(tmp_path, ["late"])).to_pylist() == [
        {"late": None},
        {"late": "x"},
        {"late": None},
    ]
    whole = (tmp_path / "2.avro").read_bytes()
    (tmp_path / "cut.avro").write_bytes(whole[:-5])
    with pytest.raises(ProgramError, match=r"cannot read .*cut.avro as Avro: "):
        read(AvroSource(tmp_path / "cut.avro"))
    (tmp_path / "none.avro").write_text("not Avro")
    with pytest.raises(ProgramError, match=r"none.avro is no Avro file"):
        AvroSource(tmp_path / "none.avro")
    with (tmp_path / "union.avro").open("wb") as file:
        fastavro.writer(
            file,
            {"type": "record", "name": "R", "fields": [{"name": "u", "type": ["int", "string"]}]},
            [{"u": 1}],
        )
    with pytest.raises(
        ProgramError,
        match=r"union.avro: a column has one type, and field 'u' is a union of several",
    ):
        AvroSource(tmp_path / "union.avro")
