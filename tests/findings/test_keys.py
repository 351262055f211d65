"""Whole jobs: what one key is, and what aggregates make of None and NaN, however the program is
written and run."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from flinkpy.common import Row
from flinkpy.datastream import (
    DataStream,
    KeyedProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.state import ValueStateDescriptor
from flinkpy.testing import embedded_environment
from tests.values import key_of, shown


def environment(parallelism: int = 1, batch: bool = False) -> StreamExecutionEnvironment:
    env = embedded_environment()
    env.set_parallelism(parallelism)
    if batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return env


def results(stream: DataStream) -> list[Any]:
    with stream.execute_and_collect() as found:
        return list(found)


def add(a: Any, b: Any) -> Any:
    total = a[1] + b[1]
    return a[0], total


REDUCES: dict[str, Callable[[Any, Any], Any]] = {
    "lambda": lambda a, b: (a[0], a[1] + b[1]),
    "with a local variable": add,
    "that takes the record's key": lambda a, b: (b[0], a[1] + b[1]),
}


@pytest.mark.finding("first-use 2")
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("kind", REDUCES)
def test_a_reduce_gives_what_its_function_returned(kind: str, batch: bool) -> None:
    records: list[Any] = [(1, 1), (1.0, 2), (True, 3)]
    found = results(
        environment(batch=batch)
        .from_collection(records)
        .key_by(lambda pair: pair[0])
        .reduce(REDUCES[kind])
    )
    expected: list[Any] = (
        [(1, 1), (1.0, 3), (True, 6)] if kind.endswith("key") else [(1, 1), (1, 3), (1, 6)]
    )
    assert shown(found) == shown(expected[-1:] if batch else expected)


@pytest.mark.finding("first-use 2")
@pytest.mark.parametrize("kind", REDUCES)
def test_it_does_so_among_many_keys_too(kind: str) -> None:
    many: list[Any] = [(number, 1) for number in range(40_000)]
    records = [*many, (7.0, 2), (8, 2), (True, 3), (Decimal(7), 4)]
    found = results(
        environment().from_collection(records).key_by(lambda pair: pair[0]).reduce(REDUCES[kind])
    )[len(many) :]
    expected: list[Any] = (
        [(7.0, 3), (8, 3), (True, 4), (Decimal(7), 7)]
        if kind.endswith("key")
        else [(7, 3), (8, 3), (1, 4), (7, 7)]
    )
    assert shown(found) == shown(expected)


def nan_keys() -> list[Any]:
    """A NaN of its own each, of every kind."""
    return [
        float("nan"),
        np.float64("nan"),
        np.float32("nan"),
        Decimal("nan"),
        -float("nan"),
        float("inf") - float("inf"),
    ]


class Record:
    def __init__(self, k: Any) -> None:
        self.k = k


class Count(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        yield self.count.value()


@pytest.mark.finding("first-use 5")
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_nan_is_one_key(parallelism: int, batch: bool) -> None:
    keys = [*nan_keys(), *[("a", key) for key in nan_keys()]]

    def source() -> DataStream:
        return environment(parallelism, batch).from_collection([Record(key) for key in keys])

    last = 6 if batch else 1
    counted = results(source().key_by(lambda record: record.k).process(Count()))
    assert Counter(counted) == Counter([*range(1, 7), *range(1, 7)])
    reduced = results(
        source()
        .map(lambda record: (record.k, 1))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    assert sorted(count for _, count in reduced) == sorted([*range(last, 7)] * 2)


@pytest.mark.finding("first-use 5")
def test_a_key_by_name_and_one_by_function_are_the_same_key() -> None:
    rows = [Row(k=key, v=1) for key in nan_keys()] + [Row(k=None, v=2), Row(k=None, v=3)]
    for key in ("k", lambda row: row.k):
        found = results(environment(2).from_collection(rows).key_by(key).sum("v"))
        assert sorted(row.v for row in found) == [1, 2, 2, 3, 4, 5, 5, 6]


@pytest.mark.finding("first-use 5")
@pytest.mark.parametrize("key", ["k", lambda row: row.k], ids=["name", "function"])
@pytest.mark.parametrize(
    ("kind", "values", "last"),
    [
        ("sum", [1, None, 2], 3),
        ("sum", [None, None], None),
        ("sum", [None, 4], 4),
        ("min", [3.0, float("nan"), 2.0], 2.0),
        ("min", [float("nan"), 3.0], 3.0),
        ("max", [float("nan"), 3.0], float("nan")),
        ("max", [3.0, float("nan"), 4.0], float("nan")),
        ("min", [None, 5, 4], 4),
        ("max", [0.0, -0.0], 0.0),
        ("max_by", [1, None, 3, 3.0], 3),
        ("min_by", [float("nan"), None, 3], 3),
    ],
)
def test_aggregates_skip_none_and_nan_is_the_greatest(
    key: Any, kind: str, values: list[Any], last: Any
) -> None:
    for batch in (False, True):
        rows = [Row(k="a", v=value) for value in values]
        stream = getattr(environment(batch=batch).from_collection(rows).key_by(key), kind)("v")
        assert shown(results(stream)[-1].v) == shown(last)


class First(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        if self.seen.value() is None:
            self.seen.update(True)
            yield value


@pytest.mark.finding("first-use 5")
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_equal_keys_meet_whatever_their_type_and_zone(backend: str) -> None:
    berlin, utc = ZoneInfo("Europe/Berlin"), datetime.timezone.utc
    twice = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=berlin)
    keys: list[Any] = [
        1,
        1.0,
        True,
        Decimal(1),
        np.int64(1),
        np.float32(1),
        0.0,
        -0.0,
        False,
        None,
        float("nan"),
        Decimal("nan"),
        "1",
        b"1",
        (1, 2.0),
        (True, 2),
        twice,
        twice.replace(fold=1),
        datetime.datetime(2024, 10, 27, 0, 30, tzinfo=utc),
        datetime.datetime(2024, 10, 27, 1, 30, tzinfo=utc),
        datetime.datetime(2024, 10, 27, 0, 30),
    ]
    if backend == "rocksdb":
        pytest.importorskip("rocksdict")
    for parallelism in (1, 4):
        env = environment(parallelism)
        env.configure({"state.backend.type": backend})
        found = results(
            env.from_collection([(key,) for key in keys * 2])
            .key_by(lambda record: record[0])
            .process(First())
        )
        assert len(found) == len({key_of(key) for key in keys})
