"""Numbers of keys that come and go, the rows kept under them, and when they expire: each against a
dict."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.keys import canonical_key
from flinkpy.relational.state.expiry_of_numbers import Expiry
from flinkpy.relational.state.key_numbers import KeyNumbers
from flinkpy.relational.state.numbered_rows import NumberedRows

SCHEMAS = {
    "whole": (pa.schema([("a", pa.int64())]), (st.none() | st.integers(-3, 3),)),
    "sparse": (pa.schema([("a", pa.int64())]), (st.sampled_from([2**40 * n for n in range(6)]),)),
    "text": (pa.schema([("a", pa.string())]), (st.none() | st.sampled_from("abcdef"),)),
    "float": (
        pa.schema([("a", pa.float64())]),
        (st.sampled_from([0.0, -0.0, math.nan, 1.5, -math.inf]),),
    ),
    "several": (
        pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.bool_())]),
        (st.integers(0, 2), st.none() | st.sampled_from("xy"), st.booleans()),
    ),
}


@settings(max_examples=30)
@given(st.data())
def test_keys_have_the_numbers_that_a_dict_would_give_them(data: st.DataObject) -> None:
    schema, columns = SCHEMAS[data.draw(st.sampled_from(sorted(SCHEMAS)))]
    known, model = KeyNumbers(schema), dict[Any, int]()
    for _ in range(data.draw(st.integers(1, 6))):
        rows = data.draw(st.lists(st.tuples(*columns), max_size=12))
        keys = pa.RecordBatch.from_arrays(
            [
                pa.array([row[at] for row in rows], field.type, from_pandas=False)
                for at, field in enumerate(schema)
            ],
            schema=schema,
        )
        before = known.find(keys).tolist()
        assert before == [model.get(canonical_key(row), -1) for row in rows]
        numbers = known.numbers(keys).tolist()
        for row, number in zip(rows, numbers):
            assert model.setdefault(canonical_key(row), number) == number
        assert len(set(model.values())) == len(model) == len(known)
        assert max(model.values(), default=-1) < known.size
        assert known.find(keys).tolist() == numbers
        listed = known.keys_of(np.array(numbers, np.int64)).to_pylist()
        assert [canonical_key(tuple(each.values())) for each in listed] == [
            canonical_key(row) for row in rows
        ]
        gone = data.draw(st.sets(st.sampled_from(sorted(model.values())))) if model else set()
        known.free(np.array(sorted(gone), np.int64))
        model = {key: number for key, number in model.items() if number not in gone}


@settings(max_examples=30)
@given(st.lists(st.tuples(st.dictionaries(st.integers(0, 9), st.text(max_size=2)), st.booleans())))
def test_rows_are_those_that_were_put_last(steps: list[tuple[dict[int, str], bool]]) -> None:
    rows, model = NumberedRows(pa.schema([("a", pa.string())])), dict[int, str]()
    for changed, is_put in steps:
        frozen, before = rows.freeze(), dict(model)
        if is_put:
            rows.put(np.array([*changed], np.int64), pa.record_batch({"a": [*changed.values()]}))
            model.update(changed)
        else:
            rows.remove(np.array([each for each in changed if each in model], np.int64))
            model = {number: text for number, text in model.items() if number not in changed}
        assert len(rows) == len(model)
        assert rows.take(np.array([*model], np.int64)).column(0).to_pylist() == [*model.values()]
        assert frozen.numbers().tolist() == sorted(before)
        listed = frozen.take(np.array([*before], np.int64)).column(0).to_pylist()
        assert listed == [*before.values()]


def test_rows_that_were_replaced_take_no_memory_for_long() -> None:
    rows = NumberedRows(pa.schema([("a", pa.int64())]))
    numbers = np.arange(1000)
    for turn in range(100):
        rows.put(numbers, pa.record_batch({"a": numbers + turn}))
    assert rows.nbytes < 500_000
    assert rows.take(np.array([7])).column(0).to_pylist() == [106]


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.integers(0, 700), st.sets(st.integers(0, 15)), st.integers(0, 20)), max_size=20
    )
)
def test_what_was_not_written_to_expires_once(steps: list[tuple[int, set[int], int]]) -> None:
    expiry, written, now = Expiry(1000), dict[int, int](), 10_000
    for elapsed, touched, share in steps:
        now += elapsed
        expiry.touch(np.array(sorted(touched), np.int64), now)
        written.update(dict.fromkeys(touched, now))
        numbers = np.arange(20)
        assert expiry.is_alive(numbers, now).tolist() == [
            written.get(number, -10_000) > now - 1000 for number in range(20)
        ]
        for number in expiry.expired(now, share).tolist():
            assert written.pop(number) <= now - 1000
    left = [*expiry.expired(now, 100).tolist(), *expiry.expired(now, 100).tolist()]
    assert sorted(left) == sorted(n for n, at in written.items() if at <= now - 1000)


def test_what_is_as_old_as_its_time_is_gone() -> None:
    expiry, both = Expiry(1000), np.arange(2)
    expiry.touch(both, 5000)
    expiry.touch(both[1:], 5500)
    assert expiry.is_alive(both, 5999).tolist() == [True, True]
    assert expiry.is_alive(both, 6000).tolist() == [False, True]
    assert expiry.expired(5999, 10).tolist() == []
    assert expiry.expired(6000, 10).tolist() == [0]


def test_numbers_expire_also_while_more_come_with_each_batch() -> None:
    expiry, gone = Expiry(1000), 0
    for batch in range(100):
        expiry.touch(np.arange(10 * batch, 10 * batch + 10), 100 * batch)
        gone += len(expiry.expired(100 * batch, 40))
    assert 1000 - gone < 150  # those of one second are alive, and some wait for their turn
