"""Spark in and out of streams."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import Row, Time, Types, WatermarkStrategy
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.table.expressions import col
from tests.cluster.ray_fixture import RayCluster, ray_cluster
from tests.spark_session import NEEDS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.ray,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),
]


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment({"client.progress": False})
    env.set_parallelism(parallelism)
    return env


def there_and_back(spark: Any, frame: Any) -> Any:
    return environment().from_spark(frame).rebalance().to_spark(spark)


@pytest.fixture
def in_new_york(spark: Any) -> Iterator[Any]:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.finding("hunts 14b")
@pytest.mark.parametrize("stamped_by", ["timestamp_column", "strategy"])
def test_window_bounds_of_sparks_instants_are_sparks_instants(
    in_new_york: Any, stamped_by: str
) -> None:
    frame = in_new_york.sql(
        "SELECT timestamp'2024-01-01 00:30:00' AS t, 'a' AS k, 1L AS n UNION ALL SELECT "
        "timestamp'2024-01-01 01:30:00', 'a', 2L"
    )
    if stamped_by == "strategy":
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(col("t"))
        stream = environment().from_spark(frame).assign_timestamps_and_watermarks(strategy)
    else:
        stream = environment().from_spark(frame, timestamp_column="t")
    counted = (
        stream.key_by("k")
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
        .aggregate(col("n").sum)
        .to_spark(in_new_york)
    )
    assert dict(counted.dtypes)["window_start"] == dict(counted.dtypes)["window_end"] == "timestamp"
    joined = counted.join(
        frame.selectExpr("date_trunc('hour', t) AS window_start", "n"), "window_start"
    )
    assert sorted((row.n, row.n_sum) for row in joined.collect()) == [(1, 1), (2, 2)]


@pytest.mark.finding("hunts 16")
def test_a_frame_without_columns_keeps_its_rows(spark: Any) -> None:
    assert there_and_back(spark, spark.range(5).select()).count() == 5


STRUCTS = "s struct<a:int not null, at:timestamp>"
SHAPES: list[tuple[str, list[Any]]] = [
    (STRUCTS, [((1, None),), (None,)]),
    (f"l array<struct<{STRUCTS}>>", [([(None,), ((2, None),), None],), (None,)]),
    (
        f"m map<string, struct<{STRUCTS}>>",
        [({"none": None, "null": (None,), "one": ((3, None),)},), (None,)],
    ),
]


@pytest.mark.finding("hunts 16")
@pytest.mark.parametrize(("schema", "rows"), SHAPES, ids=["struct", "array", "map"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_struct_that_is_null_may_have_fields_that_are_not(
    spark: Any, schema: str, rows: list[Any], zone: str
) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)  # another than the stream's has blocks cast
    try:
        frame = spark.createDataFrame(rows, schema)
        back = there_and_back(spark, frame)
        assert back.schema.jsonValue() == frame.schema.jsonValue()
        assert sorted(back.collect(), key=str) == sorted(frame.collect(), key=str)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.finding("hunts 16")
def test_a_left_join_of_structs_goes_through_a_stream(spark: Any) -> None:
    left, right = spark.range(3).toDF("k"), spark.sql("SELECT 1L AS k, struct(7 AS n) AS s")
    assert sorted(there_and_back(spark, left.join(right, "k", "left")).collect()) == [
        (0, None),
        (1, (7,)),
        (2, None),
    ]


@pytest.mark.finding("hunts 16")
def test_what_is_never_null_comes_back_as_that_at_every_depth(spark: Any) -> None:
    frame = spark.sql(
        "SELECT array(1, 2) AS a, map('a', array(1)) AS m, struct(array(struct(1 AS x)) AS y) "
        "AS s, array(1, NULL) AS n"
    )
    assert there_and_back(spark, frame).schema.jsonValue() == frame.schema.jsonValue()


@pytest.mark.finding("hunts 18")
@pytest.mark.parametrize("swapped", [False, True])
def test_a_frame_that_is_never_null_has_a_union_with_a_typed_collection(
    spark: Any, swapped: bool
) -> None:
    env = environment()
    frame = spark.sql("SELECT 1L AS n, named_struct('x', 2L) AS s, array(3L) AS l")
    assert "False" in repr(frame.schema)  # Spark knows that no value is null
    fields = Types.ROW_NAMED(
        ["n", "s", "l"],
        [Types.LONG(), Types.ROW_NAMED(["x"], [Types.LONG()]), Types.LIST(Types.LONG())],
    )
    collection = env.from_collection(
        [Row(None, Row(None), [None]), Row(4, None, None)], fields
    ).select("n", "s", "l")
    streams = [env.from_spark(frame), collection]
    first, second = reversed(streams) if swapped else streams
    back = first.union(second).to_spark(spark)
    assert "False" not in repr(back.schema)
    assert sorted(back.collect(), key=str) == sorted(
        [(1, (2,), [3]), (None, (None,), [None]), (4, None, None)], key=str
    )


@pytest.mark.finding("hunts 17")
def test_a_call_that_was_refused_leaves_nothing_in_the_program(spark: Any) -> None:
    env = environment()
    wide = env.from_arrow(
        pa.table({"d": pa.array([Decimal(10) ** 50], pa.decimal256(60, 0))})
    ).select(col("d"))
    plain = env.from_sequence(1, 3).map(lambda n: {"n": n})
    before = list(env.program.transformations)
    for _ in range(2):
        with pytest.raises(
            ProgramError,
            match=(
                r"column 'd' is decimal256\(60, 0\), and Spark's decimals have 38 digits: "
                r"cast it"
            ),
        ):
            wide.to_spark(spark)
        with pytest.raises(ProgramError, match="carries Python values"):
            plain.to_spark(spark)
    assert env.program.transformations == before
    assert env.from_spark(spark.range(3)).to_spark(spark).count() == 3
    assert env.program.transformations == before


@pytest.mark.finding("hunts 17")
def test_a_stream_is_run_by_its_own_call_alone(spark: Any, tmp_path: Path) -> None:
    seen = tmp_path / "seen"

    def note(value: int) -> int:
        with seen.open("a") as file:
            file.write(f"{value} ")
        return value

    env = environment()
    other = env.from_collection([1, 2, 3]).map(note)
    assert env.from_spark(spark.range(3)).to_spark(spark).count() == 3
    assert not seen.exists()
    assert sorted(other.take(5)) == [1, 2, 3]
    assert sorted(seen.read_text().split()) == ["1", "2", "3"]


# -- programs after programs -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    pytest.importorskip("raydp", reason=NEEDS)
    from flinkpy.spark.java import use_java

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(use_java()))
        with ray_cluster(tmp_path_factory.mktemp("programs")) as started:
            yield started


PROGRAM = """
import ray, sys, threading
from flinkpy.core.errors import FlinkpyError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.spark import spark_session, stop_spark
env = StreamExecutionEnvironment.get_execution_environment({"client.progress": False})
"""
BESIDE = (
    PROGRAM
    + """
spark = spark_session(executors=1, cores=1, stream_cpus=1)
print("> up", flush=True)
sys.stdin.readline()
print(">", env.from_spark(spark.range(1000)).to_spark(spark).count())
"""
)


def until_up(process: subprocess.Popen[str]) -> None:
    """Spark's Java says something too."""
    assert process.stdout is not None
    assert process.stderr is not None
    assert "> up\n" in iter(process.stdout.readline, ""), process.stderr.read()


def told(said: str) -> list[str]:
    return [line[2:] for line in said.splitlines() if line.startswith("> ")]


def program(cluster: RayCluster, text: str, **environment: str) -> subprocess.Popen[str]:
    path = cluster.folder / f"program-{len(list(cluster.folder.iterdir()))}.py"
    path.write_text(text)
    return subprocess.Popen(
        [sys.executable, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**cluster.environment, **environment},
    )


@pytest.mark.slow
@pytest.mark.finding("hunts 15")
def test_two_programs_have_their_spark_on_one_cluster_at_a_time(cluster: RayCluster) -> None:
    first = program(cluster, BESIDE)
    until_up(first)
    second, _ = program(cluster, BESIDE).communicate("go\n", timeout=120)
    one, _ = first.communicate("go\n", timeout=120)
    assert (told(one), told(second)) == (["1000"], ["up", "1000"])


@pytest.mark.slow
@pytest.mark.finding("hunts 15")
def test_a_second_spark_in_one_namespace_is_refused_with_what_to_do(cluster: RayCluster) -> None:
    begin = f'import ray; ray.init("{cluster.address}", namespace="ours", log_to_driver=False)\n'
    # as Ray asks of those who call it themselves
    first = program(cluster, begin + BESIDE, RAY_AUTH_MODE="token")
    until_up(first)
    _, said = program(cluster, begin + BESIDE, RAY_AUTH_MODE="token").communicate(
        "go\n", timeout=120
    )
    first.communicate("go\n", timeout=120)
    assert (
        "another program's Spark runs in the Ray namespace 'ours', and there can be one in "
        "each: give ray.init() another namespace"
    ) in said


@pytest.mark.slow
@pytest.mark.finding("hunts 18")
def test_after_sparks_own_stop_there_can_be_another_session(cluster: RayCluster) -> None:
    said, errors = program(
        cluster,
        PROGRAM
        + """
for stop in (lambda spark: spark.stop(), lambda spark: stop_spark(), lambda spark: None):
    spark = spark_session(executors=1, cores=1, stream_cpus=1)
    frame = spark.range(10)
    print(">", env.from_spark(frame).to_spark(spark).count(), flush=True)
    stop(spark)
    if spark.sparkContext._jsc is None:
        try:
            env.from_spark(frame)
        except FlinkpyError as error:
            print(error)
""",
    ).communicate(timeout=180)
    assert [line for line in told(said) if line.isdigit()] == ["10", "10", "10"], errors
    assert (
        said.count(
            "this Spark session has been stopped: make a new one with flinkpy.spark.spark_session()"
        )
        == 2
    )
