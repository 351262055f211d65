"""The numbers of keys: as a dict gives them that also forgets."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.keys import canonical_key
from flinkpy.operators.columnar import key_index
from flinkpy.operators.columnar.array_memory import Empty
from flinkpy.operators.columnar.hash_table import HashTable
from flinkpy.operators.columnar.key_index import KeyIndex, encoded
from flinkpy.operators.columnar.key_words import KeptWords, words_of
from flinkpy.windowing.slices.held_keys import WindowKeys
from tests.operators.arrays_in_files import in_files

EDGES = [0, 1, -1, 2**22 - 1, 2**22, 2**40, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
TEXTS = [
    "",
    "a",
    "b",
    "\0",
    "\0\0",
    "12345678",
    "123456789",
    "é" * 7,
    "x" * 255,
    "x" * 256,
    "x" * 300 + "y",
]
SHORT = ["0", "1", "0.5", "0.1", "-1.5", "0.0001", "-0.0005", "0.0625", "12.3400", "12345678901.01"]
# by type: values whose numbers may meet those of the other types
COLUMNS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.sampled_from(EDGES) | st.integers(-5, 5)),
    (pa.int32(), st.integers(-5, 5)),
    (pa.uint64(), st.sampled_from([0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1])),
    (pa.bool_(), st.booleans()),
    (
        pa.float64(),
        st.sampled_from(
            [
                0.0,
                -0.0,
                1.0,
                0.5,
                -1.5,
                2.0**53,
                2.0**63,
                -(2.0**63),
                2.0**64,
                math.inf,
                -math.inf,
                math.nan,
                -math.nan,
                1e300,
            ]
        ),
    ),
    (pa.float32(), st.sampled_from([0.0, 1.0, 0.5, math.nan])),
    (
        pa.decimal128(38, 2),
        st.sampled_from(
            [
                Decimal(text)
                for text in (
                    "0",
                    "1.00",
                    "0.50",
                    "0.10",
                    "-1.5",
                    "9223372036854775808",
                    "99999999999999999999.01",
                )
            ]
        ),
    ),
    (pa.decimal128(15, 4), st.sampled_from([Decimal(text) for text in SHORT])),
    (pa.string(), st.sampled_from(TEXTS)),
    (pa.large_string(), st.sampled_from(TEXTS)),
    (pa.binary(), st.sampled_from([text.encode() for text in TEXTS])),
    (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(TEXTS)),
    (
        pa.timestamp("s"),
        st.sampled_from([datetime.datetime(1970, 1, 1), datetime.datetime(9999, 1, 1)]),
    ),
    (pa.date32(), st.sampled_from([datetime.date(1970, 1, 1), datetime.date(9999, 1, 1)])),
    (pa.null(), st.none()),
    (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        st.fixed_dictionaries(
            {"a": st.none() | st.integers(0, 1), "b": st.sampled_from(["", "a"])}
        ),
    ),
]


@st.composite
def steps(
    draw: Any, columns: int, changing: bool, only: tuple[Any, Any] | None = None
) -> list[tuple[pa.RecordBatch, int]]:
    """Batches of key columns, and after each how many of the keys are forgotten, in tenths. With
    ``changing`` the types are others from batch to batch; structs stay structs. ``only`` is the one
    type of all."""
    kinds = [only] * columns if only else [draw(st.sampled_from(COLUMNS)) for _ in range(columns)]
    found: list[tuple[pa.RecordBatch, int]] = []
    for _ in range(draw(st.integers(1, 5))):
        if changing:
            kinds = [draw(st.sampled_from(COLUMNS[:-1])) for _ in range(columns)]
        rows = draw(st.integers(0, 12))
        arrays = [
            pa.array(
                draw(st.lists(st.none() | values, min_size=rows + 1, max_size=rows + 1)), kind
            )[1:]
            for kind, values in kinds
        ]
        names = [f"k{at}" for at in range(columns)]
        found.append((pa.RecordBatch.from_arrays(arrays, names=names), draw(st.integers(0, 10))))
    return found


def plain(value: Any, kind: Any) -> Any:
    """The value as a key of a dict. Moments are counted, as columns do."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return ("struct", *(plain(value[field.name], field.type) for field in kind))
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1) * 10**9
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days * 86_400 * 10**9
    return canonical_key(value)


def keys_of(data: pa.RecordBatch) -> list[Any]:
    columns = [[plain(value, c.type) for value in c.to_pylist()] for c in data.columns]
    return list(zip(*columns)) if len(columns) > 1 else columns[0]


def check(
    batches: list[tuple[pa.RecordBatch, int]], grouped: bool, empty: Empty = np.empty
) -> None:
    index = KeyIndex(batches[0][0].schema.names, empty=empty)
    known: dict[Any, int] = {}
    for data, tenths in batches:
        keys = keys_of(data)
        fresh = [at for at, key in enumerate(keys) if key not in known and key not in keys[:at]]
        if grouped:
            found = index.of(data)
            ids = found.ids[found.codes].tolist() if len(keys) else []
            assert found.firsts.tolist() == [
                at for at, key in enumerate(keys) if key not in keys[:at]
            ]
            assert found.firsts[found.is_new].tolist() == fresh
        else:
            numbered = index.numbers(data)
            ids = numbered.ids.tolist()
            assert numbered.fresh.tolist() == fresh
        for key, number in zip(keys, ids):
            assert known.setdefault(key, number) == number
        assert len(set(known.values())) == len(known) == len(index)
        assert all(number < index.size for number in known.values())
        gone = list(known)[: len(known) * tenths // 10]
        index.forget(np.array([known.pop(key) for key in gone], np.int64))
        assert len(index) == len(known)


@pytest.mark.parametrize("columns", [1, 2, 3])
@given(data=st.data(), grouped=st.booleans(), empty=st.sampled_from([np.empty, in_files().empty]))
@settings(deadline=None, max_examples=40)
def test_an_index_that_forgets_is_a_dict_that_forgets(
    columns: int, data: Any, grouped: bool, empty: Empty
) -> None:
    check(data.draw(steps(columns, changing=False)), grouped, empty)


@pytest.mark.parametrize("only", COLUMNS, ids=lambda kind: str(kind[0]))
@given(data=st.data(), grouped=st.booleans())
@settings(deadline=None, max_examples=40)
def test_keys_of_each_type_are_told_apart_as_a_dict_does(
    only: tuple[Any, Any], data: Any, grouped: bool
) -> None:
    check(data.draw(steps(1, changing=False, only=only)), grouped)


@given(data=st.data(), columns=st.integers(1, 2), grouped=st.booleans())
@settings(deadline=None, max_examples=40)
def test_equal_keys_are_one_key_when_the_types_of_columns_change(
    data: Any, columns: int, grouped: bool
) -> None:
    check(data.draw(steps(columns, changing=True)), grouped)


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 40)), st.integers(0, 10)), max_size=8), st.booleans()
)
@settings(deadline=None)
def test_numbers_are_used_again_and_the_array_of_numbers_stays_as_long_as_the_most_keys_at_once(
    rounds: list[tuple[list[int], int]], small: bool
) -> None:
    index, most = KeyIndex(["k"]), 0
    alive: dict[int, int] = {}
    for keys, tenths in rounds:
        column = np.array(keys, np.int64) + (0 if small else 2**50)
        numbers = index.numbers(pa.RecordBatch.from_arrays([pa.array(column)], names=["k"])).ids
        alive |= dict(zip(keys, numbers.tolist()))
        most = max(most, len(alive))
        assert index.size == most
        gone = list(alive)[: len(alive) * tenths // 10]
        index.forget(np.array([alive.pop(key) for key in gone], np.int64))


def test_keys_of_one_hash_are_told_apart_by_their_words(monkeypatch: pytest.MonkeyPatch) -> None:
    from flinkpy.operators.columnar.key_words import Words

    monkeypatch.setattr(Words, "hashes", lambda words: np.zeros(len(words.sizes), np.int64))
    batch = pa.RecordBatch.from_pydict({"k": [f"text {at % 50}" for at in range(200)]})
    index = KeyIndex(["k"])
    assert index.numbers(batch).ids.tolist() == [at % 50 for at in range(200)]
    index.forget(np.arange(0, 50, 2))
    assert index.numbers(batch.slice(1, 1)).ids.tolist() == [1]
    assert sorted(set(index.numbers(batch).ids.tolist())) == list(range(50))


def test_slots_and_words_of_keys_that_are_gone_do_not_grow_without_end() -> None:
    table, words = HashTable(), KeptWords()
    numbers = np.arange(1000)
    for turn in range(50):
        table.put(numbers + turn * 1000, numbers)
        words.put(numbers, words_of([(pa.array([f"key {turn} {n}" for n in range(1000)]), 1)]))
        table.remove(numbers)
        words.remove(numbers)
    assert len(table) == 0
    assert len(table._table) <= 8192
    assert len(words._flat) <= 16_384


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 30), min_size=1), st.integers(0, 10)), max_size=8)
)
@settings(deadline=None)
def test_windows_give_back_the_keys_of_numbers_and_let_go_those_that_no_slice_holds(
    rounds: list[tuple[list[int], int]],
) -> None:
    keys = WindowKeys(["k"])
    alive: dict[int, int] = {}
    frozen: list[tuple[WindowKeys, dict[int, int]]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flinkpy.windowing.slices.held_keys._FEW", 0)
        for values, tenths in rounds:
            data = pa.RecordBatch.from_pydict({"v": values, "k": [f"k{each}" for each in values]})
            alive |= dict(zip(values, keys.numbers(data).tolist()))
            frozen.append((keys.freeze(), dict(alive)))
            for each in list(alive)[: len(alive) * tenths // 10]:
                del alive[each]
            keys.forget_all_but([np.array([*alive.values()], np.int64)])
            assert len(alive) <= len(keys)
            check_columns(keys, alive)
        for held, numbers in frozen:
            check_columns(held, numbers)


def check_columns(keys: WindowKeys, numbers: dict[int, int]) -> None:
    found = keys.columns(np.array([*numbers.values()], np.int64))[0].to_pylist()
    assert found == [f"k{each}" for each in numbers]


@given(st.data())
@settings(max_examples=40)
def test_finding_gives_the_numbers_that_are_there_and_adds_none(data: st.DataObject) -> None:
    kind, values = data.draw(st.sampled_from(COLUMNS))
    known, asked = (data.draw(st.lists(st.none() | values, max_size=8)) for _ in range(2))
    index = KeyIndex(["k"])
    if known:
        index.numbers(pa.record_batch({"k": pa.array(known, kind)}))
    before = len(index)
    if asked:
        batch = pa.record_batch({"k": pa.array(asked, kind)})
        found = index.find(batch)
        assert len(index) == before
        numbered = index.numbers(batch)
        assert found.tolist() == np.where(numbered.ids < before, numbered.ids, -1).tolist()


@given(st.data())
@settings(deadline=None, max_examples=12)
def test_whole_numbers_that_fit_into_one_are_the_keys_that_they_are_in_other_types(
    data: Any,
) -> None:
    first = pa.record_batch({"k0": [1, 2, -3], "k1": pa.array([0, 1, 0], pa.date32())})
    days = [datetime.date(1970, 1, 1), datetime.date(1970, 1, 2), datetime.date(2100, 1, 1)]
    moments = [datetime.datetime(day.year, day.month, day.day) for day in days]
    halves = [each + datetime.timedelta(hours=12) for each in moments]
    kinds: list[list[tuple[Any, list[Any]]]] = [
        [
            (pa.int64(), [1, 2, -3, 2**40, -(2**63)]),
            (pa.int8(), [1, 2, -3]),
            (pa.float64(), [1.0, 2.0, 2.5, math.nan, None]),
            (pa.decimal128(10, 2), [Decimal(1), Decimal("2.50"), Decimal(-3)]),
            (pa.string(), ["1", "2"]),
        ],
        [(pa.date32(), [*days, None]), (pa.timestamp("s"), [*moments, *halves])],
    ]
    batches = [(first, 0)]
    for _ in range(3):
        rows = data.draw(st.integers(1, 8))
        arrays = []
        for column in kinds:
            kind, values = data.draw(st.sampled_from(column))
            drawn = st.lists(st.sampled_from(values), min_size=rows, max_size=rows)
            arrays.append(pa.array(data.draw(drawn), kind))
        batch = pa.RecordBatch.from_arrays(arrays, names=["k0", "k1"])
        batches.append((batch, data.draw(st.integers(0, 10))))
    check(batches, data.draw(st.booleans()))


@pytest.mark.parametrize("sparse", [16, 0], ids=["as places of an array", "in a hash table"])
@given(rows=st.lists(st.tuples(st.integers(0, 3), st.none() | st.sampled_from("abc")), min_size=1))
@settings(max_examples=30)
def test_codes_of_several_columns_count_keys_as_they_first_come(
    sparse: int, rows: list[tuple[int, str | None]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_index, "_SPARSE", sparse)
        found = encoded([pa.array(column) for column in zip(*rows)])
    distinct = list(dict.fromkeys(rows))
    assert found.codes.tolist() == list(map(distinct.index, rows))
    assert (found.count, found.values()) == (len(distinct), distinct)
    assert found.firsts.tolist() == list(map(rows.index, distinct))
