"""What went wrong over columns: keys, aggregates, joins, and expressions, each as a program or the heart of one."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.core.errors import ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table.expressions import col, lit


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    return env


@pytest.mark.finding("hunts 1")
def test_keys_of_five_and_more_columns_are_told_apart() -> None:
    names, keys = list("abcdef"), 7_001
    order = random.Random(1)
    columns = [[float(key) for key in order.sample(range(keys), keys)] for _ in names]
    table = pa.table({**dict(zip(names, columns)), "v": [1] * keys})
    env = environment()
    result = env.from_arrow(pa.concat_tables([table, table])).key_by(*names).aggregate(lit(1).count.alias("n")).to_arrow()
    last = {tuple(row[name] for name in names): row["n"] for row in result.to_pylist()}
    assert set(last.values()) == {2}
    assert len(last) == keys


@pytest.mark.finding("hunts 5")
def test_times_of_nanoseconds_are_keys_like_others() -> None:
    at = pa.array([1, 2, 1, 1_000, 2], pa.int64()).cast(pa.time64("ns"))
    table = pa.table({"at": at, "v": [1, 2, 3, 4, 5]})
    running = environment().from_arrow(table).key_by("at").sum("v").to_arrow()
    assert running.column("v").to_pylist() == [1, 2, 4, 4, 7]
    assert environment().from_arrow(table).key_by("at").aggregate(col("v").sum).to_arrow().column("v_sum").to_pylist() == [4, 7, 4]


@pytest.mark.finding("hunts 11")
@pytest.mark.parametrize("column", [
    pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), pa.array([[1, 2]], pa.list_(pa.int64(), 2)), pa.array([[1, 2]]),
    pa.array([{"a": [1]}])], ids=lambda column: str(column.type))
def test_what_cannot_be_a_key_is_refused_where_the_program_is_built(column: Any) -> None:
    with pytest.raises(ProgramError, match=r"the column 'k' is .*, which cannot be a key: make the key of"):
        environment().from_arrow(pa.table({"k": column, "v": [1]})).key_by("k")


@pytest.mark.finding("hunts 11")
@pytest.mark.parametrize("column", [
    pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, b"b" * 16, b"a" * 16], pa.binary(16))),
    pa.array(["1.5", "2.5", "1.5"]).cast(pa.decimal128(3, 1)).cast(pa.decimal32(3, 1)),
    pa.RunEndEncodedArray.from_arrays([1, 2, 3], ["a", "b", "a"])], ids=lambda column: str(column.type))
def test_less_usual_columns_are_keys(column: Any) -> None:
    table = pa.table({"k": column, "v": [1, 2, 4]})
    sums = environment().from_arrow(table).filter(col("v") < 9).key_by("k").aggregate(col("v").sum.alias("v"))
    assert sums.to_arrow().column("v").to_pylist() == [5, 2]
    assert environment().from_arrow(table).filter(col("v") > 1).to_arrow().column("v").to_pylist() == [2, 4]
