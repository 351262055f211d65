from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.errors import ProgramError, ResourceUnavailableError
from flinkpy.operators.batch import sorted_records, sorting
from flinkpy.operators.batch.sorted_records import SortedRecords, rank_of
from flinkpy.operators.batch.sorting import NO_TIME, KeyGroups
from tests.open_files import open_spill_files

KEYS = st.one_of(
    st.integers(-3, 3), st.sampled_from(["a", "b", 1.0, True, None, (1, "x"), (1.0, "x")])
)
BATCHES = st.lists(st.lists(st.tuples(KEYS, st.integers(0, 5)), max_size=12), max_size=8)
MEMORY = st.sampled_from([0, 500, 1 << 20])


def everything(groups: KeyGroups) -> list[tuple[Any, list[Any]]]:
    found = []
    for key, chunks in groups.groups():
        groups.spill()  # has nothing left
        found.append((key, [item for chunk in chunks for item in chunk]))
    groups.close()
    return found


@given(BATCHES, MEMORY)
def test_each_key_comes_once_with_its_records_in_order_of_arrival(
    batches: list[list[tuple[Any, int]]], memory: int
) -> None:
    groups = KeyGroups(memory)
    expected: dict[Any, list[Any]] = {}
    number = 0
    for batch in batches:
        values = list(range(number, number + len(batch)))
        number += len(batch)
        groups.add([key for key, _ in batch], values)
        if number % 3 == 0:  # the process is short of memory
            groups.spill()
        for (key, _), value in zip(batch, values):
            expected.setdefault(key, []).append(value)
    found = everything(groups)
    assert dict(found) == expected
    assert len(found) == len(expected)


@given(BATCHES, MEMORY, st.booleans())
def test_records_of_a_key_are_in_order_of_time_then_tag_then_arrival(
    batches: list[list[tuple[Any, int]]], memory: int, untimed_first: bool
) -> None:
    groups = KeyGroups(memory)
    expected: dict[Any, list[tuple[int, int, int]]] = {}
    for number, batch in enumerate(batches):
        values, tag = [number] * len(batch), number % 2
        untimed = untimed_first and number == 0
        groups.add(
            [key for key, _ in batch],
            values,
            None if untimed else [stamp for _, stamp in batch],
            0 if untimed else tag,
        )
        for key, stamp in batch:
            expected.setdefault(key, []).append(
                (NO_TIME if untimed else stamp, 0 if untimed else tag, number)
            )
    if groups.full:
        assert dict(everything(groups)) == {
            key: sorted(items, key=lambda item: item[:2]) for key, items in expected.items()
        }


def test_one_key_with_more_records_than_fit_is_merged_in_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sorting, "CHUNK", 10)
    groups = KeyGroups(5000)
    for number in range(50):
        groups.add(["k"] * 20, list(range(20)), [(7 * number + step) % 31 for step in range(20)])
    assert len(groups.runs) > 5
    [(key, chunks)] = [(key, list(chunks)) for key, chunks in groups.groups()]
    assert key == "k"
    assert max(map(len, chunks)) == 10
    stamps = [item[0] for chunk in chunks for item in chunk]
    assert stamps == sorted(stamps)
    assert len(stamps) == 1000


def test_keys_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "stable_hash", lambda key: 7)
    groups = KeyGroups(0)
    for number in range(4):
        groups.add("abca", [number] * 4)
    assert dict(everything(groups)) == {
        "a": [0, 0, 1, 1, 2, 2, 3, 3],
        "b": [0, 1, 2, 3],
        "c": [0, 1, 2, 3],
    }


def test_what_was_spilled_goes_with_its_owner(tmp_path: Path) -> None:
    groups = KeyGroups(0, [str(tmp_path)])
    groups.add("ab", [1, 2])
    assert list(tmp_path.iterdir()) == []
    groups.close()
    groups.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_an_error_that_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(ResourceUnavailableError, match=r"io\.tmp\.dirs"):
        KeyGroups(0, [str(tmp_path / "missing")]).add("a", [1])


def test_records_that_do_not_pickle_are_the_programs_mistake() -> None:
    with pytest.raises(ProgramError, match="cannot be spilled"):
        KeyGroups(0).add("a", [(number for number in range(3))])


@given(
    st.lists(st.lists(st.none() | st.floats(), max_size=30), max_size=30),
    st.booleans(),
    st.sampled_from([0, 2_000, 1 << 20]),
)
@settings(max_examples=30)
def test_records_are_in_the_order_of_their_key_and_equal_ones_in_their_own(
    batches: list[list[Any]], descending: bool, memory: int
) -> None:
    found = SortedRecords(lambda pair: pair[0], descending=descending, memory=memory)
    given_records: list[Any] = []
    for batch in batches:
        records = [(key, len(given_records) + at) for at, key in enumerate(batch)]
        found.add(records)
        given_records += records
    wanted = sorted(given_records, key=lambda pair: rank_of(pair[0]), reverse=descending)
    assert [at for _, at in found.records()] == [at for _, at in wanted]
    found.close()


def test_more_runs_of_records_than_can_be_merged_at_once_are_merged_in_steps() -> None:
    before = open_spill_files()
    found = SortedRecords(lambda number: number % 7, descending=False, memory=0)
    for number in range(5_000):
        found.add([number])
    assert list(found.records()) == sorted(range(5_000), key=lambda number: number % 7)
    assert found.spilled
    found.close()
    assert open_spill_files() == before


def test_the_documentation_holds() -> None:
    assert doctest.testmod(sorting).failed == 0
    assert doctest.testmod(sorted_records).failed == 0


class _Held:
    """Records that are in memory now: made, and not freed."""

    count = 0

    def __init__(self) -> None:
        _Held.count += 1

    def __del__(self) -> None:
        _Held.count -= 1

    def __reduce__(self) -> Any:
        return _Held, ()


def test_what_was_just_written_is_not_held_while_runs_are_merged() -> None:
    at_merges: list[int] = []

    class Watched(SortedRecords):
        def _merged(self, runs: Any) -> Any:
            at_merges.append(_Held.count)
            return super()._merged(runs)

    found = Watched(lambda record: 0, descending=False, memory=20_000)
    number = 0
    while not at_merges:
        found.add([_Held()])
        number += 1
    assert number > 20 * sorted_records.RUNS_AT_ONCE
    assert at_merges == [1]  # the last one, of whoever adds it
    assert sum(1 for _ in found.records()) == number
    found.close()
