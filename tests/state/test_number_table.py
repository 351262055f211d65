"""A table of numbers is a dict from int to int or to float, under any sequence of batches."""

from __future__ import annotations

import doctest
import itertools
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flinkpy.core.clock import Turns
from flinkpy.core.keys import key_group
from flinkpy.state.heap import number_table
from flinkpy.state.heap.batch_view import ABSENT
from flinkpy.state.heap.number_table import NumberTable

LEAST, MOST = -(1 << 63), (1 << 63) - 1
FIRST_MARK = NumberTable(int)._mark
KEYS = st.one_of(
    st.integers(-20, 20),
    st.integers(LEAST, MOST),
    st.sampled_from([LEAST, MOST, 0, -1, FIRST_MARK]),
    st.integers(0, 60).map(lambda n: n << 50),
)
NUMBERS = {int: st.integers(LEAST, MOST), float: st.floats()}
WORD = 1 << 64
UNSPREAD = pow(number_table._SPREAD, -1, WORD)  # its multiples all hash to the first place


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NumberTable, "smallest", 4)
    monkeypatch.setattr(number_table, "_CHUNK", 1 << 11)


def bits(kind: type, number: Any) -> bytes:
    """Two numbers are the same if all their bits are: also not-a-numbers, and zeros of either
    sign."""
    return struct.pack("<q" if kind is int else "<d", number)


def steps(kind: type) -> st.SearchStrategy[list[Any]]:
    pairs = st.lists(st.tuples(KEYS, NUMBERS[kind]), max_size=60)
    return st.lists(st.tuples(st.sampled_from(["store", "view", "put"]), pairs), max_size=12)


def apply(
    table: NumberTable, model: dict[int, Any], call: str, pairs: list[tuple[int, Any]]
) -> None:
    if call == "store":
        table.store(dict(pairs))
    elif call == "put":
        for key, number in pairs:
            table.put(key, number)
    else:
        view = table.view_batch([key for key, _ in pairs])
        for (key, number), place in zip(pairs, view.places):
            held = view.states[place]
            assert (held is ABSENT) == (key not in model)
            if key in model:
                assert (type(held), bits(table.kind, held)) == (
                    table.kind,
                    bits(table.kind, model[key]),
                )
            view.states[place] = model[key] = number
        table.commit(view)
    model.update(pairs)


@pytest.mark.parametrize("few", [0, 32])
@pytest.mark.parametrize("kind", [int, float])
@given(data=st.data())
def test_it_is_a_dict(kind: type, few: int, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NumberTable, "few", few)
        table, model = NumberTable(kind), dict[int, Any]()
        for call, pairs in data.draw(steps(kind)):
            apply(table, model, call, pairs)
            assert len(table) == len(model)
        found = list(table.items())
        assert {type(each) for pair in found for each in pair} <= {int, kind}
        assert sorted((key, bits(kind, number)) for key, number in found) == sorted(
            (key, bits(kind, number)) for key, number in model.items()
        )
        assert all(
            bits(kind, table.get(key)) == bits(kind, number) for key, number in model.items()
        )
        assert table.get(12345) is ABSENT or 12345 in model


@given(
    keys=st.sets(KEYS, max_size=80),
    max_parallelism=st.sampled_from([1, 7, 128, 1 << 15]),
    key_at=st.sampled_from([0, 1]),
)
@example(keys=set(), max_parallelism=128, key_at=0)
def test_its_entries_by_group_are_in_the_group_of_their_key(
    keys: set[int], max_parallelism: int, key_at: int
) -> None:
    table = NumberTable(int)
    table.store(dict.fromkeys(keys, 5))
    by_group = table.freeze().by_group(max_parallelism, key_at, Turns())
    found = {group: by_group.entries(group, Turns()) for group in by_group.groups}
    assert all(
        key_group(key, max_parallelism) == group and pairs
        for group, pairs in found.items()
        for key, _ in pairs
    )
    assert sorted(itertools.chain.from_iterable(found.values())) == sorted(
        (key, (5, key) if key_at else (key, 5)) for key in keys
    )
    assert max_parallelism > 128 or all(
        by_group.entries(group, Turns()) == [] for group in set(range(max_parallelism)) - set(found)
    )


def colliding(count: int) -> Iterator[int]:
    for number in range(count):
        word = number * UNSPREAD % WORD
        yield word - WORD if word >= 1 << 63 else word


@pytest.mark.parametrize("at_once", [1, 50, 3000])
def test_keys_that_all_hash_to_one_place_are_spread_in_another_way(at_once: int) -> None:
    table, keys = NumberTable(int), list(colliding(3000 if at_once > 1 else 700))
    for start in range(0, len(keys), at_once):
        table.store(dict.fromkeys(keys[start : start + at_once], start))
    assert table._mixed
    assert dict(table.items()) == {key: at // at_once * at_once for at, key in enumerate(keys)}
    table.store(dict.fromkeys(range(5000), -1))  # it grows on
    assert len(table) == len({*keys, *range(5000)})
    assert [table.get(key) for key in (keys[-1], 17)] == [(len(keys) - 1) // at_once * at_once, -1]


@pytest.mark.parametrize("kind", [int, float])
def test_it_grows_by_doubling_and_is_never_fuller_than_its_load(kind: type) -> None:
    table, sizes = NumberTable(kind), []
    for key in range(3000):
        table.store({key * 7919: kind(key)})
        sizes.append(table.nbytes)
        assert len(table) <= table.nbytes / 16 * 0.6 + 1e-9
    assert {later / before for before, later in itertools.pairwise(sizes)} == {1.0, 2.0}
    assert dict(table.items()) == {key * 7919: kind(key) for key in range(3000)}


@pytest.mark.parametrize("step", [1, 7919, 1 << 40, 1_000_000_007 << 13])
def test_a_table_of_several_parts_grows_in_place(step: int) -> None:
    table, model = NumberTable(int), dict[int, int]()
    for start in range(0, 20_000, 250):
        entries = {
            (number * number + 31 * number) * step % (1 << 62) - (1 << 61): number
            for number in range(start, start + 250)
        }
        table.store(entries)
        model.update(entries)
        if start % 2_000 == 0:
            assert dict(table.items()) == model
    assert dict(table.items()) == model
    assert all(table.get(key) == number for key, number in model.items())
    assert len(table) == len(model)


@pytest.mark.parametrize(
    "entries", [{1: 1, 1 << 63: 2}, {1: 1, 2: 1 << 63}, {1: 1, 2: -(1 << 63) - 1}]
)
def test_what_does_not_fit_is_refused_and_nothing_done(entries: dict[int, int]) -> None:
    table = NumberTable(int)
    table.store({1: 5})
    with pytest.raises(OverflowError):
        table.store(entries)
    with pytest.raises(OverflowError):
        table.put(*list(entries.items())[1])
    assert dict(table.items()) == {1: 5}


def test_a_key_that_is_the_mark_of_free_places_is_an_ordinary_key() -> None:
    table = NumberTable(int)
    for _ in range(5):
        mark = table._mark
        assert table.get(mark) is ABSENT
        assert table._mark != mark
        table.store({table._mark: 3, mark: 4})
    assert len(table) == 10
    assert sorted(number for _, number in table.items()) == [3] * 5 + [4] * 5


def test_the_example_runs() -> None:
    assert doctest.testmod(number_table).failed == 0
