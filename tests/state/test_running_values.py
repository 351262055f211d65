"""RunningValues is a dict whatever comes, in memory and through snapshots; whether it is a table
shows in nothing but time."""

from __future__ import annotations

import doctest
import subprocess
import sys
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flinkpy.core.keys import channel_of_key_group, key_group, key_group_range
from flinkpy.state.heap import number_table, running_values
from flinkpy.state.heap.batch_view import ABSENT
from flinkpy.state.heap.number_table import NumberTable
from flinkpy.state.heap.running_values import RUNNING_RESULT, RunningValues
from flinkpy.state.snapshots.keyed_snapshots import redistribute
from tests.state.helpers import backend
from tests.state_bytes import keyed_bytes


class Whole(int):
    """A number of a kind of its own."""


PLAIN_KEYS = st.integers(-8, 8) | st.integers(-(1 << 63), (1 << 63) - 1)
ODD_KEYS = st.sampled_from([True, 1.0, 1 << 63, -(1 << 63) - 1, "a", None, ("a", 1), Whole(3), 2.5])
PLAIN_VALUES = {
    int: st.integers(-9, 9) | st.integers(-(1 << 63), (1 << 63) - 1),
    float: st.floats(allow_nan=False),
}
ODD_VALUES = st.sampled_from([True, 1 << 63, -(1 << 70), "x", None, Whole(4), 5, 5.5, (1, 2), -0.0])


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunningValues, "threshold", 3)
    monkeypatch.setattr(NumberTable, "smallest", 4)
    monkeypatch.setattr(NumberTable, "few", 2)
    monkeypatch.setattr(number_table, "_CHUNK", 1 << 11)
    monkeypatch.setattr(running_values, "_CHUNK", 5)


def is_table(values: RunningValues) -> bool:
    return values.plain() is None


def exactly(pairs: Any) -> list[str]:
    """With the types, and the sign of zero."""
    return sorted(
        f"{key!r} {type(key).__name__} {value!r} {type(value).__name__}" for key, value in pairs
    )


def paired(entries: dict[Any, Any]) -> dict[Any, Any]:
    """Pairs of a key and its value, by key: what a table holds."""
    return {key: (key, value) for key, value in entries.items()}


def batches(kind: type) -> st.SearchStrategy[list[Any]]:
    """Mostly what fits into a table, so that there is one to leave."""
    plain = st.lists(st.tuples(PLAIN_KEYS, PLAIN_VALUES[kind]), max_size=8)
    odd = st.tuples(PLAIN_KEYS | ODD_KEYS, PLAIN_VALUES[kind] | ODD_VALUES).map(lambda pair: [pair])
    entries = st.tuples(
        PLAIN_KEYS | ODD_KEYS, st.tuples(PLAIN_KEYS | ODD_KEYS, PLAIN_VALUES[kind]) | ODD_VALUES
    ).map(lambda pair: [pair])
    calls = st.sampled_from(
        [
            "batch",
            "batch",
            "batch",
            "update",
            "set",
            "get",
            "delete",
            "in",
            "iterate",
            "setdefault",
            "pop",
        ]
    )
    given: st.SearchStrategy[Any] = (
        st.tuples(calls, plain) | st.tuples(calls, plain) | st.tuples(calls, odd)
    )
    pairs = given.map(lambda call: (call[0], [(key, (key, value)) for key, value in call[1]]))
    return st.lists(
        pairs | pairs | pairs | st.tuples(st.just("set"), entries) | st.just(("clear", [])),
        max_size=16,
    )


def run_batch(values: RunningValues, pairs: list[Any], done: int) -> None:
    """What an operator does that fails after ``done`` records: with a dict nothing else than
    writing to it."""
    states = values.plain()
    if states is None:
        view = values.view_batch([key for key, _ in pairs])
        if view is not None:
            for (_, value), place in list(zip(pairs, view.places))[:done]:
                view.states[place] = value[1]
            values.commit(view)
            return
        states = values.plain()
        assert states is not None
    states.update(pairs[:done])


def step(values: Any, call: str, pairs: list[Any]) -> Any:
    if call == "update":
        return values.update(pairs)
    if call == "iterate":
        return (
            exactly(values.items()),
            exactly((1, each) for each in values.values()),
            exactly((each, 1) for each in values),
            len(values),
        )
    results = []
    for key, value in pairs:
        if call == "set":
            values[key] = value
        elif call == "get":
            results.append(values.get(key, "none"))
        elif call == "in":
            results.append(key in values)
        elif call == "setdefault":
            results.append(values.setdefault(key, value))
        elif call == "pop":
            results.append(values.pop(key, "none"))
        elif key in values:
            del values[key]
    return exactly((1, each) for each in results)


@pytest.mark.parametrize("kind", [int, float])
@given(data=st.data())
def test_it_is_a_dict(kind: type, data: st.DataObject) -> None:
    values, model = RunningValues(), dict[Any, Any]()
    for call, pairs in data.draw(batches(kind)):
        if call == "clear":
            values.clear()
            model.clear()
        elif call == "batch":
            done = data.draw(st.just(len(pairs)) | st.integers(0, len(pairs)))
            run_batch(values, pairs, done)
            model.update(pairs[:done])
        else:
            assert step(values, call, pairs) == step(model, call, pairs)
        assert len(values) == len(model)
        assert exactly(values.items()) == exactly(model.items())
    assert values == model


@pytest.mark.parametrize(
    ("entries", "table"),
    [
        ({n: n for n in range(4)}, True),
        ({n: n / 2 for n in range(4)}, True),
        ({n: n for n in range(3)}, False),
        ({**{n: n for n in range(4)}, True: 2}, True),
        ({True: 1, **{n: n for n in range(4)}}, False),
        ({n: n > 1 for n in range(4)}, False),
        ({n: n or 0.5 for n in range(4)}, False),
        ({n << 62: n for n in range(4)}, False),
        ({n: n << 62 for n in range(4)}, False),
        ({Whole(n): n for n in range(4)}, False),
        ({n: Whole(n) for n in range(4)}, False),
        ({str(n): n for n in range(4)}, False),
    ],
)
def test_it_becomes_a_table_when_it_has_many_keys_and_all_fit(
    entries: dict[Any, Any], table: bool
) -> None:
    values = RunningValues()
    values.update(paired(entries))
    assert is_table(values) == table
    assert exactly(values.items()) == exactly(paired(entries).items())
    values.clear()
    assert len(values) == 0
    values.update({n: (n, n) for n in range(4)})
    assert is_table(values)  # emptied, it may be a table again


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (True, 1),
        (7.0, 1),
        (1 << 63, 1),
        ("a", 1),
        (Whole(2), 1),
        (2, True),
        (2, 1.0),
        (2, 1 << 63),
        (2, Whole(1)),
        (2, None),
    ],
)
def test_what_does_not_fit_makes_it_a_dict_for_good(key: Any, value: Any) -> None:
    values, model = RunningValues(), {n: (n, n) for n in range(9)}
    values.update(model)
    assert is_table(values)
    for _ in range(2):
        run_batch(values, [(1, (1, 5)), (key, (key, value)), (3, (3, 6))], 3)
        model.update([(1, (1, 5)), (key, (key, value)), (3, (3, 6))])
        assert not is_table(values)
        assert exactly(values.items()) == exactly(model.items())


def test_as_a_dict_nothing_is_copied() -> None:
    values = RunningValues()
    states = values.plain()
    assert states is not None
    states[1] = 1
    assert values.plain() is states
    assert dict(values) == {1: 1}
    assert values.view_batch([1]) is None


def test_a_batch_that_failed_leaves_what_was_done_and_no_more() -> None:
    values = RunningValues()
    values.update({n: (n, n) for n in range(9)})
    run_batch(
        values,
        [(key, (key, value)) for key, value in [(1, 5), (77, 7), (1, 6), (2, 8), (78, 9)]],
        3,
    )
    assert is_table(values)
    assert dict(values) == paired({**{n: n for n in range(9)}, 1: 6, 77: 7})
    assert values.get(78, ABSENT) is ABSENT


def groups_of(subtask: int, parallelism: int) -> range:
    return key_group_range(subtask, 16, parallelism)


@pytest.mark.parametrize(
    "kinds", [("hashmap", "hashmap"), ("hashmap", "rocksdb"), ("rocksdb", "hashmap")]
)
@given(
    entries=st.dictionaries(PLAIN_KEYS, st.integers(-9, 9), max_size=30),
    odd=st.booleans(),
    parallelism=st.integers(1, 3),
)
@example(entries={n: n for n in range(20)}, odd=False, parallelism=2)
def test_it_goes_through_snapshots_to_either_backend_at_any_parallelism(
    kinds: tuple[str, str], entries: dict[Any, Any], odd: bool, parallelism: int
) -> None:
    if "rocksdb" in kinds:
        pytest.importorskip("rocksdict")
    entries = paired({**entries, "a": 1, 2.5: "b"} if odd else entries)
    before = backend(max_parallelism=16, groups=range(16), kind=kinds[0])
    before.engine_values(RUNNING_RESULT).update(entries)
    before.engine_values("_another").update({"a": [1], 2: [2]})
    saved = [keyed_bytes(before)]
    for count in (parallelism, 1):  # there, and together again
        found, others, shares = dict[Any, Any](), dict[Any, Any](), list[bytes]()
        for subtask in range(count):
            after = backend(max_parallelism=16, groups=groups_of(subtask, count), kind=kinds[1])
            after.restore(redistribute(saved, groups_of(subtask, count)))
            values = after.engine_values(RUNNING_RESULT)
            assert all(
                channel_of_key_group(key_group(key, 16), 16, count) == subtask for key in values
            )
            found.update(values.items())
            others.update(after.engine_values("_another"))
            shares.append(keyed_bytes(after))
        assert exactly(found.items()) == exactly(entries.items())
        assert others == {"a": [1], 2: [2]}
        saved = shares


def test_a_restored_table_is_a_table_and_only_of_the_states_it_is_for() -> None:
    before = backend(kind="hashmap")
    for name in (RUNNING_RESULT, "_another"):
        before.engine_values(name).update({n: (n, n) for n in range(20)})
    after = backend(kind="hashmap")
    after.restore(keyed_bytes(before))
    values = after.engine_values(RUNNING_RESULT)
    assert isinstance(values, RunningValues)
    assert is_table(values)
    assert type(after.engine_values("_another")) is dict
    assert dict(after.statistics.keys) == dict.fromkeys((RUNNING_RESULT, "_another"), 20)
    assert sorted(after.keys(RUNNING_RESULT)) == list(range(20))
    assert isinstance(after.engine_values(RUNNING_RESULT), RunningValues)


def test_update_takes_what_a_dict_takes() -> None:
    values = RunningValues()
    values.update(OrderedDict([(1, 2)]))
    values.update([(2, 3)], a=4)
    values.update(values)
    assert dict(values) == {1: 2, 2: 3, "a": 4}
    assert repr(values) == "<RunningValues of 3 keys, as a dict>"


def test_numpy_is_imported_for_a_table_and_not_before() -> None:
    code = """if True:
        import sys
        from flinkpy.state.heap.running_values import RunningValues
        values = RunningValues()
        values.update({1: 1})
        assert values.plain() is not None and "numpy" not in sys.modules
        values.update({number: (number, number) for number in range(values.threshold + 1)})
        assert values.plain() is None and "numpy" in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_only_pairs_with_their_key_at_one_place_make_a_table() -> None:
    for key_at, entries in ((0, {n: (n, 5) for n in range(9)}), (1, {n: (5, n) for n in range(9)})):
        for wanted in (0, 1, None):
            values = RunningValues()
            values.allow_table(wanted)
            values.update(entries)
            assert is_table(values) == (wanted == key_at)
            values.allow_table(None)
            assert not is_table(values)
            assert dict(values) == entries


def test_the_example_runs() -> None:
    assert doctest.testmod(running_values).failed == 0
