"""What a heap backend writes is what it held at the freeze, however much happens while it is
written; and nobody who reads and writes its states can see that they are frozen. The specification
is plain dicts, and deep copies of them."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import ManualClock, Turns
from flinkpy.core.keys import NAN, canonical_key
from flinkpy.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend
from flinkpy.state.heap.running_values import RUNNING_RESULT
from flinkpy.state.layers.layers import Layers
from tests.state.helpers import seconds
from tests.state.test_freezing import Gather, extended

KEYS = st.sampled_from([0, 1, True, "a", ("a", NAN)])
NUMBERS = st.integers(0, 3)
ACTIONS = st.sampled_from(
    [
        "end batch",
        "value update",
        "value clear",
        "list add",
        "list clear",
        "map put",
        "map remove",
        "map clear",
        "reducing add",
        "reducing clear",
        "aggregating add",
        "aggregating clear",
        f"{RUNNING_RESULT} list",
        f"{RUNNING_RESULT} pair",
        "_engine change",
    ]
)
STEPS = st.lists(st.tuples(ACTIONS, KEYS, NUMBERS), min_size=4, max_size=12)
FOREVER = seconds(10**6)
AT_ONCE, MOST = Layers.at_once, Layers.most


def descriptors(expires: bool) -> list[StateDescriptor]:
    pickled = Types.PICKLED_BYTE_ARRAY()
    made: list[StateDescriptor] = [
        ValueStateDescriptor("value", pickled),
        ListStateDescriptor("list", pickled),
        MapStateDescriptor("map", Types.LONG(), pickled),
        ReducingStateDescriptor("reducing", extended, pickled),
        AggregatingStateDescriptor("aggregating", Gather(), pickled),
    ]
    if expires:
        for each in made:
            each.enable_time_to_live(FOREVER.cleanup_incrementally(2, False).build())
    return made


class Frozen(RuleBasedStateMachine):
    """``held``: what the backend should hold, by state and key."""

    @initialize(
        copied_at_once=st.sampled_from([0, 2, 1 << 15]),
        moved_at_once=st.sampled_from([1, 2, 256]),
        most=st.sampled_from([2, 3, 8]),
        expires=st.booleans(),
        steps=STEPS,
    )
    def begin(
        self,
        copied_at_once: int,
        moved_at_once: int,
        most: int,
        expires: bool,
        steps: list[tuple[str, Any, int]],
    ) -> None:
        Layers.at_once, Layers.most = moved_at_once, most
        self.copied_at_once, self.expires = copied_at_once, expires
        self.held: dict[str, dict[Any, Any]] = {each.name: {} for each in descriptors(False)} | {
            RUNNING_RESULT: {},
            "_engine": {},
        }
        self.frozen: list[tuple[Any, Any]] = []
        self.written: list[tuple[bytes, Any]] = []
        self.backend, self.states = self.made()
        self.go_on_with(steps)

    def teardown(self) -> None:
        Layers.at_once, Layers.most = AT_ONCE, MOST

    def made(self, snapshot: bytes | None = None) -> tuple[HeapKeyedStateBackend, dict[str, Any]]:
        backend = HeapKeyedStateBackend(128, range(128), ManualClock(), self.copied_at_once)
        if snapshot is not None:
            backend.restore(snapshot)
        states: dict[str, Any] = {
            each.name: backend.state(each) for each in descriptors(self.expires)
        }
        return backend, states | {
            name: backend.engine_values(name) for name in (RUNNING_RESULT, "_engine")
        }

    def at(self, key: Any) -> Any:
        self.backend.current.key = key = canonical_key(key)
        return key

    # -- what the program does ---------------------------------------------------------------------

    @rule(steps=STEPS)
    def go_on(self, steps: list[tuple[str, Any, int]]) -> None:
        self.go_on_with(steps)

    def go_on_with(self, steps: list[tuple[str, Any, int]]) -> None:
        for step in steps:
            self.do(*step)

    def do(self, what: str, key: Any, number: int) -> None:
        name, _, action = what.rpartition(" ")
        self.backend.current.key = key = canonical_key(key)
        held: dict[Any, Any] = self.held.get(name, {})
        state: Any = self.states.get(name)
        if what == "end batch":
            self.end_a_batch()
        elif action == "clear":
            held.pop(key, None)
            state.clear()
        elif name == "value":
            held[key] = [number]
            state.update([number])
        elif name == "map" and action == "put":
            held.setdefault(key, {})[number] = [number]
            state.put(number, [number])
        elif name == "map":
            if held.get(key, {}).pop(number, None) is not None and not held[key]:
                del held[key]
            state.remove(number)
        elif name == RUNNING_RESULT:
            for entries in (held, state.plain()):
                if type(found := entries.get(key)) is list:
                    found.append(number)
                else:
                    entries[key] = [number] if action == "list" else ("pair", number)
        elif name == "_engine":
            for entries in (held, state):
                entries.setdefault(key, []).append(number)
        else:
            held.setdefault(key, []).append(number)
            state.add([number] if name == "reducing" else number)

    @rule()
    def end_a_batch(self) -> None:
        self.backend.after_records(1)
        self.states[RUNNING_RESULT].plain()

    @rule()
    def forget_all(self) -> None:
        for entries in self.held.values():
            entries.clear()
        self.backend.forget_all()

    # -- what checkpoints do -----------------------------------------------------------------------

    @precondition(lambda self: len(self.frozen) < 5)
    @rule()
    def freeze(self) -> None:
        self.frozen.append((self.backend.freeze(), copy.deepcopy(self.held)))

    @precondition(lambda self: self.frozen)
    @rule(at=st.integers(0, 4), steps=STEPS)
    def write_while_the_program_goes_on(self, at: int, steps: list[tuple[str, Any, int]]) -> None:
        frozen, held = self.frozen.pop(at % len(self.frozen))

        left = list(steps)

        def go_on(pause_s: float) -> None:
            if left:
                self.do(*left.pop())

        written = b"".join(frozen.chunks(Turns(0.0, pause=go_on)))
        assert contents(self.made(written)) == shown(held)
        self.written = [(written, held)]

    @precondition(lambda self: self.frozen)
    @rule(at=st.integers(0, 4))
    def abort(self, at: int) -> None:
        del self.frozen[at % len(self.frozen)]

    @precondition(lambda self: self.written)
    @rule()
    def restore(self) -> None:
        """What is being written by the task that failed is nobody's concern."""
        written, held = self.written.pop()
        self.backend, self.states = self.made(written)
        self.frozen = []
        found = contents((self.backend, self.states))
        self.held = {
            name: {key: copy.deepcopy(held[name][key]) for key in dict.fromkeys(self.keys_of(name))}
            for name in held
        }
        assert found == shown(self.held)

    # -- what holds --------------------------------------------------------------------------------

    def keys_of(self, name: str) -> list[Any]:
        return list(self.backend.keys(name))

    @invariant()
    def all_states_hold_what_they_should_in_the_order_of_a_dict(self) -> None:
        if not hasattr(self, "held"):
            return
        for name, entries in self.held.items():
            assert list(map(repr, self.keys_of(name))) == list(map(repr, entries)), name
            assert self.backend.statistics.keys[name] == len(entries)

    @rule()
    def read_everything(self) -> None:
        assert contents((self.backend, self.states)) == shown(self.held)


def contents(made: tuple[HeapKeyedStateBackend, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What all states hold, by the key's repr: 1 and True are told apart."""
    backend, states = made
    found: dict[str, dict[str, Any]] = {}
    for name, state in states.items():
        found[name] = {}
        for key in list(backend.keys(name)):
            backend.current.key = key
            if name.startswith("_"):
                value = copy.deepcopy(dict(state.items())[key])
            elif name == "map":
                value = dict(state.items())
            else:
                value = state.value() if name == "value" else list(state.get())
            found[name][repr(key)] = value
    return found


def shown(held: dict[str, dict[Any, Any]]) -> dict[str, dict[str, Any]]:
    return {
        name: {repr(key): value for key, value in entries.items()} for name, entries in held.items()
    }


TestFrozen = Frozen.TestCase
TestFrozen.settings = settings(max_examples=80, stateful_step_count=16, deadline=None)
