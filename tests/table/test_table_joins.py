"""A stream joined with a table: every form of it against a join of plain Python dicts."""

from __future__ import annotations

import gc
import logging
import threading
from datetime import date, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.common import Row, Types
from flinkpy.connectors.memory.joined_tables import HeldTable, LoadedTable
from flinkpy.connectors.ray.stored_pieces import SMALL_BYTES, handed_over
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.core.program import code
from flinkpy.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from flinkpy.operators.columnar import table_join
from flinkpy.operators.columnar.table_join import JoinTableOperator
from flinkpy.table.expressions import col
from tests.windowing.slice_harness import Alone

Records = list[dict[str, Any]]
NUMBERS = st.none() | st.integers(-2, 2) | st.just(2**53 + 1)
FLOATS = st.none() | st.sampled_from([0.0, -0.0, float("nan"), 1.5])
TEXTS = st.none() | st.sampled_from(["", "a", "b"])
LEFT = pa.schema([("n", pa.int64()), ("f", pa.float64()), ("t", pa.string()), ("x", pa.int32())])
RIGHT = pa.schema(
    [
        ("n", pa.int32()),
        ("f", pa.float64()),
        ("t", pa.large_string()),
        ("x", pa.string()),
        ("m", pa.int64()),
    ]
)


def records(*values: st.SearchStrategy[Any], names: list[str]) -> st.SearchStrategy[Records]:
    return st.lists(st.tuples(*values).map(lambda found: dict(zip(names, found))), max_size=8)


LEFTS = records(NUMBERS, FLOATS, TEXTS, st.integers(0, 9), names=LEFT.names)
RIGHTS = records(st.none() | st.integers(-2, 2), FLOATS, TEXTS, TEXTS, NUMBERS, names=RIGHT.names)


def key_of(record: dict[str, Any], names: list[str]) -> Any:
    """Null equals nothing; all NaNs are one key, and both zeros are."""
    values = [record[name] for name in names]
    return None if None in values else tuple("NaN" if value != value else value for value in values)


def joined(left: Records, right: Records, on: list[str], how: str) -> Records:
    found = []
    for record in left:
        key = key_of(record, on)
        partners = [each for each in right if key is not None and key_of(each, on) == key]
        if not partners and how == "left":
            partners = [dict.fromkeys(RIGHT.names)]
        for partner in partners:
            rest = {name: value for name, value in partner.items() if name not in on}
            found.append(
                {
                    **record,
                    **{
                        f"{name}_right" if name in record else name: value
                        for name, value in rest.items()
                    },
                }
            )
    return found


@settings(max_examples=80, deadline=None)
@given(
    LEFTS,
    RIGHTS,
    st.sampled_from([["n"], ["f"], ["t"], ["n", "f"], ["t", "n", "f"]]),
    st.sampled_from(["inner", "left"]),
    st.sampled_from([1, 3, 8]),
)
@example([], [], ["n"], "left", 1)
@example(
    [{"n": 2**53 + 1, "f": None, "t": None, "x": 1}],
    [{"n": 1, "f": None, "t": None, "x": None, "m": 1}],
    ["n"],
    "left",
    1,
)
def test_a_join_with_a_table_is_that_of_plain_dicts(
    left: Records, right: Records, on: list[str], how: str, size: int
) -> None:
    operator = JoinTableOperator(
        HeldTable(pa.Table.from_pylist(right, RIGHT)), (on, on), keeps_all=how == "left"
    )
    schema = operator.output_schema(LEFT)
    subtask = Alone(operator)
    for at in range(0, len(left), size):
        subtask.push(ColumnBatch(pa.RecordBatch.from_pylist(left[at : at + size], schema=LEFT)))
    found = [row for batch in subtask.out.batches for row in batch.data.to_pylist()]  # type: ignore[union-attr]
    assert str(found) == str(joined(left, right, on, how))
    assert all(batch.data.schema == schema for batch in subtask.out.batches)  # type: ignore[union-attr]


def environment(parallelism: int = 1) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    return env


SALES = [Row(shop="north", amount=3), Row(shop=None, amount=4), Row(shop="west", amount=5)]
TYPE = Types.ROW_NAMED(["shop", "amount"], [Types.STRING(), Types.LONG()])
SHOPS: Records = [
    {"shop": "north", "city": "Oslo"},
    {"shop": "north", "city": "Bergen"},
    {"shop": None, "city": "Rome"},
]
FOUND = [("north", 3, "Bergen"), ("north", 3, "Oslo")]


def tuples(stream: DataStream) -> list[Any]:
    return sorted(
        (row["shop"], row["amount"], row["city"]) for row in stream.to_arrow().to_pylist()
    )


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_rows_and_columns_are_joined_with_every_kind_of_table(mode: RuntimeExecutionMode) -> None:
    env = environment(2)
    env.set_runtime_mode(mode)
    frame, table = pd.DataFrame(SHOPS), pa.Table.from_pylist(SHOPS)
    assert tuples(env.from_collection(SALES, TYPE).join_table(frame, on="shop")) == FOUND
    columns = env.from_arrow(pa.Table.from_pylist([row.as_dict() for row in SALES]))
    for data in (
        table,
        pl.DataFrame(SHOPS),
        SHOPS,
        [Row(**each) for each in SHOPS],
        env.from_arrow(table),
        lambda: SHOPS,
    ):
        assert tuples(columns.join_table(data, on="shop")) == FOUND
    renamed = table.rename_columns(["name", "city"])
    assert (
        tuples(columns.key_by("amount").join_table(renamed, on={"shop": "name"}).drop("name"))
        == FOUND
    )
    assert columns.join_table(table, on="shop", how="left").filter(col("city").is_null).count() == 2


def test_updates_are_joined_like_their_last_rows() -> None:
    env = environment()
    stream = env.from_arrow(
        pa.table({"shop": ["north", "west", "north"], "amount": [1, 2, 3]}), batch_rows=1
    )
    totals = stream.key_by("shop").aggregate(col("amount").sum.alias("amount"))
    assert tuples(totals.join_table(SHOPS[:1], on="shop")) == [("north", 4, "Oslo")]


def test_a_large_result_goes_out_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_join, "ROWS_AT_ONCE", 7)
    operator = JoinTableOperator(
        HeldTable(pa.table({"k": [1] * 10})), (["k"], ["k"]), keeps_all=False
    )
    subtask = Alone(operator)
    subtask.push(ColumnBatch(pa.RecordBatch.from_pydict({"k": [1, 1]})))
    assert [len(batch) for batch in subtask.out.batches] == [7, 7, 6]


def test_a_table_travels_beside_the_code() -> None:
    table = pa.table({"k": list(range(100_000))})
    beside: list[code.OutOfBand] = []
    sent = code.dumps(HeldTable(table), out_of_band=beside)
    assert (len(sent) < 2000, len(beside)) == (True, 1)
    assert (
        code.loads(sent, beside).load().column(0).chunk(0).buffers()[1].address
        == table.column(0).chunk(0).buffers()[1].address
    )


@pytest.mark.parametrize("rows", [2, 0])
def test_a_small_table_travels_with_a_job_on_ray(rows: int) -> None:
    table = pa.table({"k": pa.array(range(rows), pa.int64())})
    beside: list[code.OutOfBand] = []
    sent = code.dumps(HeldTable(table), out_of_band=beside)
    taken = [code.loads(code.dumps(handed_over(data, outlives_program=True))) for data in beside]
    assert code.loads(sent, taken).load().equals(table)


@pytest.mark.wide
@pytest.mark.ray
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:ray", "ignore::UserWarning:ray", "ignore:`use_:DeprecationWarning"
)
def test_a_large_table_lies_in_rays_store(on_ray: None) -> None:
    table = pa.table({"n": range(300_000), "city": ["Oslo"] * 300_000})
    assert table.nbytes > SMALL_BYTES
    env = StreamExecutionEnvironment.get_execution_environment({"client.progress": False})
    env.set_parallelism(2)
    stream = env.from_arrow(pa.table({"n": [7, 299_999, 300_000]})).join_table(table, on="n")
    del table
    gc.collect()
    assert sorted(row["n"] for row in stream.to_arrow().to_pylist()) == [7, 299_999]


class Loads:
    """A function that returns what the test says, or raises it."""

    def __init__(self) -> None:
        # while the program is built, and before the first record
        self.tables: list[Any] = [[{"k": 1, "v": "first"}]] * 2

    def __call__(self) -> Any:
        table = self.tables.pop(0)
        if isinstance(table, Exception):
            raise table
        return table


def test_a_table_is_loaded_again_and_stays_if_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    loads = Loads()
    subtask = Alone(JoinTableOperator(LoadedTable(loads, 60.0), (["k"], ["k"]), keeps_all=False))
    loads.tables += [
        [{"k": 1, "v": "second"}],
        ValueError("the server is away"),
        [{"other": 1}],
        [{"v": "fifth", "k": 1}],
    ]

    def joined_now() -> list[Any]:
        before = len(subtask.out.batches)
        subtask.push(ColumnBatch(pa.RecordBatch.from_pydict({"k": [1]})))
        return [
            value
            for batch in subtask.out.batches[before:]
            for value in batch.data.column("v").to_pylist()  # type: ignore[union-attr]
        ]

    def a_minute_later() -> None:
        threads = set(threading.enumerate())
        subtask.timers.advance(60.0)
        for thread in set(threading.enumerate()) - threads:
            thread.join()

    assert joined_now() == ["first"]
    a_minute_later()
    assert joined_now() == ["second"]
    with caplog.at_level(logging.WARNING):
        a_minute_later()
        a_minute_later()
    assert joined_now() == ["second"]
    assert [
        "the server is away" in text or "other columns than before" in text
        for text in caplog.messages
    ] == [True, True]
    a_minute_later()
    assert joined_now() == ["fifth"]
    subtask.operator.close()
    subtask.timers.advance(60.0)
    assert loads.tables == []


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ([1], ["one"], "column 'v' was int64 and is string"),
        (["1"], [1], "column 'v' was string and is int64"),
        ([1], [True], "column 'v' was int64 and is bool"),
        ([[1]], [["1"]], "column 'v' was list<.*int64> and is list<.*string>"),
        ([Row(a=1)], [Row(a="1")], "column 'v' was struct<a: int64> and is struct<a: string>"),
        ([date(2024, 1, 1)], [datetime(2024, 1, 1)], r"column 'v' was date32\[day\] and is timest"),
        ([1], [1.5], "column 'v': .*1.5"),
        ([1], [None], None),
        ([1], [2.0], None),
        ([1.5], [2], None),
        ([[1, None]], [[2.0]], None),
    ],
)
def test_a_table_that_is_loaded_again_has_columns_of_the_types_of_before(
    before: list[Any], after: list[Any], message: str | None
) -> None:
    loads = [[{"k": 1, "v": value} for value in values] for values in (before, after)]
    table = LoadedTable(lambda: loads.pop(0), None)
    if message is None:
        assert table.load().column("v").to_pylist() == after
    else:
        with pytest.raises(ProgramError, match=f"other columns than before: {message}"):
            table.load()


def test_the_records_of_a_table_have_the_same_fields() -> None:
    with pytest.raises(ProgramError, match=r"a record has no field 'v', which the first record"):
        HeldTable([{"k": 1, "v": 2}, {"k": 3}])
    with pytest.raises(ProgramError, match=r"a record has a field 'w' that the first record"):
        HeldTable([Row(k=1), Row(k=1, w=3)])
    held = HeldTable([{"k": 1, "v": 2}, {"v": None, "k": 3}])
    assert held.load().to_pylist() == [{"k": 1, "v": 2}, {"k": 3, "v": None}]


def test_a_function_that_fails_in_a_subtask_fails_the_job() -> None:
    def load() -> Any:
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("no table today")
        return SHOPS

    with pytest.raises(JobExecutionError, match="no table today"):
        environment().from_collection(SALES, TYPE).join_table(load, on="shop").to_arrow()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            {"table": 5, "on": "shop"},
            r"join_table\(\) takes a frame of pandas or Polars.*this is a int",
        ),
        ({"table": [], "on": "shop"}, "a list has one or more dicts"),
        ({"table": SHOPS, "on": "town"}, "town"),
        ({"table": SHOPS, "on": []}, "on is the name of a column of both sides"),
        (
            {"table": SHOPS, "on": {"amount": "shop"}},
            "the key 'amount' is int64 and the key 'shop' is string; cast one",
        ),
        ({"table": SHOPS, "on": "shop", "how": "outer"}, 'how is "inner" or "left"'),
        (
            {"table": SHOPS, "on": "shop", "reload_interval": timedelta(minutes=1)},
            "is for a function that loads the table",
        ),
        *[
            ({"table": lambda: SHOPS, "on": "shop", "reload_interval": wrong}, told)
            for wrong, told in [
                (0, "reload_interval is in milliseconds from 1 on, this is 0"),
                (timedelta(seconds=-5), "reload_interval is in milliseconds from 1 on"),
                (1.5, "reload_interval is a Duration, a timedelta or a whole number of millis"),
                ("1 min", "reload_interval is a Duration"),
                (True, "reload_interval is a Duration"),
                (10**20, "reload_interval is a Duration"),
            ]
        ],
        (
            {"table": pa.table([[1], [2]], names=["shop", "shop"]), "on": "shop"},
            "two columns of the table are called 'shop'",
        ),
    ],
)
def test_mistakes_are_told_while_the_program_is_built(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ProgramError, match=told):
        environment().from_collection(SALES, TYPE).join_table(**arguments)


@pytest.mark.parametrize(
    ("one", "other"),
    [(pa.uint8(), pa.uint64()), (pa.uint64(), pa.uint32()), (pa.uint8(), pa.int64())],
)
def test_keys_may_differ_in_the_width_of_their_integers(
    one: pa.DataType, other: pa.DataType
) -> None:
    table = pa.table({"k": pa.array([1, None], other), "name": ["tea", "none"]})
    joined = (
        environment()
        .from_arrow(pa.table({"k": pa.array([1, 2, None], one)}))
        .join_table(table, "k", how="left")
    )
    assert joined.to_arrow()["name"].to_pylist() == ["tea", None, None]
