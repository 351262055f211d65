"""States with a time to live against dicts that remember when everything was touched last, over
random calls, waits and restores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.clock import ManualClock
from tests.state.helpers import backend, seconds, states
from tests.state_bytes import keyed_bytes

pytestmark = pytest.mark.usefixtures("each_backend")

LIFE = 5
KEYS = st.sampled_from(["a", "b", ("c", 1)])
FIELDS = st.sampled_from("xyz")
NUMBERS = st.integers(-9, 9)
STEPS = st.lists(
    st.one_of(
        st.tuples(KEYS, st.just("value"), st.just("update"), NUMBERS),
        st.tuples(KEYS, st.just("list"), st.just("add"), NUMBERS),
        st.tuples(
            KEYS,
            st.just("list"),
            st.sampled_from(["update", "add_all"]),
            st.lists(NUMBERS, max_size=3),
        ),
        st.tuples(KEYS, st.just("map"), st.just("put"), st.tuples(FIELDS, NUMBERS)),
        st.tuples(KEYS, st.just("map"), st.sampled_from(["remove", "contains", "get"]), FIELDS),
        st.tuples(KEYS, st.sampled_from(["reducing", "aggregating"]), st.just("add"), NUMBERS),
        st.tuples(
            KEYS,
            st.sampled_from(["value", "list", "map", "reducing", "aggregating"]),
            st.sampled_from(["read", "read", "clear"]),
            st.none(),
        ),
        st.tuples(st.none(), st.just("wait"), st.none(), st.integers(1, 4)),
        st.tuples(st.none(), st.just("wait"), st.none(), st.integers(1, 4)),
        st.tuples(st.none(), st.just("restore"), st.none(), st.none()),
    ),
    min_size=10,
    max_size=60,
)


class Model:
    """(key, kind) -> what is there, each part as [part, when it was touched]. A value is one part,
    as is what reducing and aggregating have."""

    def __init__(self, on_read: bool) -> None:
        self.on_read, self.now = on_read, 0
        self.parts: dict[Any, dict[Any, list[Any]]] = {}

    def alive(self, at: Any) -> dict[Any, list[Any]]:
        """What has not expired: it has, when its life has passed since it was touched."""
        parts = self.parts.setdefault(at, {})
        for name in [name for name, (_, touched) in parts.items() if touched + LIFE <= self.now]:
            del parts[name]
        return parts

    def touched(self, parts: list[list[Any]]) -> list[Any]:
        """Reads these."""
        for part in parts:
            if self.on_read:
                part[1] = self.now
        return [value for value, _ in parts]

    def call(self, key: Any, kind: str, call: str, argument: Any) -> Any:
        parts = self.alive((key, kind))
        if call == "clear":
            parts.clear()
        elif call == "read":
            return self.read(kind, parts)
        elif kind == "map":
            if call == "put":
                parts[argument[0]] = [argument[1], self.now]
            elif call == "remove":
                parts.pop(argument, None)
            elif argument in parts:
                (value,) = self.touched([parts[argument]])
                return True if call == "contains" else value
            else:
                return False if call == "contains" else None
        elif kind == "list":
            if call == "update":
                parts.clear()
            for value in [argument] if call == "add" else argument:
                parts[max(parts, default=0) + 1] = [value, self.now]
        elif kind == "value":
            parts[0] = [argument, self.now]
        else:
            parts[0] = [[*parts[0][0], argument] if parts else [argument], self.now]
        return None

    def read(self, kind: str, parts: dict[Any, list[Any]]) -> Any:
        if kind == "map":
            return dict(zip(parts, self.touched(list(parts.values()))))
        values = self.touched(list(parts.values()))
        if kind == "list":
            return values
        if not values:
            return None
        return {"value": lambda v: v, "reducing": sum, "aggregating": lambda v: sum(v) / len(v)}[
            kind
        ](values[0])


def call(state: Any, kind: str, name: str, argument: Any) -> Any:
    if name == "read":
        read: dict[str, Callable[[], Any]] = {
            "value": lambda: state.value(),
            "list": lambda: list(state.get() or ()),
            "map": lambda: dict(state.items()),
        }
        return read[kind]() if kind in read else state.get()
    if name == "clear":
        return state.clear()
    return getattr(state, name)(*(argument if name == "put" else (argument,)))


@pytest.mark.parametrize("on_read", [False, True])
@settings(max_examples=20)
@given(in_background=st.booleans(), steps=STEPS)
def test_what_is_read_is_what_was_touched_within_its_life(
    on_read: bool, in_background: bool, steps: list[Any]
) -> None:
    builder = seconds(LIFE)
    if on_read:
        builder.update_ttl_on_read_and_write()
    if not in_background:
        builder.disable_cleanup_in_background()
    config, clock, model = builder.build(), ManualClock(7), Model(on_read)
    of = backend(clock)
    made = states(of, config)
    for key, kind, name, argument in steps:
        if kind == "wait":
            clock.advance(argument)
            model.now += argument
        elif kind == "restore":
            saved = keyed_bytes(of)
            of = backend(clock)
            of.restore(saved)
            made = states(of, config)
        else:
            of.current.key = key
            assert call(made[kind], kind, name, argument) == model.call(key, kind, name, argument)
    for key, kind in list(model.parts):
        of.current.key = key
        assert call(made[kind], kind, "read", None) == model.call(key, kind, "read", None)


@pytest.mark.parametrize("kind", ["value", "list", "map", "reducing", "aggregating"])
def test_a_life_longer_than_time_itself_does_not_end(kind: str) -> None:
    clock = ManualClock(0)
    of = backend(clock)
    state = states(of, seconds(10**10).build())[kind]  # 300 years
    of.current.key = "k"
    call(
        state,
        kind,
        "put" if kind == "map" else "update" if kind == "value" else "add",
        ("x", 1) if kind == "map" else 1,
    )
    clock.advance(10**9)
    assert call(state, kind, "read", None) in (1, [1], {"x": 1})
