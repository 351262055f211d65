"""The rules of a freeze without a copy, one by one. ``test_heap_layers`` has them in any order."""

from __future__ import annotations

import doctest
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import ManualClock, Turns
from flinkpy.core.errors import ProgramError
from flinkpy.state.descriptors import AggregatingStateDescriptor
from flinkpy.state.heap import frozen_numbers
from flinkpy.state.heap.frozen_numbers import Freezing
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend
from flinkpy.state.heap.number_table import NumberTable
from flinkpy.state.layers import layers, overlay
from flinkpy.state.layers.layers import Layers
from flinkpy.state.layers.overlay import Overlay, View

EVER = 100  # batches; more than any of these tests needs until all is settled


class Kept:
    """Layers over a dict, and what was done to them."""

    def __init__(self, copy: Any = None, **entries: Any) -> None:
        self.base: dict[Any, Any] = {**entries}
        self.rebound, self.copied = list[Any](), list[Any]()

        def counted(value: Any) -> Any:
            self.copied.append(value)
            return copy(value)

        self.layers = Layers(
            "kept", self.base, self.rebound.append, None if copy is None else counted, 0
        )

    @property
    def entries(self) -> dict[Any, Any]:
        return self.layers.entries

    def settle(self) -> None:
        for _ in range(EVER):
            self.layers.after_batch()


def test_a_freeze_copies_nothing_and_one_entry_is_copied_at_its_first_touch() -> None:
    kept = Kept(list.copy, a=[1], b=[2])
    frozen = kept.layers.freeze()
    assert kept.copied == []
    for _ in range(2):
        kept.entries.get("a").append(3)  # type: ignore[union-attr]
    assert (dict(frozen), kept.entries["a"], kept.copied) == (
        {"a": [1], "b": [2]},
        [1, 3, 3],
        [[1]],
    )


def test_when_nobody_has_what_was_frozen_the_dict_itself_is_the_state_again() -> None:
    kept = Kept(a=1, b=2, c=3)
    frozen = kept.layers.freeze()
    kept.entries["a"], kept.entries["d"] = 5, 4
    del kept.entries["b"]
    kept.settle()
    assert kept.base == {"a": 1, "b": 2, "c": 3}
    del frozen
    kept.settle()
    assert kept.entries is kept.base is kept.rebound[-1]
    assert kept.base == {"a": 5, "c": 3, "d": 4}
    assert kept.layers.is_settled


def test_values_of_known_keys_move_while_the_view_that_includes_them_is_needed() -> None:
    kept = Kept(a=1)
    first = kept.layers.freeze()
    kept.entries["a"], kept.entries["b"] = 2, 3
    second = kept.layers.freeze()
    kept.entries["a"] = 4
    kept.settle()
    # the first one needs the base as it was
    assert (kept.base, dict(first), dict(second)) == ({"a": 1}, {"a": 1}, {"a": 2, "b": 3})
    del first
    kept.settle()
    assert (kept.base, dict(second), kept.entries.copy()) == (
        {"a": 2},
        {"a": 2, "b": 3},
        {"a": 4, "b": 3},
    )


def test_further_freezes_at_the_same_time_copy_nothing_until_they_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Layers, "most", 3)
    kept, frozen = Kept(a=1), []
    for number in range(2, 6):
        frozen.append(kept.layers.freeze())
        kept.entries["a"], kept.entries[f"new {number}"] = number, number
    assert [type(each) for each in frozen] == [View, View, View, dict]
    wanted: dict[str, int] = {"a": 1}
    for number, each in enumerate(frozen, 1):
        wanted["a"] = number
        assert list(each.items()) == list(wanted.items())
        wanted[f"new {number + 1}"] = number + 1
    assert list(kept.entries.items()) == [
        ("a", 5),
        ("new 2", 2),
        ("new 3", 3),
        ("new 4", 4),
        ("new 5", 5),
    ]
    frozen.clear()
    kept.settle()
    assert kept.entries is kept.base
    assert list(kept.base.items()) == [
        ("a", 5),
        ("new 2", 2),
        ("new 3", 3),
        ("new 4", 4),
        ("new 5", 5),
    ]


def test_a_freeze_in_the_middle_of_a_move_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Layers, "at_once", 2)
    kept = Kept()
    kept.base |= dict.fromkeys(range(20), 0)
    for batches in range(20):  # so that a freeze comes after each step of a move
        del kept.entries[batches]
        kept.entries.update(
            dict.fromkeys(range(batches + 1, 20), batches), **{f"new {batches}": batches}
        )
        frozen = kept.layers.freeze()
        held = list(frozen.items())
        kept.entries[batches] = "again"
        for _ in range(batches):
            kept.layers.after_batch()
        before = dict(kept.base)
        again = kept.layers.freeze()
        assert kept.base == before
        assert list(frozen.items()) == held
        assert list(again.items()) == [*held, (batches, "again")] == list(kept.entries.items())
        del frozen
        for _ in range(batches):
            kept.layers.after_batch()
        assert list(again.items()) == list(kept.entries.items())
        del again
        for _ in range(batches):
            kept.layers.after_batch()
            assert list(kept.entries.items()) == [*held, (batches, "again")]


def test_what_is_walked_through_while_it_moves_stays_what_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Layers, "at_once", 2)
    kept = Kept()
    kept.base |= dict.fromkeys(range(10), 0)
    first = kept.layers.freeze()
    kept.entries.update(dict.fromkeys(range(10), 1))
    second: Any = kept.layers.freeze()
    del first
    kept.entries.update(dict.fromkeys(range(10), 2))
    third: Any = kept.layers.freeze()
    walks = [iter(second.items()), iter(third.items())]
    found = [[next(walk)] for walk in walks]
    kept.settle()
    # the first of two overlays has moved; the second one is not in what was frozen before it
    assert set(kept.base.values()) == {1}
    # who began with the first one may still be in it
    assert (third.lower.lower, second.lower.touched) == (None, 10)
    for walk, of in zip(walks, found):
        of += walk
    assert [dict(of) for of in found] == [dict.fromkeys(range(10), 1), dict.fromkeys(range(10), 2)]


@pytest.mark.parametrize("is_removed", [True, False])
def test_the_base_has_the_keys_that_it_had_while_anybody_may_walk_through_it(
    is_removed: bool,
) -> None:
    kept = Kept(a=1, b=2, c=3)
    kept.layers.freeze()
    if is_removed:
        del kept.entries["b"]
    else:
        kept.entries["d"] = 4
    frozen = kept.layers.freeze()
    wanted, walk = list(frozen.items()), iter(frozen.items())
    found = [next(walk)]
    kept.settle()
    assert [*found, *walk] == wanted
    del walk, frozen
    kept.settle()
    assert list(kept.base.items()) == wanted


@pytest.mark.parametrize("freezes", [1, 2])  # with the second one the overlay moves in steps
def test_all_moves_to_its_place_although_each_batch_touches_the_same_keys(freezes: int) -> None:
    kept, hot = Kept(), range(2000)
    kept.base |= dict.fromkeys(range(5000), 0)
    for _ in range(freezes):
        kept.layers.freeze()
        kept.entries.update(dict.fromkeys(hot, 1))
    batches = 0
    while not kept.layers.is_settled:
        kept.layers.after_batch()
        kept.entries.update(dict.fromkeys(hot, batches))
        batches += 1
        assert batches < 20
    assert kept.entries is kept.base


@pytest.mark.parametrize("freezes", [1, 2])  # with the second one the overlay moves in steps
def test_a_key_that_was_removed_and_comes_again_has_its_new_form_and_stands_last(
    freezes: int,
) -> None:
    kept = Kept()
    kept.base |= {1: "a", 2: "b"}
    frozen = [kept.layers.freeze()]
    del kept.entries[1]
    kept.entries[True] = "c"
    assert list(map(repr, kept.entries)) == ["2", "True"]
    assert dict(frozen[0]) == {1: "a", 2: "b"}
    frozen += [kept.layers.freeze() for _ in range(freezes - 1)]
    frozen.clear()
    kept.settle()
    assert list(map(repr, kept.base)) == ["2", "True"]


def test_cleared_state_leaves_what_was_frozen_alone() -> None:
    kept = Kept(a=1)
    frozen = kept.layers.freeze()
    kept.entries.clear()
    kept.entries["b"] = 2
    again = kept.layers.freeze()
    kept.entries["b"] = 3
    kept.settle()
    assert (dict(frozen), dict(again), kept.entries.copy()) == ({"a": 1}, {"b": 2}, {"b": 3})
    del frozen, again
    kept.settle()
    assert kept.entries == {"b": 3}


def test_an_overlay_reads_as_the_dict_that_it_stands_for() -> None:
    over: Any = Overlay({"a": 1, "b": 2}, None, None)
    over["c"] = 3
    assert [over.pop("a"), over.pop("a", 7), "a" in over, len(over), bool(over)] == [
        1,
        7,
        False,
        2,
        True,
    ]
    assert (over.keys(), over.values(), over.items()) == (["b", "c"], [2, 3], [("b", 2), ("c", 3)])
    assert [over.setdefault("b", 9), over.setdefault("d", 4), over.get("a")] == [2, 4, None]
    for missing in (over.__getitem__, over.__delitem__, over.pop):
        with pytest.raises(KeyError):
            missing("a")


class Locked:
    """An accumulator that cannot be copied, and could be changed in place."""

    def __deepcopy__(self, memo: Any) -> Locked:
        raise TypeError("it is locked")


class Lock:
    def create_accumulator(self) -> Locked:
        return Locked()

    def add(self, value: int, accumulator: Locked) -> Locked:
        return accumulator

    def get_result(self, accumulator: Locked) -> int:
        return 0

    def merge(self, acc_a: Locked, acc_b: Locked) -> Locked:
        return acc_a


@pytest.mark.parametrize("copied_at_once", [0, 1 << 10])
def test_a_value_that_cannot_be_copied_fails_the_checkpoint_and_not_the_program(
    copied_at_once: int,
) -> None:
    backend = HeapKeyedStateBackend(128, range(128), ManualClock(), copied_at_once)
    state: Any = backend.state(
        AggregatingStateDescriptor("locks", Lock(), Types.PICKLED_BYTE_ARRAY())
    )
    backend.current.key = "door"
    state.add(1)

    def saved() -> bytes:
        frozen = backend.freeze()
        state.add(2)
        return frozen.write()

    with pytest.raises(ProgramError, match="'locks' cannot be saved: TypeError: it is locked"):
        saved()


def test_an_array_is_what_it_was_although_it_is_written_before_and_while_it_is_read() -> None:
    array, freezing = np.arange(100_000), Freezing()
    frozen = freezing.freeze(array)

    def write(pause_s: float) -> None:
        at = np.array([0, 70_000, 99_999])
        freezing.keep(at)
        array[at] += 1

    write(0)
    assert (frozen.read(Turns(0, pause=write)) == np.arange(100_000)).all()
    assert array[0] > 1
    freezing.keep(np.array([5]))
    assert not freezing  # nobody has to be told any more


@pytest.mark.parametrize(
    "after",
    [{5: 7}, dict.fromkeys(range(5000), 1), {-0x61C8864680B583EB: 1}],
    ids=["a write", "growth", "the mark"],
)
def test_a_table_of_numbers_is_what_it_was(
    monkeypatch: pytest.MonkeyPatch, after: dict[int, int]
) -> None:
    monkeypatch.setattr(NumberTable, "copied_at_once", 0)
    table = NumberTable(int)
    table.store({key: key for key in range(50)})
    frozen = table.freeze()
    table.store(after)
    table.put(3, 9)
    view = table.view_batch(list(range(40)))
    view.states[:] = [state + 1 for state in view.states]
    table.commit(view)
    by_group = frozen.by_group(16, 0, Turns())
    found = sorted(pair for group in by_group.groups for pair in by_group.entries(group, Turns()))
    assert found == [(key, (key, key)) for key in range(50)]
    assert dict(table.items())[3] == 10


def test_long_work_gives_way_after_each_turn_and_not_before() -> None:
    now, paused = ManualClock(), list[float]()
    turns = Turns(0.5, now.monotonic, paused.append)
    for _ in range(6):
        now.advance(0.25)
        turns.give_way()
    assert len(paused) == 3


@pytest.mark.parametrize("module", [frozen_numbers, layers, overlay])
def test_the_examples_are_true(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0
