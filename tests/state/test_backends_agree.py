"""rocksdb = heap = dict, over random operations, and over snapshots taken with one backend and
restored with the other."""

from __future__ import annotations

import datetime
import decimal
import fractions
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.types import Row
from flinkpy.core.clock import ManualClock
from flinkpy.core.program.by_value import StreamPickler
from flinkpy.state.rocksdb import slot_cache as rocksdb_slots
from flinkpy.state.rocksdb.key_bytes import decode_key, encode_key, is_plain
from flinkpy.state.rocksdb.value_bytes import decode_value, encode_value
from tests.state.helpers import backend, close_all, contents, seconds, states
from tests.state_bytes import keyed_bytes

pytest.importorskip("rocksdict")


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Point:
    x: int
    y: int


NUMBERS = st.one_of(
    st.integers(),
    st.floats(allow_nan=False),
    st.booleans(),
    st.fractions(),
    st.decimals(allow_nan=False),
)
ATOMS = st.one_of(
    st.none(),
    NUMBERS,
    st.text(max_size=4),
    st.binary(max_size=4),
    st.sampled_from(Colour),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
    st.uuids(),
    st.builds(Point, st.integers(0, 3), st.integers(0, 3)),
)
ANY_KEY = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner), st.tuples(inner, inner), st.frozensets(inner, max_size=2)
    ),
    max_leaves=4,
)
KEYS = st.sampled_from(
    [1, 2, True, 1.5, "a", "b", ("a", 1), ("a", True), Colour.RED, Point(1, 2), None]
)
VALUES = st.one_of(
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.booleans(),
    st.binary(max_size=300),
    st.lists(st.integers(), max_size=2),
    st.tuples(st.integers(), st.text(max_size=2)),
    st.just("long" * 100),
    st.none(),
)


@pytest.fixture(autouse=True, scope="module")
def closed_in_the_end() -> Iterator[None]:
    yield
    close_all()


@given(left=ANY_KEY, right=ANY_KEY)
def test_keys_have_equal_bytes_when_they_are_equal_and_only_then(left: Any, right: Any) -> None:
    assert (encode_key(left) == encode_key(right)) == (left == right)
    for key in (left, right):
        if is_plain(key):
            again = decode_key(encode_key(key))
            assert (again, type(again)) == (key, type(key))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (1, 1.0),
        (0.5, fractions.Fraction(1, 2)),
        (decimal.Decimal("2.0"), 2),
        (1 + 0j, 1),
        (float("inf"), decimal.Decimal("inf")),
        (("a", 1), ("a", 1.0)),
        (Row(1, "a"), Row(1, "a")),
        (Point(1, 2), Point(1.0, 2)),  # type: ignore[arg-type]
        (
            datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.timezone.utc),
            datetime.datetime(
                2024, 1, 1, 13, tzinfo=datetime.timezone(datetime.timedelta(hours=1))
            ),
        ),
        (frozenset({1, "a"}), frozenset({"a", 1.0})),
        (uuid.UUID(int=5), uuid.UUID(int=5)),
        ("ab" * 2, "abab"),
        (2**80, float(2**80)),
    ],
)
def test_one_key_in_two_spellings_is_one_key(left: Any, right: Any) -> None:
    assert left == right
    assert encode_key(left) == encode_key(right)


@given(value=VALUES)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    again = decode_value(encode_value(value, StreamPickler(only_here=True)))
    assert (again, type(again)) == (value, type(value))


MAPPING_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "set",
                "get",
                "delete",
                "pop",
                "in",
                "setdefault",
                "update",
                "iterate",
                "clear",
                "reborn",
            ]
        ),
        KEYS,
        VALUES,
    ),
    max_size=40,
)


@pytest.mark.parametrize("cached", [1, 3, 1000])
@settings(max_examples=40)
@given(steps=MAPPING_STEPS)
def test_engine_values_are_a_dict_on_every_backend(
    cached: int, steps: list[tuple[str, Any, Any]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rocksdb_slots, "CACHED_SLOTS", cached)
        made = {kind: backend(kind=kind) for kind in ("hashmap", "rocksdb")}
        model: dict[Any, Any] = {}
        for call, key, value in steps:
            if call == "reborn":  # each goes on from what the other one saved
                saved = {kind: keyed_bytes(each) for kind, each in made.items()}
                made = {"hashmap": backend(kind="hashmap"), "rocksdb": backend(kind="rocksdb")}
                made["hashmap"].restore(saved["rocksdb"])
                made["rocksdb"].restore(saved["hashmap"])
            mappings = [each.engine_values("_v") for each in made.values()]
            assert [apply(mapping, call, key, value) for mapping in mappings] == [
                apply(model, call, key, value)
            ] * 2
        for each in made.values():
            assert dict(each.engine_values("_v").items()) == model


def apply(mapping: Any, call: str, key: Any, value: Any) -> Any:
    """The step, and what it gives."""
    if call == "set":
        mapping[key] = value
        return None
    if call == "delete":
        try:
            del mapping[key]
        except KeyError:
            return "no such key"
        return None
    if call == "iterate":
        return (len(mapping), sorted(map(repr_of, mapping)), sorted(map(repr, mapping.values())))
    steps: dict[str, Any] = {
        "get": lambda: mapping.get(key, "default"),
        "pop": lambda: mapping.pop(key, "default"),
        "in": lambda: key in mapping,
        "setdefault": lambda: mapping.setdefault(key, value),
        "update": lambda: mapping.update({key: value, "other": value}),
        "clear": lambda: mapping.clear(),
        "reborn": lambda: None,
    }
    return steps[call]()


def repr_of(key: Any) -> str:
    return repr(
        int(key)
        if isinstance(key, bool)
        else key
        if not isinstance(key, tuple)
        else tuple(map(repr_of, key))
    )


STEPS = st.lists(
    st.one_of(
        st.tuples(KEYS, st.just("value"), st.just("update"), VALUES),
        st.tuples(
            KEYS,
            st.just("list"),
            st.sampled_from(["update", "add_all"]),
            st.lists(st.integers(0, 9), max_size=3),
        ),
        st.tuples(
            KEYS, st.just("map"), st.just("put_all"), st.dictionaries(KEYS, VALUES, max_size=2)
        ),
        st.tuples(KEYS, st.just("map"), st.just("remove"), KEYS),
        st.tuples(
            KEYS, st.sampled_from(["reducing", "aggregating"]), st.just("add"), st.integers(0, 9)
        ),
        st.tuples(
            KEYS,
            st.sampled_from(["value", "list", "map", "reducing", "aggregating"]),
            st.just("clear"),
            st.none(),
        ),
        st.tuples(KEYS, st.just("clock"), st.just("advance"), st.sampled_from([1, 4])),
        st.tuples(KEYS, st.just("backend"), st.just("reborn"), st.none()),
    ),
    max_size=25,
)
CONFIGURATIONS = {
    "lasting": None,
    "expiring": seconds(5).build(),
    "read prolongs": seconds(5)
    .update_ttl_on_read_and_write()
    .disable_cleanup_in_background()
    .build(),
    "expired is seen": seconds(5)
    .return_expired_if_not_cleaned_up()
    .disable_cleanup_in_background()
    .cleanup_full_snapshot()
    .build(),
}


@pytest.mark.parametrize("configuration", sorted(CONFIGURATIONS))
@settings(max_examples=25)
@given(steps=STEPS)
def test_states_agree_on_every_backend_and_go_from_one_to_the_other(
    configuration: str, steps: list[Any]
) -> None:
    config = CONFIGURATIONS[configuration]
    clocks = ManualClock(5), ManualClock(5)
    backends = [backend(clocks[0], kind="hashmap"), backend(clocks[1], kind="rocksdb")]
    made = [states(each, config) for each in backends]
    for key, kind, call, argument in steps:
        if kind == "clock":
            for clock in clocks:
                clock.advance(argument)
        elif kind == "backend":
            saved = [keyed_bytes(each) for each in backends]
            backends = [backend(clocks[0], kind="hashmap"), backend(clocks[1], kind="rocksdb")]
            for each, other in zip(backends, reversed(saved)):
                each.restore(other)
            made = [states(each, config) for each in backends]
        else:
            for each, of_backend in zip(backends, made):
                each.current.key = key
                getattr(of_backend[kind], call)(*(() if call == "clear" else (argument,)))
                if config is None or argument is None:
                    continue
                of_backend[kind].keys() if kind == "map" else of_backend[
                    kind
                ].value() if kind == "value" else of_backend[kind].get()
    found = [contents(each, of_backend) for each, of_backend in zip(backends, made)]
    assert found[0] == found[1]
    backends[1].close()
