"""What is handed over as a table holds the last row of each key; who asks for changes gets each of
them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.common import Row, Types, WatermarkStrategy
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import (
    DataStream,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from flinkpy.table.expressions import col, lit
from flinkpy.testing.connectors.paced_source import PacedSource

PAIR = Types.ROW_NAMED(["g", "n"], [Types.STRING(), Types.LONG()])
STREAMING, BATCH = RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH


def environment(
    mode: RuntimeExecutionMode = STREAMING, parallelism: int = 1
) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(mode)
    env.set_parallelism(parallelism)
    return env


def pairs(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([Row(g="ab"[n % 2], n=n) for n in range(6)], PAIR)


def columns(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_arrow(pd.DataFrame({"g": list("ababab"), "n": range(6)}), batch_rows=1)


def totals(stream: DataStream) -> DataStream:
    return stream.key_by("g").aggregate(col("n").sum.alias("n"))


def found(stream: DataStream) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, stream.to_pandas().to_numpy().tolist()))


ROWS = st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.integers(-9, 9)), max_size=30)


@pytest.mark.finding("newcomers 1")
@settings(max_examples=8, deadline=None)
@given(
    ROWS,
    st.sampled_from([1, 7, 1000]),
    st.sampled_from([1, 3]),
    st.sampled_from([STREAMING, BATCH]),
)
@example([("a", 1), ("b", 2), ("a", 3), (None, 4), (None, 5)], 1, 3, STREAMING)
def test_a_frame_is_what_pandas_groups(
    rows: list[Any], size: int, parallelism: int, mode: RuntimeExecutionMode
) -> None:
    frame = pd.DataFrame(rows, columns=["g", "n"]).astype({"g": object, "n": "int64"})
    grouped = frame.groupby("g", dropna=False)["n"]
    wanted = {
        (None if g is None or g != g else g): (total, largest)
        for g, total, largest in zip(grouped.sum().index, grouped.sum(), grouped.max())
    }
    source = (
        environment(mode, parallelism)
        .from_arrow(frame.astype({"g": "string"}), batch_rows=size)
        .key_by("g")
    )
    result = (
        source.aggregate(col("n").sum.alias("total"), col("n").max.alias("largest"))
        .to_arrow()
        .to_pylist()
    )
    assert len(result) == len(wanted)
    assert {row["g"]: (row["total"], row["largest"]) for row in result} == wanted


@pytest.mark.finding("newcomers 1")
def test_every_running_result_is_folded_and_every_change_collected() -> None:
    def rows() -> DataStream:
        return pairs(environment())

    def of_columns() -> DataStream:
        return columns(environment())

    sums = [("a", 6), ("b", 9)]
    assert found(totals(of_columns())) == found(totals(rows())) == sums
    assert found(of_columns().key_by("g").sum("n")) == found(rows().key_by("g").sum("n")) == sums
    assert (
        found(rows().key_by("g").reduce(lambda one, other: Row(g=one.g, n=one.n + other.n))) == sums
    )
    assert (
        found(of_columns().key_by("g").max("n"))
        == found(rows().key_by("g").max("n"))
        == [("a", 4), ("b", 5)]
    )
    assert found(rows().key_by("g").min_by("n")) == [("a", 0), ("b", 1)]
    assert found(of_columns().aggregate(col("n").sum.alias("n"))) == [(15,)]
    assert (
        len(list(of_columns().key_by("g").sum("n").execute_and_collect()))
        == len(rows().key_by("g").sum("n").take(9))
        == 6
    )


@pytest.mark.finding("newcomers 1")
@pytest.mark.parametrize("mode", [STREAMING, BATCH])
def test_what_follows_an_aggregate_sees_its_last_rows_only(mode: RuntimeExecutionMode) -> None:
    """The key may be gone, and a filter may pass an earlier row but not the last one."""

    def updates() -> DataStream:
        return totals(columns(environment(mode, 3)))

    assert found(updates().select((col("n") * 2).alias("twice"))) == [(12,), (18,)]
    assert found(updates().filter(col("n") < 5)) == []
    assert found(
        updates().filter(lambda row: row.n > 6).map(lambda row: Row(g="x", n=row.n), PAIR)
    ) == [("x", 9)]
    assert found(updates().key_by("n")) == [("a", 6), ("b", 9)]
    united = updates()
    assert found(united.union(united.select("g", (-col("n")).alias("n")))) == [
        ("a", -6),
        ("a", 6),
        ("b", -9),
        ("b", 9),
    ]


class Each(ProcessFunction):
    def process_element(self, value: Row, ctx: ProcessFunction.Context) -> Any:
        yield value


class EachOfKey(KeyedProcessFunction):
    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Any:
        yield value


@pytest.mark.parametrize("mode", [STREAMING, BATCH])
def test_the_largest_and_the_smallest_record_of_columns_keep_their_types(
    mode: RuntimeExecutionMode,
) -> None:
    table = pa.table(
        {
            "g": ["a", "b", "a"],
            "n": pa.array([1, 2, 3], pa.int32()),
            "f": pa.array([1.5, 2, None], pa.float32()),
            "d": pa.array([1, 2, 3], pa.decimal128(10, 2)),
            "none": pa.array([None] * 3, pa.int64()),
            "at": pa.array([1, 2, 3], pa.timestamp("ms", "UTC")),
            "u": pa.array([1, 2, 2**64 - 1], pa.uint64()),
        }
    )
    for kind, rows in (("max_by", [2, 1]), ("min_by", [0, 1])):
        stream = getattr(environment(mode).from_arrow(table).key_by("g"), kind)("n")
        assert stream.schema == table.schema
        found = stream.filter(col("u") > 0).to_arrow()
        assert found.sort_by("g") == table.take(rows)


@pytest.mark.finding("newcomers 1")
def test_results_of_a_process_function_are_records_of_their_own() -> None:
    def running() -> DataStream:
        return columns(environment()).key_by("g").sum("n")

    assert len(found(running().process(Each(), PAIR))) == 6
    assert len(found(running().key_by("g").process(EachOfKey(), PAIR))) == 6
    both = totals(columns(environment())).map(lambda row: row, PAIR)
    with pytest.raises(ProgramError, match=r"takes the last result of each key .* takes every one"):
        both.union(both.process(Each(), PAIR)).to_arrow()


@pytest.mark.finding("newcomers 1")
def test_a_cached_stream_of_updates_is_a_table() -> None:
    cached = totals(columns(environment())).cache()
    assert found(cached) == found(cached) == [("a", 6), ("b", 9)]
    assert found(cached.key_by("g").aggregate(lit(1).count.alias("n"))) == [("a", 1), ("b", 1)]


@pytest.mark.finding("newcomers 1")
def test_show_prints_a_table_of_what_ends_and_changes_of_what_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    totals(columns(environment())).show()
    assert capsys.readouterr().out.splitlines() == [
        "+---+---+",
        "| g | n |",
        "+---+---+",
        "| a | 6 |",
        "| b | 9 |",
        "+---+---+",
    ]
    endless = environment().generate(lambda n: Row(g="a", n=n), type_info=PAIR)
    endless.key_by("g").sum("n").show(3)
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "the first 3 records",
        (
            "the input does not end, so these are changes: a row takes the place of the "
            "earlier one of its key"
        ),
    ]


def test_a_table_of_a_stream_that_does_not_end_is_refused() -> None:
    def endless() -> DataStream:
        return environment().generate(lambda n: Row(g="a", n=n), type_info=PAIR)

    with pytest.raises(
        ProgramError, match=r"to_pandas\(\) waits for the end .* does not end: call take\(n\)"
    ):
        endless().to_pandas()
    assert len(endless().limit(3).to_arrow()) == 3


@pytest.mark.parametrize("mode", [STREAMING, BATCH])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_sum_that_leaves_64_bits_on_its_way_is_no_error_in_a_table(
    mode: RuntimeExecutionMode, parallelism: int
) -> None:
    far = (
        environment(mode, parallelism)
        .from_arrow(pd.DataFrame({"g": ["a"] * 3, "n": [2**63 - 1, 1, -5]}), batch_rows=1)
        .key_by("g")
    )
    for running in (far.sum("n"), far.aggregate(col("n").sum.alias("n"))):
        assert found(running) == [("a", 2**63 - 5)]


@pytest.mark.finding("newcomers 1")
@pytest.mark.parametrize("form", ["rows", "columns"])
def test_a_restart_from_a_checkpoint_changes_nothing_in_a_table(form: str, tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        {
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": str(tmp_path),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 3,
            "restart-strategy.fixed-delay.delay": "10 ms",
        }
    )
    env.set_parallelism(2)
    source = PacedSource(
        [(Row(g="abc"[n % 3], n=n), n) for n in range(60)], pace=5, splits=2, fail_behind=30
    )
    records = (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "paced")
        .map(lambda row: row, PAIR)
        .key_by("g")
    )
    running = (
        totals(records)
        if form == "columns"
        else records.reduce(lambda one, other: Row(g=one.g, n=one.n + other.n))
    )
    assert found(running) == [("a", 570), ("b", 590), ("c", 610)]
    assert source.has_failed


@pytest.mark.wide
@pytest.mark.ray
@pytest.mark.finding("newcomers 1")
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:ray", "ignore::UserWarning:ray", "ignore:`use_:DeprecationWarning"
)
def test_a_dataset_of_ray_has_the_last_row_of_each_key(on_ray: None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment({"client.progress": False})
    env.set_parallelism(2)
    rows = (
        totals(env.from_arrow(pd.DataFrame({"g": list("ababab"), "n": range(6)}), batch_rows=1))
        .to_ray_dataset()
        .take_all()
    )
    assert sorted((row["g"], row["n"]) for row in rows) == [("a", 6), ("b", 9)]
