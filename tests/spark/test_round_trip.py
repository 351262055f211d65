"""A DataFrame that goes through a stream comes back with every value and every type; what cannot is
refused by its column's name."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flinkpy.common import Types, WatermarkStrategy
from flinkpy.connectors.ray.object_store import Store
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table.expressions import col
from tests.checkpoints.paced import PacedSource
from tests.waiting import eventually

pytestmark = [
    pytest.mark.spark,
    pytest.mark.ray,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),
]

_dates = st.dates(date(1900, 1, 1), date(2200, 1, 1))
_times = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
_int = st.integers(-(2**31), 2**31 - 1)


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    return st.integers(-most, most).map(
        lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale))
    )


# Spark's type, and values of it
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "tinyint": st.integers(-128, 127),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": _int,
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "string": _text,
    "binary": st.binary(max_size=8).map(bytearray),
    "date": _dates,
    "timestamp": _times.map(lambda moment: moment.replace(tzinfo=timezone.utc)),
    "timestamp_ntz": _times,
    "interval day to second": st.timedeltas(timedelta(days=-1000), timedelta(days=1000)),
    "void": st.none(),
    "decimal(5,2)": _decimals(5, 2),
    "decimal(38,18)": _decimals(38, 18),
    "array<int>": st.lists(st.none() | _int, max_size=4),
    "array<array<string>>": st.lists(
        st.none() | st.lists(st.none() | _text, max_size=3), max_size=3
    ),
    "array<struct<n:int not null>>": st.lists(st.tuples(_int), max_size=2),
    "map<string,bigint>": st.dictionaries(_text, st.none() | _int, max_size=3),
    "struct<a:int,b:struct<c:string,d:array<date>>>": st.none()
    | st.tuples(st.none() | _int, st.none() | st.tuples(_text, st.lists(_dates, max_size=2))),
    "array<struct<at:timestamp_ntz,n:decimal(10,3)>>": st.lists(
        st.tuples(_times, _decimals(10, 3)), max_size=2
    ),
}
SCHEMA = "id bigint not null, " + ", ".join(
    f"c{number} {kind}" for number, kind in enumerate(KINDS)
)
records = st.lists(st.tuples(*(st.none() | values for values in KINDS.values())), max_size=25)


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment({"client.progress": False})
    env.set_parallelism(parallelism)
    return env


def there_and_back(spark: Any, frame: Any) -> Any:
    return environment().from_spark(frame).rebalance().to_spark(spark)


def rows(frame: Any) -> list[str]:
    """As text: there NaN equals itself, and -0.0 does not equal 0.0."""
    return sorted(map(repr, frame.collect()))


@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(records=records, partitions=st.integers(1, 5))
def test_every_value_of_every_type_comes_back_nulls_and_empty_partitions_too(
    spark: Any, records: list[tuple[Any, ...]], partitions: int
) -> None:
    frame = spark.createDataFrame(
        [(number, *record) for number, record in enumerate(records)], SCHEMA
    ).repartition(partitions, "id")
    back = there_and_back(spark, frame)
    assert back.schema == frame.schema
    assert rows(back) == rows(frame)


def test_every_type_comes_back_with_its_least_its_greatest_and_nothing(spark: Any) -> None:
    """Always drawn, whatever the luck of the property test."""
    least: tuple[object, ...] = (
        False,
        -128,
        -(2**15),
        -(2**31),
        -(2**63),
        float("-inf"),
        float("nan"),
        "",
        bytearray(),
        date(1900, 1, 1),
        datetime(1900, 1, 1, tzinfo=timezone.utc),
        datetime(1900, 1, 1),
        timedelta(days=-1000),
        None,
        Decimal("-999.99"),
        Decimal("-" + "9" * 20 + "." + "9" * 18),
        [],
        [],
        [],
        {},
        (None, None),
        [],
    )
    greatest = (
        True,
        127,
        2**15 - 1,
        2**31 - 1,
        2**63 - 1,
        float("inf"),
        5e-324,
        "żółw 🐢",
        bytearray(b"\0\xff"),
        date(2200, 1, 1),
        datetime(2199, 12, 31, 23, 59, 59, 999_999, timezone.utc),
        datetime(2199, 12, 31, 23, 59, 59, 999_999),
        timedelta(microseconds=1),
        None,
        Decimal("999.99"),
        Decimal("9" * 20 + "." + "9" * 18),
        [None, 1],
        [None, [None, "x"]],
        [(1,), (-1,)],
        {"a": None, "b": 1},
        (1, ("x", [date(2000, 1, 1)])),
        [(datetime(2000, 1, 1), Decimal("0.001"))],
    )
    frame = spark.createDataFrame([(0, *least), (1, *greatest), (2, *[None] * len(KINDS))], SCHEMA)
    back = there_and_back(spark, frame)
    assert back.schema == frame.schema
    assert rows(back) == rows(frame)


def test_a_frame_without_a_row_comes_back_with_its_columns(spark: Any) -> None:
    frame = spark.createDataFrame([], SCHEMA)
    back = there_and_back(spark, frame)
    assert back.schema == frame.schema
    assert back.count() == 0


def test_a_frame_most_of_whose_partitions_are_empty_comes_back(spark: Any) -> None:
    back = there_and_back(spark, spark.range(0, 100, 1, 10).where("id >= 95"))
    assert sorted(row.id for row in back.collect()) == [95, 96, 97, 98, 99]


def test_moments_stay_the_same_in_a_session_of_another_time_zone(spark: Any) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        # the hour that is skipped
        frame = spark.sql(
            "select timestamp '2024-03-10 01:30:00' as a, timestamp_ntz '2024-03-10 02:30:00' as b"
        )
        back = there_and_back(spark, frame)
        assert back.dtypes == frame.dtypes
        assert (
            back.selectExpr("unix_micros(a)", "b").collect()
            == frame.selectExpr("unix_micros(a)", "b").collect()
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_the_stream_between_computes_and_its_result_can_be_read_again_and_again(spark: Any) -> None:
    frame = (
        environment()
        .from_spark(spark.range(0, 10_000, 1, 3))
        .select((col("id") % 10).alias("k"), col("id"))
        .to_spark(spark)
    )
    assert frame.groupBy("k").count().count() == 10
    assert frame.groupBy().sum("id").collect()[0][0] == 49_995_000


def test_one_stream_goes_to_several_places(spark: Any) -> None:
    stream = environment().from_spark(spark.range(0, 1000, 1, 2))
    assert stream.to_arrow().num_rows == 1000
    assert stream.to_spark(spark).count() == 1000
    assert len(stream.to_pandas()) == 1000


def test_a_sink_of_one_s_own_gives_its_frame_after_the_job_and_not_before(spark: Any) -> None:
    from flinkpy.spark import spark_sink

    env, sink = environment(), spark_sink()
    env.from_spark(spark.range(5)).sink_to(sink)
    with pytest.raises(ProgramError, match=r"run it first, env\.execute"):
        sink.dataframe(spark)
    env.execute()
    assert sink.dataframe(spark).count() == 5


def test_a_job_with_checkpoints_shows_spark_what_each_has_and_each_record_once_after_a_failure(
    spark: Any, tmp_path: Path
) -> None:
    from flinkpy.spark import spark_sink

    def fragile(n: int) -> tuple[int]:
        if n == 205 and not (tmp_path / "failed").exists():
            (tmp_path / "failed").touch()
            raise ValueError("once")
        return (n,)

    env, sink = environment(1).enable_checkpointing(20), spark_sink()
    numbers = env.from_source(
        PacedSource([(n, n) for n in range(400)]), WatermarkStrategy.no_watermarks(), "numbers"
    )
    numbers.map(fragile, Types.ROW_NAMED(["n"], [Types.LONG()])).select("n").sink_to(sink)
    job = env.execute_async("numbers")
    eventually(lambda: bool(Store(sink.keeper).committed_blocks()))
    seen = sink.dataframe(spark).count()
    job.get_job_execution_result().result(120)
    assert (tmp_path / "failed").exists()
    assert 0 < seen <= 400
    assert sorted(row.n for row in sink.dataframe(spark).collect()) == list(range(400))


def test_types_spark_does_not_have_become_ones_that_hold_their_values(spark: Any) -> None:
    table = pa.table(
        {
            "u": pa.array([2**64 - 1], pa.uint64()),
            "t": pa.array([1], pa.timestamp("ms", "Asia/Tokyo")),
            "s": pa.array(["x"]).dictionary_encode(),
            "l": pa.array([[1]], pa.large_list(pa.uint8())),
        }
    )
    back = environment(1).from_arrow(table).to_spark(spark)
    assert back.dtypes == [
        ("u", "decimal(20,0)"),
        ("t", "timestamp"),
        ("s", "string"),
        ("l", "array<smallint>"),
    ]
    assert back.selectExpr("u", "unix_micros(t)", "s", "l").collect()[0] == (
        Decimal(2**64 - 1),
        1000,
        "x",
        [1],
    )


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("select make_interval(1, 2, 3) as odd", "interval"),
        ("select interval '1-2' year to month as odd", "interval year to month"),
        (
            "select named_struct('a', interval '1-2' year to month) as odd",
            "struct<a:interval year to month>",
        ),
        ("select array(make_interval(1, 2, 3)) as odd", "array<interval>"),
    ],
)
def test_a_type_that_cannot_be_handed_over_is_refused_by_the_column_s_name(
    spark: Any, query: str, kind: str
) -> None:
    with pytest.raises(
        ProgramError,
        match=(
            rf"test_round_trip.py:\d+: column 'odd' of the DataFrame is {kind}, which cannot be "
            r"handed over"
        ),
    ):
        environment().from_spark(spark.sql(query))


def test_a_user_defined_type_is_refused_by_the_column_s_name(spark: Any) -> None:
    from pyspark.ml.linalg import Vectors

    with pytest.raises(ProgramError, match="column 'v' of the DataFrame is vector"):
        environment().from_spark(spark.createDataFrame([(Vectors.dense([1.0]),)], ["v"]))
    with pytest.raises(ProgramError, match="column 'nested' of the DataFrame is array<vector>"):
        environment().from_spark(
            spark.createDataFrame([(Vectors.dense([1.0]),)], ["v"]).selectExpr("array(v) as nested")
        )


def test_columns_of_one_name_are_refused(spark: Any) -> None:
    with pytest.raises(ProgramError, match="several columns named 'id'"):
        environment().from_spark(spark.range(1).crossJoin(spark.range(1)))


def test_what_is_no_frame_or_session_is_refused_with_its_call(spark: Any) -> None:
    with pytest.raises(
        ProgramError, match=r"from_spark\(\) takes a Spark DataFrame, this is \[1\]"
    ):
        environment().from_spark([1])
    with pytest.raises(
        ProgramError, match=r"to_spark\(\) takes a Spark SparkSession, this is None"
    ):
        environment().from_collection([1]).to_spark(None)


def test_a_second_session_is_refused(spark: Any) -> None:
    from flinkpy.spark import spark_session

    with pytest.raises(ProgramError, match="there is a Spark session in this program already"):
        spark_session()
