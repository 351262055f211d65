"""Values on their way between rows, columns and files: programs as a user writes them."""

from __future__ import annotations

import datetime
import json
import math
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from examples import own_source_and_sink
from flinkpy.columns.values.conversion import batch_of_rows, rows_of_batch
from flinkpy.columns.values.exact_arrays import array_of
from flinkpy.common import Row, Types
from flinkpy.connectors.files.builders import BucketAssigner
from flinkpy.connectors.files.partition_folders import folder_of
from flinkpy.connectors.files.reading.column_files import CsvSource, ParquetSource
from flinkpy.connectors.files.writing import columns_part
from flinkpy.connectors.files.writing.file_formats import CsvFormat, ParquetFormat
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.connectors.files.writing.lines.csv_lines import CsvLines
from flinkpy.connectors.files.writing.parquet_part import ParquetPart
from flinkpy.connectors.memory.arrow_tables import ArrowSource
from flinkpy.core.elements import RowBatch
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table.expressions import col
from tests.connectors.harness import read_all

BERLIN = ZoneInfo("Europe/Berlin")


def written(
    folder: Path, records: list[Any], format: Any = "parquet", type_info: Any = None, **options: Any
) -> Path:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(records, type_info).sink_to(FileSink(folder, format, **options))
    env.execute("write")
    return folder


def lines(folder: Path) -> list[str]:
    return "".join(path.read_text() for path in sorted(folder.rglob("part*"))).splitlines()


def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.finding("first-use 1")
@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5],
        [1, Decimal("1.7")],
        [2.5, None, 3],
        [np.int64(1), 2.5],
        [1, 2**63],
        [-1, 2**63],
        [0, 2**70],
        [True, None],
        [Decimal("1E-10"), 5],
    ],
)
def test_what_undeclared_rows_hold_is_in_the_file(tmp_path: Path, values: list[Any]) -> None:
    written(tmp_path, [{"price": value} for value in values])
    assert pq.read_table(tmp_path)["price"].to_pylist() == values


@pytest.mark.finding("first-use 1")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [2**53 + 1, 0.5],
            (
                r"field 'price' holds 0.5 \(float\) and 9007199254740993 \(int\), which no float "
                r"equals; declare what the records are"
            ),
        ),
        ([True, 2], r"field 'price' holds True \(bool\) and 2 \(int\)"),
        ([Decimal("1.7"), 2.5], "and a column has one type"),
        ([b"x", "x"], "and a column has one type"),
        ([{1, 2}], "for which columns have no type"),
        ([Decimal("NaN")], "which decimal columns do not have"),
    ],
)
def test_what_has_no_column_type_in_common_fails_the_job_by_name(
    tmp_path: Path, values: list[Any], message: str
) -> None:
    with pytest.raises(JobExecutionError, match=message):
        written(tmp_path, [{"price": value} for value in values])


@pytest.mark.finding("first-use 1")
@pytest.mark.parametrize(
    ("declared", "value", "message"),
    [
        (Types.INT(), 2.9, r"2.9 \(float\) is no int32"),
        (Types.INT(), Decimal("2.9"), "is no int32"),
        (Types.INT(), True, "is no int32"),
        (Types.DOUBLE(), 2**53 + 1, "is no double"),
        (Types.FLOAT(), 1e300, "is no float"),
        (Types.SQL_DATE(), datetime.datetime(2024, 5, 1, 12), "is no date32"),
        (
            Types.SQL_TIMESTAMP(),
            datetime.datetime(2024, 5, 1, tzinfo=BERLIN),
            r"is no timestamp\[us\]: it has a zone",
        ),
        (Types.INSTANT(), datetime.datetime(2024, 5, 1), "it has no zone"),
        (Types.STRING(), b"x", "is no string"),
        (Types.LIST(Types.INT()), [1, 2.9], r"'v\[\]': 2.9 \(float\) is no int32"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": 2.9}, "2.9"),
        (Types.ROW_NAMED(["a"], [Types.INT()]), {"a": 2.9}, r"'v.a': 2.9 \(float\) is no int32"),
    ],
)
def test_a_declared_type_refuses_what_it_would_change(
    tmp_path: Path, declared: Any, value: Any, message: str
) -> None:
    row = Types.ROW_NAMED(["v"], [declared])
    columns = env().from_collection([0]).map(lambda _: Row(v=value), output_type=row)
    with pytest.raises(JobExecutionError, match=message):
        columns.to_pandas()
    files = env()
    files.from_collection([0]).map(lambda _: {"v": value}, output_type=row).sink_to(
        FileSink(tmp_path, "parquet")
    )
    with pytest.raises(JobExecutionError, match=message):
        files.execute("write")


@pytest.mark.finding("first-use 1")
def test_a_declared_type_takes_equal_values_of_other_classes() -> None:
    row = Types.ROW_NAMED(["i", "d", "t"], [Types.INT(), Types.DOUBLE(), Types.INSTANT()])
    at = pd.Timestamp("2024-05-01 12:00", tz="Europe/Berlin")
    table = (
        env().from_collection([0]).map(lambda _: Row(2.0, 2**60, at), output_type=row).to_arrow()
    )
    assert table.to_pylist() == [{"i": 2, "d": float(2**60), "t": at.to_pydatetime()}]


moments = st.datetimes(datetime.datetime(1800, 1, 1), datetime.datetime(2200, 1, 1))
instants = st.datetimes(
    datetime.datetime(1900, 1, 1),
    datetime.datetime(2200, 1, 1),
    timezones=st.sampled_from(
        [
            datetime.timezone.utc,
            BERLIN,
            datetime.timezone(datetime.timedelta(hours=5, minutes=45)),
            datetime.timezone(datetime.timedelta(seconds=3203)),
        ]
    ),
)
numbers = st.one_of(
    st.integers(),
    st.integers(-5, 5),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.integers(-(1 << 62), 1 << 62).map(np.int64),
    st.floats(width=32).map(np.float32),
)
scalars = st.one_of(
    st.none(),
    numbers,
    st.booleans(),
    st.booleans().map(np.bool_),
    st.text(st.characters(codec="utf-8")),
    st.binary(),
    st.dates(),
    st.times(),
    moments,
    instants,
    st.timedeltas(),
    moments.map(lambda at: pd.Timestamp(at) + pd.Timedelta(7, "ns")),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, min_size=1)
    ),
    max_leaves=6,
)
of_one_kind = st.one_of(
    *(
        st.lists(each, min_size=1, max_size=6)
        for each in (
            st.one_of(st.integers(), st.floats()),
            st.one_of(st.integers(), st.decimals(-1000, 1000, places=3)),
            values,
            moments,
            instants,
            st.dictionaries(st.sampled_from("abc"), st.integers(), min_size=1),
        )
    )
)


def same(got: Any, given: Any) -> bool:
    """Whether the value of a column equals that of the row; the fields a dict has not are None in
    its struct."""
    if given is None or got is None or isinstance(got, bool) or isinstance(given, (bool, np.bool_)):
        return (got is None and given is None) or (
            type(got) is bool and isinstance(given, (bool, np.bool_)) and got == bool(given)
        )
    if isinstance(given, dict) and isinstance(got, Row):
        fields = got.as_dict()
        return all(same(fields.get(name), given.get(name)) for name in fields.keys() | given.keys())
    if isinstance(given, dict):
        return (
            isinstance(got, dict)
            and got.keys() == given.keys()
            and all(same(got[name], given[name]) for name in got)
        )
    if isinstance(given, list):
        return isinstance(got, list) and len(got) == len(given) and all(map(same, got, given))
    if isinstance(given, (float, np.floating)) and math.isnan(given):
        return isinstance(got, float) and math.isnan(got)
    if isinstance(given, datetime.datetime) and (given.tzinfo is None) != (got.tzinfo is None):
        return False
    # clocks of one zone are compared as they read, also at hours left out
    if isinstance(given, datetime.datetime) and given.tzinfo is not None:
        return bool(
            got.astimezone(datetime.timezone.utc) == given.astimezone(datetime.timezone.utc)
        )
    return bool(got == (given.item() if isinstance(given, np.number) else given))


@pytest.mark.finding("first-use 1", "hunts 4", "hunts 10")
@settings(
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(column=of_one_kind, cut=st.integers(0, 6))
@example(column=[1, 2.5], cut=1)
@example(column=[Decimal("1.7"), Decimal("1.123456789")], cut=1)
@example(column=[{"a": 1}, {"b": 2}], cut=1)
def test_what_comes_out_of_parquet_equals_the_rows_or_the_error_names_field_and_value(
    tmp_path: Path, column: list[Any], cut: int
) -> None:
    shares = [[{"v": value} for value in share] for share in (column[:cut], column[cut:])]
    path, error = as_parquet(tmp_path, shares)
    if error:
        assert ("'v" in error and "declare" in error) or "Parquet has no columns" in error
        return
    table = pq.read_table(path)
    got = [row.v for batch in table.to_batches() for row in rows_of_batch(batch)]
    assert all_same(got, column)
    # the same way with the type declared
    again = batch_of_rows([*shares[0], *shares[1]], table.schema)
    assert all_same([row.v for row in rows_of_batch(again)], column)


def as_parquet(folder: Path, batches: list[list[Any]]) -> tuple[str, str]:
    """The file of these batches of records, and why there is none."""
    part = ParquetPart(open(folder / "part.parquet", "wb"), None, "zstd")  # noqa: SIM115  (the part closes it)
    try:
        for records in batches:
            part.write(RowBatch(records))
        part.close()
    except ProgramError as error:
        part.abandon()
        return "", str(error)
    return str(folder / "part.parquet"), ""


def all_same(got: list[Any], given: list[Any]) -> bool:
    return len(got) == len(given) and all(map(same, got, given))


NUMBERS: list[Any] = [
    pa.int8(),
    pa.int32(),
    pa.uint64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(10, 3),
    pa.decimal128(38, 0),
    pa.bool_(),
]


@pytest.mark.finding("first-use 1")
@settings(max_examples=300)
@given(
    kind=st.sampled_from(NUMBERS),
    value=st.one_of(
        numbers, st.sampled_from([0.5, 2.0, -0.0, True]), st.decimals(-300, 300, places=2)
    ),
)
@example(kind=pa.decimal128(10, 3), value=1e-06)
@example(kind=pa.float32(), value=3.4e38)
@example(kind=pa.float32(), value=3.4028235677973366e38)
@example(kind=pa.decimal128(38, 18), value=Decimal("1E-77"))
@example(kind=pa.decimal128(10, 3), value=Decimal("1.5000000"))
def test_a_number_fits_its_declared_type_exactly_or_is_refused(kind: Any, value: Any) -> None:
    got = fitted(value, kind)
    # larger ones are rounded to infinity
    if kind == pa.float32() and isinstance(value, float) and abs(value) < 2.0**128 * (1 - 2.0**-25):
        assert got == [np.float32(value)]  # what declaring so few digits asks for
    else:
        assert got is None or same(got[0], value)
    if type(value) is int and 0 <= value < 128 and kind != pa.bool_():
        assert got is not None


def fitted(value: Any, kind: Any) -> list[Any] | None:
    try:
        listed: list[Any] = array_of([value], kind, "v").to_pylist()
    except ValueError:
        return None
    return listed


# -- nested values, decimals, nanoseconds ----------------------------------------------------------


@pytest.mark.finding("hunts 4")
def test_nested_records_keep_fields_that_come_late(tmp_path: Path) -> None:
    written(
        tmp_path,
        [
            {"v": {"a": 1}, "r": Row(a=1), "m": None},
            {"v": {"b": "x"}, "r": Row(b=2), "m": None},
            {"v": None, "r": None, "m": {"x": 1}},
            {"v": None, "r": None, "m": {"y": 2.5}},
        ],
    )
    assert env().from_parquet(tmp_path).take(9) == [
        Row(v=Row(a=1, b=None), r=Row(a=1, b=None), m=None),
        Row(v=Row(a=None, b="x"), r=Row(a=None, b=2), m=None),
        Row(v=None, r=None, m={"x": 1}),
        Row(v=None, r=None, m={"y": 2.5}),
    ]


@pytest.mark.finding("hunts 4")
def test_a_declared_record_refuses_fields_it_has_not() -> None:
    row = Types.ROW_NAMED(["v"], [Types.ROW_NAMED(["a"], [Types.INT()])])
    with pytest.raises(ValueError, match="it has no field 'b'"):
        batch_of_rows([{"v": {"a": 1, "b": 2}}], pa.schema([("v", pa.struct([("a", pa.int32())]))]))
    assert env().from_collection([Row(v=Row(a=1))], row).to_arrow().to_pylist() == [{"v": {"a": 1}}]


@pytest.mark.finding("hunts 4")
def test_maps_and_nanoseconds_stay_what_they_are_behind_a_function(tmp_path: Path) -> None:
    at = pd.Timestamp("2024-05-01 12:00:00.000000001")
    maps = pa.array([[("a", 1)], [("b", 2), ("c", None)]], pa.map_(pa.string(), pa.int64()))
    table = pa.table({"at": pa.array([at.value, None], pa.timestamp("ns")), "m": maps})
    program = env()
    program.from_arrow(table).map(lambda row: row).sink_to(FileSink(tmp_path, "parquet"))
    program.execute("copy")
    got = pq.read_table(tmp_path)
    assert got.to_pylist() == table.to_pylist()
    assert got.schema.types == [pa.timestamp("ns"), pa.map_(pa.string(), pa.int64())]


@pytest.mark.finding("hunts 10")
def test_decimals_have_room_for_those_that_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [Decimal("1.5"), Decimal("12345678901234567890.123456789012345678"), None]
    written(tmp_path, [{"v": value} for value in values])
    assert pq.read_table(tmp_path)["v"].to_pylist() == values
    part = ParquetPart(open(tmp_path / "groups", "wb"), None, "zstd")  # noqa: SIM115  (the part closes it)
    monkeypatch.setattr(columns_part, "GROUP_ROWS", 1)
    for value in values:
        part.write(RowBatch([{"v": value}]))
    part.close()
    assert pq.read_table(tmp_path / "groups")["v"].to_pylist() == values


@pytest.mark.finding("hunts 11")
def test_numbers_of_64_bits_without_a_sign_go_to_parquet_and_back(tmp_path: Path) -> None:
    program = env()
    program.from_arrow(pa.table({"v": pa.array([2**63, 2**64 - 1, 0], pa.uint64())})).map(
        lambda row: row
    ).sink_to(FileSink(tmp_path, "parquet"))
    program.execute("copy")
    assert sorted(row.v for row in env().from_parquet(tmp_path).take(9)) == [0, 2**63, 2**64 - 1]


@pytest.mark.finding("hunts 12")
def test_columns_of_no_rows_have_their_names() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    stream = env().from_arrow(pa.table({"a": [1], "b": ["x"]}))
    assert stream.filter(col("a") > 1).to_arrow().schema == schema
    assert (
        env()
        .from_arrow(pa.table({"a": [1]}))
        .map_batches(lambda batch: {"a": [], "b": []}, schema=schema)
        .to_arrow()
        .schema
        == schema
    )


@pytest.mark.finding("first-use 1")
def test_lists_that_functions_of_batches_return_are_exact() -> None:
    at = pd.Timestamp("2024-05-01 12:00:00.000000001")
    given = {"n": [1, 2.5], "big": [0, 2**63], "d": [1, Decimal("1.7")], "at": [at, None]}
    assert (
        env()
        .from_arrow(pa.table({"a": [1]}))
        .map_batches(lambda batch: given)
        .to_arrow()
        .to_pydict()
        == given
    )
    assert (
        env()
        .generate(lambda index: given, count=2, columns=True)
        .set_parallelism(1)
        .to_arrow()
        .to_pydict()
        == given
    )
    one_by_one = env().from_source(ArrowSource(pa.table({"a": [1, 2]}), batch_rows=1))
    assert one_by_one.map_batches(
        lambda batch: {"a": [[0.5, 1][batch["a"][0].as_py() - 1]]}
    ).to_arrow()["a"].to_pylist() == [0.5, 1.0]


# -- JSON ------------------------------------------------------------------------------------------


@pytest.mark.finding("first-use 6")
def test_json_is_json(tmp_path: Path) -> None:
    record = {
        "n": np.int64(3),
        "f": np.float32(1.5),
        "t": np.bool_(True),
        "raw": b"\x00\xff",
        "rates": [math.nan, math.inf, {"x": -math.inf}],
        "array": np.array([1, 2]),
        "d": Decimal("1E-10"),
        "day": datetime.date(2024, 5, 1),
        "row": Row(a=math.nan),
        "np": np.float64("inf"),
    }
    written(tmp_path, [record], "json")
    [line] = lines(tmp_path)
    refuse = pytest.fail
    assert json.loads(line, parse_constant=refuse) == {
        "n": 3,
        "f": 1.5,
        "t": True,
        "raw": "AP8=",
        "rates": ["NaN", "Infinity", {"x": "-Infinity"}],
        "array": [1, 2],
        "d": "0.0000000001",
        "day": "2024-05-01",
        "row": {"a": "NaN"},
        "np": "Infinity",
    }


@pytest.mark.finding("first-use 6")
@pytest.mark.parametrize(
    ("value", "message"),
    [({1, 2}, "a set has no order"), (object(), "it has no text"), ({(1, 2): 3}, "keys must be")],
)
def test_what_json_cannot_hold_is_refused_by_its_field(
    tmp_path: Path, value: Any, message: str
) -> None:
    with pytest.raises(JobExecutionError, match=f"(?s)field 'odd' of .*{message}"):
        written(tmp_path, [{"fine": 1, "odd": value}], "json")


def written_columns(folder: Path, table: pa.Table, format: Any) -> None:
    job = env()
    job.from_arrow(table).sink_to(FileSink(folder, format))
    job.execute("write")


NAMED = pa.table(
    {
        "f": [1.5, math.nan, -math.inf, None],
        "text": ["NaN", '"f": "NaN"', None, "Infinity"],
        "in": [{"f": math.inf}, None, {"f": None}, {"f": 0.5}],
    }
)


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("schema", [None, NAMED.schema])
def test_floats_that_json_has_not_come_back_from_their_names(
    tmp_path: Path, schema: pa.Schema | None, turn: int
) -> None:
    table = NAMED.take(list(range(4))[::turn])
    written_columns(tmp_path, table, "json")
    assert repr(env().from_json_lines(tmp_path, schema=schema).to_arrow().to_pylist()) == repr(
        table.to_pylist()
    )


RAW = pa.table(
    {
        "raw": [b"\x00\xff", b"", None],
        "two": pa.array([b"ab", None, b"cd"], pa.binary(2)),
        "n": [1, 2, 3],
    }
)
NESTED = pa.table(
    {
        "in": [
            {
                "raw": [b"\xff", None],
                "at": datetime.time(1, 2, 3, 4),
                "day": datetime.date(2024, 5, 1),
            },
            None,
            {"raw": None},
        ],
        "at": pa.array([None, datetime.time(23, 59), None], pa.time32("s")),
        "all": [[{"x": b"a"}, None], None, []],
    }
)


@pytest.mark.parametrize(
    ("kind", "read", "table"),
    [
        ("csv", StreamExecutionEnvironment.from_csv, RAW),
        ("json", StreamExecutionEnvironment.from_json_lines, RAW),
        ("json", StreamExecutionEnvironment.from_json_lines, NESTED),
    ],
)
def test_declared_bytes_and_times_come_back_from_files_of_text(
    tmp_path: Path, kind: str, read: Any, table: pa.Table
) -> None:
    written_columns(tmp_path, table, kind)
    assert read(env(), tmp_path, schema=table.schema).to_arrow().to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("*", pa.binary(), r"column 'v': '\*' is no Base64"),
        ("noon", pa.time64("us"), "'noon' is no time of day"),
        ("12:00+02:00", pa.time64("us"), "has a zone"),
    ],
)
def test_a_text_that_is_no_bytes_or_time_is_refused(
    tmp_path: Path, text: str, kind: pa.DataType, message: str
) -> None:
    (tmp_path / "it.jsonl").write_text(json.dumps({"v": text}))
    with pytest.raises(JobExecutionError, match=message):
        env().from_json_lines(tmp_path / "it.jsonl", schema=pa.schema([("v", kind)])).take()


def test_json_that_is_no_utf8_is_refused_with_the_files_name(tmp_path: Path) -> None:
    (tmp_path / "it.jsonl").write_bytes('{"name": "é"}'.encode("latin-1"))
    with pytest.raises(ProgramError, match=r"cannot read .*it\.jsonl .* is no UTF-8"):
        env().from_json_lines(tmp_path / "it.jsonl")


@pytest.mark.parametrize("large", ["12345678901234567891", "-9007199254740993"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_large_whole_number_in_a_file_of_text_is_not_rounded_to_a_float(
    tmp_path: Path, large: str, is_first: bool
) -> None:
    numbers = (
        [large, "0.5", "1e300", "18014398509481984"]
        if is_first
        else ["0.5", "inf", *["7"] * 300_000, large]
    )
    (tmp_path / "it.csv").write_text("v,w\n" + "".join(f"{number},x\n" for number in numbers))
    (tmp_path / "it.jsonl").write_text(
        "".join(f'{{"v": {number}, "w": "x"}}\n' for number in numbers if number != "inf")
    )
    for read in (env().from_csv, env().from_json_lines):
        path = tmp_path / ("it.csv" if "csv" in read.__name__ else "it.jsonl")
        with pytest.raises(
            JobExecutionError,
            match=f"column 'v' holds {large}, which no float equals; give schema=",
        ):
            read(path).to_arrow()
        assert read(path, schema=pa.schema([("v", pa.float64()), ("w", pa.string())])).to_arrow()[
            "v"
        ].to_pylist()[0] == float(numbers[0])
        assert read(path, columns=["w"]).to_arrow()["w"].to_pylist()[0] == "x"


# -- CSV -------------------------------------------------------------------------------------------


@pytest.mark.finding("first-use 7")
def test_null_and_empty_text_go_through_csv(tmp_path: Path) -> None:
    records = [
        {"a": "x", "b": None, "c": 1.5},
        {"a": "", "b": "y", "c": None},
        {"a": None, "b": "", "c": math.nan},
        {"a": "NA", "b": "null", "c": 0.0},
    ]
    written(tmp_path, records, "csv")
    assert lines(tmp_path) == ["a,b,c", "x,,1.5", '"",y,', ',"",nan', "NA,null,0.0"]
    got = env().from_csv(tmp_path).to_arrow().to_pylist()
    assert all(same(there, record) for there, record in zip(got, records, strict=True))


@pytest.mark.finding("first-use 7")
def test_csv_takes_a_text_for_null_an_encoding_and_quotes(tmp_path: Path) -> None:
    form = CsvFormat(null_value="\\N", encoding="latin-1", quoting_style="all_valid", delimiter=";")
    written(
        tmp_path,
        [{"city": "Köln;", "n": 1}, {"city": None, "n": None}, {"city": "\\N", "n": 2}],
        form,
    )
    [part] = tmp_path.glob("part*")
    assert part.read_bytes().decode("latin-1") == '"city";"n"\n"Köln;";"1"\n\\N;\\N\n"\\N";"2"\n'
    schema = pa.schema([("city", pa.string()), ("n", pa.int64())])
    stream = env().from_csv(
        tmp_path, null_values=["\\N"], encoding="latin-1", delimiter=";", schema=schema
    )
    assert stream.to_arrow().to_pylist() == [
        {"city": "Köln;", "n": 1},
        {"city": None, "n": None},
        {"city": "\\N", "n": 2},
    ]


@pytest.mark.finding("first-use 7")
def test_text_of_another_encoding_is_told_and_not_taken_for_bytes(tmp_path: Path) -> None:
    (tmp_path / "cities.csv").write_bytes("city,n\nKöln,1\n".encode("latin-1"))
    with pytest.raises(
        ProgramError,
        match=r"column 'city' of .* is no utf-8 text; name the file's encoding with encoding=",
    ):
        env().from_csv(tmp_path / "cities.csv")
    assert env().from_csv(tmp_path / "cities.csv", encoding="latin-1").to_arrow().to_pylist() == [
        {"city": "Köln", "n": 1}
    ]


csv_texts = st.one_of(
    st.none(), st.text(st.one_of(st.sampled_from("\";,\r\n '\\N"), st.characters(codec="utf-8")))
)


@pytest.mark.finding("first-use 7")
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(csv_texts, csv_texts), min_size=1),
    null_value=st.sampled_from(["", "\\N", "NA"]),
    quote_all=st.booleans(),
)
@example(rows=[("a\rb", "x\r"), ("a", "b")], null_value="", quote_all=False)
def test_texts_and_nulls_come_back_from_csv_as_they_were(
    tmp_path: Path, rows: list[tuple[Any, Any]], null_value: str, quote_all: bool
) -> None:
    csv_lines = CsvLines(",", null_value, quote_all)
    path = tmp_path / "it.csv"
    path.write_text(csv_lines.header(["a", "b"]) + csv_lines.of(rows), encoding="utf-8", newline="")
    source = CsvSource(
        path, schema=pa.schema([("a", pa.string()), ("b", pa.string())]), null_values=[null_value]
    )
    assert [tuple(row) for row in read_all(source)] == rows


@pytest.mark.finding("hunts 12")
def test_csv_has_values_and_no_reprs(tmp_path: Path) -> None:
    written(
        tmp_path,
        [
            (
                Decimal("1E-10"),
                b"abc",
                Row(a=1, b="x,y"),
                [1, None],
                np.int64(3),
                np.float32(0.5),
                datetime.date(2024, 5, 1),
            )
        ],
        "csv",
    )
    assert lines(tmp_path) == [
        '0.0000000001,YWJj,"{""a"": 1, ""b"": ""x,y""}","[1, null]",3,0.5,2024-05-01'
    ]
    with pytest.raises(JobExecutionError, match="a set has no order"):
        written(tmp_path / "odd", [(1, {1, 2})], "csv")
    with pytest.raises(JobExecutionError, match="would be an empty line in a CSV file"):
        written(tmp_path / "one", [{"a": None}], "csv")


# -- folders of partitions -------------------------------------------------------------------------


@pytest.mark.finding("first-use 8")
@pytest.mark.parametrize("format", ["parquet", "json", "csv"])
def test_folders_that_by_value_writes_are_columns(tmp_path: Path, format: str) -> None:
    records = [{"n": 1, "city": "Oslo"}, {"n": 2, "city": "Århus/Nord"}, {"n": 3, "city": None}]
    buckets = BucketAssigner.by_value(
        lambda record: folder_of({"town": record["city"], "year": 2024, "code": "007"})
    )
    written(tmp_path, records, format, buckets=buckets)
    program = env()
    read: dict[str, Any] = {
        "parquet": program.from_parquet,
        "json": program.from_json_lines,
        "csv": program.from_csv,
    }
    table = read[format](tmp_path).to_arrow()
    assert {name: str(table.schema.field(name).type) for name in ("town", "year", "code")} == {
        "town": "string",
        "year": "int32",
        "code": "string",
    }
    assert sorted(
        (row["n"], row["town"], row["year"], row["code"]) for row in table.to_pylist()
    ) == [(1, "Oslo", 2024, "007"), (2, "Århus/Nord", 2024, "007"), (3, None, 2024, "007")]
    pattern = f"{tmp_path}/town=Os*/*/*/part*"
    assert read[format](pattern, ["town"]).to_arrow().to_pylist() == [{"town": "Oslo"}]


@pytest.mark.finding("first-use 8")
def test_a_column_of_the_file_goes_before_the_folder_of_its_name(tmp_path: Path) -> None:
    written(
        tmp_path,
        [{"city": "Oslo", "n": 1}],
        buckets=BucketAssigner.by_value(lambda record: "city=elsewhere"),
    )
    assert env().from_parquet(tmp_path).to_arrow().to_pylist() == [{"city": "Oslo", "n": 1}]


@pytest.mark.finding("first-use 8")
def test_folders_of_dates_and_of_other_names(tmp_path: Path) -> None:
    written(
        tmp_path,
        [{"n": 1}, {"n": 2}],
        buckets=BucketAssigner.by_value(lambda record: f"day=2024-05-0{record['n']}"),
    )
    days = [datetime.date(2024, 5, 1), datetime.date(2024, 5, 2)]
    assert sorted(env().from_parquet(tmp_path).to_arrow()["day"].to_pylist()) == days
    assert env().from_parquet(tmp_path / "day=2024-05-01").to_arrow().to_pylist() == [{"n": 1}]
    (tmp_path / "hour=1").mkdir()
    pq.write_table(pa.table({"n": [3]}), tmp_path / "hour=1" / "part.parquet")
    with pytest.raises(ProgramError, match="files of one source lie in folders of the same names"):
        ParquetSource(tmp_path)


@pytest.mark.finding("first-use 8")
def test_columns_keep_their_types_in_folders(tmp_path: Path) -> None:
    program = env()
    table = pa.table(
        {
            "city": ["Oslo", "Rome"],
            "n": pa.array([1, 2], pa.int8()),
            "at": pa.array([1, 2], pa.timestamp("ns", "Europe/Berlin")),
        }
    )
    program.from_arrow(table).sink_to(
        FileSink(tmp_path, "parquet", buckets=BucketAssigner.by_value(lambda row: f"c={row.city}"))
    )
    program.execute("write")
    assert pq.read_table(tmp_path / "c=Rome").to_pylist() == table.slice(1).to_pylist()
    assert pq.ParquetFile(next((tmp_path / "c=Rome").glob("*"))).schema_arrow.equals(table.schema)


# -- moments with a zone ---------------------------------------------------------------------------

ODD = datetime.timezone(datetime.timedelta(hours=1, seconds=7))
AT = [
    datetime.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1),
    datetime.datetime(1850, 1, 1, tzinfo=BERLIN),
    datetime.datetime(2024, 1, 1, 0, 0, 0, 123456, tzinfo=ODD),
]


@pytest.mark.finding("first-use 1")
@pytest.mark.parametrize("format", ["parquet", "json", "csv"])
def test_a_moment_with_a_zone_comes_back_as_the_same_moment(tmp_path: Path, format: str) -> None:
    written(tmp_path, [{"n": at, "at": moment} for at, moment in enumerate(AT)], format)
    schema = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    program = env()
    stream = {
        "parquet": lambda: program.from_parquet(tmp_path),
        "json": lambda: program.from_json_lines(tmp_path, schema=schema),
        "csv": lambda: program.from_csv(tmp_path),
    }[format]()
    assert [row.at.timestamp() for row in stream.take(9)] == [moment.timestamp() for moment in AT]


@pytest.mark.finding("first-use 1")
def test_parquet_keeps_the_zone(tmp_path: Path) -> None:
    written(tmp_path, [{"at": AT[0]}])
    assert env().from_parquet(tmp_path).to_arrow()["at"].type == pa.timestamp("us", "Europe/Berlin")


@pytest.mark.finding("first-use 1")
def test_json_lines_show_zones_and_refuse_one_too_many(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"at": "2024-05-01 12:00:00+02:00", "in": {"at": "2024-05-01T12:00:00Z"}, "local": '
        '"2024-05-01 12:00:00"}\n'
    )
    table = env().from_json_lines(tmp_path).to_arrow()
    at = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.timezone.utc)
    assert table.to_pylist() == [
        {"at": at - datetime.timedelta(hours=2), "in": {"at": at}, "local": at.replace(tzinfo=None)}
    ]
    schema = pa.schema(
        [
            ("at", pa.timestamp("us")),
            ("in", pa.struct([("at", pa.string())])),
            ("local", pa.string()),
        ]
    )
    with pytest.raises(JobExecutionError, match="expected no zone offset"):
        env().from_json_lines(tmp_path, ["at"], schema=schema).to_arrow()


@pytest.mark.finding("first-use 1")
@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            pa.array([0], pa.timestamp("us", "UTC")),
            pa.array([0], pa.timestamp("us")),
            r"'v' is timestamp\[us\], and timestamp\[us, tz=UTC\] has one",
        ),
        (
            pa.array([[0]], pa.list_(pa.timestamp("us"))),
            pa.array([[0]], pa.list_(pa.timestamp("us", "UTC"))),
            "has no zone",
        ),
        (pa.array([0], pa.date32()), pa.array([0], pa.timestamp("us")), "would cut it"),
        (pa.array([1]), pa.array([2.5]), "column 'v': Float value 2.5"),
        (pa.array([1.5], pa.float32()), pa.array([1e300]), "values too large for float"),
        (pa.array([{"a": 1}]), pa.array([{"a": 1, "b": 2}]), "has no field 'b'"),
    ],
)
def test_files_of_other_types_are_refused_where_values_would_change(
    tmp_path: Path, first: Any, second: Any, message: str
) -> None:
    pq.write_table(pa.table({"v": first}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"v": second}), tmp_path / "b.parquet")
    with pytest.raises(JobExecutionError, match=message):
        env().from_parquet(tmp_path, schema=pa.schema([("v", first.type)])).to_arrow()


@pytest.mark.finding("newcomers 6")
@pytest.mark.parametrize("form", ["parquet", "avro", "csv", "json"])
@pytest.mark.parametrize(
    "declared",
    [Types.TUPLE, Types.ROW, lambda types: Types.ROW_NAMED(["f0", "f1"], types)],
    ids=["TUPLE", "ROW", "ROW_NAMED"],
)
def test_a_declared_tuple_is_written_as_a_row_with_these_types(
    tmp_path: Path, form: str, declared: Any
) -> None:
    type_info = declared([Types.STRING(), Types.INT()])
    records = env()
    records.from_collection([("x", 80), ("y", 2.0)]).map(lambda pair: pair, type_info).sink_to(
        FileSink(tmp_path, form)
    )
    records.execute("write")
    read: Any = {
        "parquet": records.from_parquet,
        "avro": records.from_avro,
        "csv": records.from_csv,
        "json": records.from_json_lines,
    }[form]
    table = read(tmp_path).to_arrow()
    assert table.to_pylist() == [{"f0": "x", "f1": 80}, {"f0": "y", "f1": 2}]
    if form in ("parquet", "avro"):
        assert table.schema.field("f1").type == pa.int32()
        records.from_collection([("x", 80.42)]).map(lambda pair: pair, type_info).sink_to(
            FileSink(tmp_path, form)
        )
        with pytest.raises(JobExecutionError, match=r"field 'f1': 80.42 \(float\) is no int32"):
            records.execute("write")


@pytest.mark.finding("bugs 7")
def test_parts_whose_rows_showed_other_types_are_read_as_one_part_would_be(tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": [1], "w": [None], "x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"v": [2.5], "w": ["x"], "x": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(
        ProgramError,
        match=(
            r"column 'x' is int64 in .*a.parquet and string in .*b.parquet; give schema= with one "
            r"type for it"
        ),
    ):
        env().from_parquet(tmp_path)
    assert env().from_parquet(tmp_path, ["v", "w"]).to_arrow().to_pylist() == [
        {"v": 1.0, "w": None},
        {"v": 2.5, "w": "x"},
    ]
    # the first that is more than nulls
    assert env().from_parquet(tmp_path, ["w"]).to_arrow()["w"].to_pylist() == [None, "x"]


# -- as it is written ------------------------------------------------------------------------------


@pytest.mark.finding("first-use 19")
def test_advice_names_options_that_exist(tmp_path: Path) -> None:
    with pytest.raises(JobExecutionError) as caught:
        written(tmp_path, [{"a": 1}, {"a": "x"}])
    assert "ParquetFormat(schema=" in str(caught.value)
    ParquetFormat(schema=pa.schema([("a", pa.string())]))


@pytest.mark.finding("first-use 16")
@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"a": [1]}, "these have a, b and a; bring them into line with select"),
        ({"b": ["x"], "a": [1]}, "these have a, b and b, a"),
        (
            {"a": [1.5], "b": ["x"]},
            (
                r"'a' is int64 here and double there; bring them into line with select\(..., "
                r"col\('a'\).cast"
            ),
        ),
    ],
)
def test_a_union_of_other_columns_is_refused_where_it_is_written(
    other: dict[str, Any], message: str
) -> None:
    program = env()
    one = program.from_arrow(pa.table({"a": [1], "b": ["x"]}))
    with pytest.raises(ProgramError, match=message):
        one.union(program.from_arrow(pa.table(other)))
    nullable = pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.string())])
    assert (
        one.union(program.from_arrow(pa.table({"a": [2], "b": ["y"]}, schema=nullable)))
        .select("a")
        .to_arrow()
        .num_rows
        == 2
    )


@pytest.mark.finding("first-use 17")
def test_the_examples_sink_takes_columns(tmp_path: Path) -> None:
    program = env()
    program.from_arrow(
        pa.table({"file": ["a.log"], "level": ["ERROR"], "message": ["full"]})
    ).sink_to(own_source_and_sink.FilePerLevel(tmp_path))
    program.execute("columns")
    assert (tmp_path / "ERROR-0.txt").read_text() == "a.log: full\n"


@pytest.mark.finding("first-use 23")
def test_the_example_of_a_source_and_a_sink_runs_without_arguments() -> None:
    example_file = Path(own_source_and_sink.__file__)
    done = subprocess.run(
        [sys.executable, example_file],
        cwd=example_file.parent.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, sorted(done.stdout.splitlines())) == (
        0,
        ["ERROR-0.txt: disk.log: full", "WARNING-0.txt: disk.log: slow"],
    ), done.stderr
