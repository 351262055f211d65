"""A stream reads what Spark has computed while Spark computes the rest; and what becomes of it
where Spark fails or is stopped."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.core.errors import JobExecutionError
from tests.spark.test_round_trip import environment
from tests.waiting import eventually

pytestmark = [
    pytest.mark.spark,
    pytest.mark.ray,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),
]


def gated(spark: Any, gate: Path, partitions: int = 3) -> Any:
    """The numbers from 0 on, a thousand in each partition; the last partition is not there before
    the gate is."""

    def through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import threading
        from pathlib import Path

        from pyspark import TaskContext

        if TaskContext.get().partitionId() == partitions - 1:
            for _ in range(6000):
                if Path(gate).exists():
                    break
                threading.Event().wait(0.02)
            else:
                raise TimeoutError("nobody opened the gate")
            if Path(gate).read_text():
                raise ValueError("the gate is shut")
        yield from batches

    return spark.range(0, partitions * 1000, 1, partitions).mapInArrow(through, "id bigint")


SHUT = (
    r"the DataFrame could not be handed over: ValueError: the gate is shut; is it right by "
    r"itself, df\.show\(\), and are Spark and Ray still"
)


def kept_by_spark(spark: Any) -> int:
    return len(spark.sparkContext._jsc.getPersistentRDDs())


def test_the_first_records_are_read_before_spark_has_computed_the_last_partition(
    spark: Any, tmp_path: Path
) -> None:
    stream = environment().from_spark(gated(spark, tmp_path / "gate"))
    with closing(stream.execute_and_collect()) as results:
        first = next(results).id
        (tmp_path / "gate").touch()
        assert sorted([first, *(row.id for row in results)]) == list(range(3000))


def test_a_stream_that_runs_while_spark_computes_runs_again_when_all_is_there(
    spark: Any, tmp_path: Path
) -> None:
    stream = environment().from_spark(gated(spark, tmp_path / "gate"))
    with closing(stream.execute_and_collect()) as results:  # is ended early
        assert next(results).id < 2000
    (tmp_path / "gate").touch()
    assert stream.to_arrow().num_rows == 3000
    assert stream.to_arrow().num_rows == 3000


def test_several_frames_of_which_none_is_there_yet_go_into_one_job(
    spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "gate").touch()
    env = environment()
    streams = [
        env.from_spark(gated(spark, tmp_path / "gate", partitions)) for partitions in (1, 2, 3)
    ]
    assert sorted(streams[0].union(*streams[1:]).to_arrow().column("id").to_pylist()) == sorted(
        [*range(1000), *range(2000), *range(3000)]
    )


@pytest.mark.parametrize("executed", ["before", "afterwards"])
def test_a_job_of_a_frame_that_spark_cannot_compute_ends_with_spark_s_reason(
    spark: Any, tmp_path: Path, executed: str
) -> None:
    kept = kept_by_spark(spark)
    env = environment().enable_checkpointing(100)  # restarts by default
    stream = env.from_spark(gated(spark, tmp_path / "gate"))
    if executed == "before":
        with closing(stream.execute_and_collect()) as results:
            assert next(results).id < 2000
            (tmp_path / "gate").write_text("shut")
            with pytest.raises(JobExecutionError, match=SHUT):
                list(results)
    else:
        (tmp_path / "gate").write_text("shut")
        eventually(lambda: kept_by_spark(spark) == kept)  # what there was goes at once
        with pytest.raises(JobExecutionError, match=SHUT):
            stream.to_arrow()


def test_an_error_of_spark_s_own_functions_is_named_too(spark: Any) -> None:
    stream = environment().from_spark(
        spark.range(0, 10, 1, 2).selectExpr(
            "assert_true(id < 9, 'nine is too many') as checked", "id"
        )
    )
    with pytest.raises(JobExecutionError, match=r"could not be handed over: .*nine is too many"):
        stream.to_arrow()


def test_a_frame_without_a_partition_is_an_empty_stream(spark: Any) -> None:
    frame = spark.createDataFrame(spark.sparkContext.emptyRDD(), "id bigint")
    assert frame.rdd.getNumPartitions() == 0
    result = environment().from_spark(frame).to_arrow()
    assert (result.num_rows, result.schema) == (0, pa.schema([("id", pa.int64())]))


def test_two_hundred_partitions_of_one_executor_all_come(spark: Any) -> None:
    result = environment().from_spark(spark.range(0, 2000, 1, 200)).to_arrow()
    assert sorted(result.column("id").to_pylist()) == list(range(2000))


def test_a_frame_with_a_shuffle_and_one_that_spark_has_cached_come(spark: Any) -> None:
    cached = spark.range(0, 1000, 1, 2).cache()
    try:
        grouped = cached.selectExpr("id % 10 as k").groupBy("k").count()
        assert sorted(environment().from_spark(grouped).to_arrow().to_pylist(), key=str) == [
            {"k": k, "count": 100} for k in range(10)
        ]
        assert environment().from_spark(cached).to_arrow().num_rows == 1000
    finally:
        cached.unpersist()


def test_only_the_records_asked_for_are_taken(spark: Any) -> None:
    assert (
        len(environment().from_spark(spark.range(0, 100_000, 1, 4)).execute_and_collect(limit=5))
        == 5
    )


def runs(spark: Any, execute: Callable[[Any], None]) -> None:
    """In a scope of its own, so that nothing of the program is left."""
    execute(environment().from_spark(spark.range(0, 1000, 1, 2)))


def test_spark_keeps_nothing_of_a_frame_whose_stream_the_program_has_let_go_of(spark: Any) -> None:
    gc.collect()
    eventually(lambda: kept_by_spark(spark) == 0)
    runs(spark, lambda stream: stream.to_arrow())
    gc.collect()
    eventually(lambda: kept_by_spark(spark) == 0)
