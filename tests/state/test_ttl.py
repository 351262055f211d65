"""Time to live. The expected results follow from Flink's documentation of StateTtlConfig, case by
case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flinkpy.common.time import Duration, Time
from flinkpy.core.clock import ManualClock
from flinkpy.state.ttl.config import StateTtlConfig
from tests.state.helpers import backend, contents, seconds, states
from tests.state_bytes import keyed_bytes

pytestmark = pytest.mark.usefixtures("each_backend")


class Fixture:
    """States with a time to live of 10 seconds and no cleanup behind the scenes, unless the
    configuration says so."""

    def __init__(self, config: StateTtlConfig) -> None:
        self.clock = ManualClock(100)
        self.backend = backend(self.clock)
        self.states: dict[str, Any] = states(self.backend, config)
        self.backend.current.key = "k"

    def at(self, second: float) -> dict[str, Any]:
        self.clock.advance(100 + second - self.clock.monotonic())
        return self.states


def ttl(*, on_read: bool = False, give_expired: bool = False) -> Fixture:
    builder = seconds(10).disable_cleanup_in_background()
    if on_read:
        builder.update_ttl_on_read_and_write()
    if give_expired:
        builder.return_expired_if_not_cleaned_up()
    return Fixture(builder.build())


WRITE: dict[str, Callable[[Any, int], None]] = {
    "value": lambda s, n: s.update(n),
    "list": lambda s, n: s.add(n),
    "map": lambda s, n: s.put("f", n),
    "reducing": lambda s, n: s.add(n),
    "aggregating": lambda s, n: s.add(n),
}
READ: dict[str, Callable[[Any], Any]] = {
    "value": lambda s: s.value(),
    "list": lambda s: s.get() or None,
    "map": lambda s: s.get("f"),
    "reducing": lambda s: s.get(),
    "aggregating": lambda s: s.get(),
}
SEVEN = {"value": 7, "list": [7], "map": 7, "reducing": 7, "aggregating": 7.0}
KINDS = sorted(WRITE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("on_read", [False, True])
@pytest.mark.parametrize("give_expired", [False, True])
@pytest.mark.parametrize(
    ("read_at", "then_at"), [(9.5, 10), (9.5, 19.25), (9.5, 19.5), (10, 10), (25, 25)]
)
def test_what_is_read_after_a_write_at_0_and_an_earlier_read(
    kind: str, on_read: bool, give_expired: bool, read_at: float, then_at: float
) -> None:
    fixture = ttl(on_read=on_read, give_expired=give_expired)
    WRITE[kind](fixture.states[kind], 7)
    first = READ[kind](fixture.at(read_at)[kind])
    then = READ[kind](fixture.at(then_at)[kind])
    alive_first = read_at < 10
    touched = read_at if alive_first and on_read else 0
    # an expired one is seen only where the option allows
    assert first == (SEVEN[kind] if alive_first or give_expired else None)
    removed = not alive_first  # reading an expired value removes it
    assert then == (
        SEVEN[kind] if not removed and (then_at < touched + 10 or give_expired) else None
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_prolongs_life(kind: str) -> None:
    fixture = ttl()
    WRITE[kind](fixture.states[kind], 1)
    WRITE[kind](fixture.at(8)[kind], 7)
    combined = {"value": 7, "list": [1, 7], "map": 7, "reducing": 8, "aggregating": 4.0}[kind]
    assert READ[kind](fixture.at(9)[kind]) == combined
    # a list's elements each have a life of their own
    later = {**SEVEN, "reducing": 8, "aggregating": 4.0}[kind]
    assert READ[kind](fixture.at(17)[kind]) == later
    assert READ[kind](fixture.at(18)[kind]) is None


@pytest.mark.parametrize(("give_expired", "reduced", "mean"), [(False, 7, 7.0), (True, 8, 4.0)])
def test_an_expired_result_is_built_on_only_where_it_is_visible(
    give_expired: bool, reduced: int, mean: float
) -> None:
    fixture = ttl(give_expired=give_expired)
    for kind in ("reducing", "aggregating"):
        WRITE[kind](fixture.states[kind], 1)
    for kind in ("reducing", "aggregating"):
        WRITE[kind](fixture.at(10)[kind], 7)
    assert (
        READ["reducing"](fixture.states["reducing"]),
        READ["aggregating"](fixture.states["aggregating"]),
    ) == (reduced, mean)


def test_the_entries_of_a_map_expire_one_by_one() -> None:
    fixture = ttl()
    state = fixture.states["map"]
    state.put("old", 1)
    fixture.at(5)
    state.put_all({"new": 2})
    fixture.at(11)
    assert (state.items(), state.contains("old"), state.contains("new"), state.is_empty()) == (
        [("new", 2)],
        False,
        True,
        False,
    )
    fixture.at(15)
    assert state.is_empty()
    assert (state.keys(), state.values()) == ([], [])
    assert list(fixture.backend.keys("map")) == []


def test_reading_one_entry_of_a_map_prolongs_that_one_only() -> None:
    fixture = ttl(on_read=True)
    state = fixture.states["map"]
    state.put_all({"read": 1, "left": 2})
    fixture.at(9)
    assert state.get("read") == 1
    assert dict(fixture.at(12)["map"].items()) == {"read": 1}


def test_a_disabled_configuration_lets_nothing_expire() -> None:
    fixture = Fixture(seconds(10).set_update_type(StateTtlConfig.UpdateType.Disabled).build())
    fixture.states["value"].update(7)
    assert fixture.at(1000)["value"].value() == 7


def test_clear_and_update_with_nothing_forget_at_once() -> None:
    fixture = ttl(give_expired=True)
    for kind in KINDS:
        WRITE[kind](fixture.states[kind], 7)
    fixture.states["value"].update(None)
    fixture.states["list"].update([])
    for kind in ("map", "reducing", "aggregating"):
        fixture.states[kind].clear()
    assert contents(fixture.backend, fixture.states) == {}


# -- cleanup ---------------------------------------------------------------------------------------


def fill(fixture: Fixture, keys: int = 500) -> None:
    for key in range(keys):
        fixture.backend.current.key = key
        for kind in KINDS:
            WRITE[kind](fixture.states[kind], 7)


def test_cleanup_in_the_background_is_on_by_default_and_removes_what_nobody_reads() -> None:
    fixture = Fixture(seconds(10).build())
    fill(fixture)
    fixture.at(10)
    fixture.backend.current.key = "other"
    # 5 entries per access: 120 accesses look at 500 entries, and at some of them twice
    for _ in range(120):
        for kind in KINDS:
            READ[kind](fixture.states[kind])
    assert {kind: len(list(fixture.backend.keys(kind))) for kind in KINDS} == dict.fromkeys(
        KINDS, 0
    )


def test_without_background_cleanup_expired_values_stay_until_they_are_read() -> None:
    fixture = ttl()
    fill(fixture)
    fixture.at(10)
    fixture.backend.current.key = "other"
    for _ in range(500):
        fixture.states["value"].value()
    fixture.backend.after_records(500)
    assert fixture.backend.statistics.keys["value"] == 500


@pytest.mark.parametrize(("every_record", "left"), [(True, 0), (False, 500)])
def test_cleanup_for_every_record_needs_no_access(every_record: bool, left: int) -> None:
    fixture = Fixture(seconds(10).cleanup_incrementally(2, every_record).build())
    fill(fixture)
    fixture.at(10)
    assert fixture.backend.counts_records is every_record
    fixture.backend.after_records(500)
    assert set(fixture.backend.statistics.keys.values()) == {left}


def test_incremental_cleanup_looks_at_the_elements_of_lists_and_maps_and_keeps_the_living() -> None:
    fixture = Fixture(seconds(10).cleanup_incrementally(10, True).build())
    fill(fixture, 20)
    fixture.at(5)
    for key in range(0, 20, 2):
        fixture.backend.current.key = key
        fixture.states["list"].add(8)
        fixture.states["map"].put("g", 8)
    fixture.at(10)
    fixture.backend.after_records(10)
    found = contents(fixture.backend, fixture.states)
    assert found == {key: {"list": [8], "map": {"g": 8}} for key in range(0, 20, 2)}


def test_a_full_snapshot_leaves_expired_values_out_and_in_the_state() -> None:
    fixture = Fixture(
        seconds(10)
        .cleanup_full_snapshot()
        .disable_cleanup_in_background()
        .return_expired_if_not_cleaned_up()
        .build()
    )
    fill(fixture, 3)
    fixture.at(5)
    fixture.backend.current.key = 1
    for kind in KINDS:
        WRITE[kind](fixture.states[kind], 9)
    fixture.at(10)
    saved = keyed_bytes(fixture.backend)
    again = backend(fixture.clock)
    again.restore(saved)
    assert {kind: list(again.keys(kind)) for kind in KINDS} == {kind: [1] for kind in KINDS}
    assert fixture.backend.statistics.keys["value"] == 3
    fixture.backend.current.key = 0
    assert fixture.states["value"].value() == 7


def test_times_of_last_touch_survive_a_restore() -> None:
    fixture = ttl()
    fill(fixture, 3)
    saved = keyed_bytes(fixture.backend)
    clock = ManualClock(109)
    again = backend(clock)
    again.restore(saved)
    made = states(again, seconds(10).build())
    assert len(contents(again, made)) == 3
    clock.advance(1)
    assert all(
        value in (None, [], {})
        for of_key in contents(again, made).values()
        for value in of_key.values()
    )


def test_the_builder_gives_back_what_was_chosen() -> None:
    default = StateTtlConfig.new_builder(Time.hours(1)).build()
    assert default.get_ttl() == Time.hours(1)
    assert default.is_enabled()
    assert default.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert default.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert (
        default.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    )
    strategies = default.get_cleanup_strategies()
    assert strategies.is_cleanup_in_background()
    assert not strategies.in_full_snapshot()
    incremental = strategies.get_incremental_cleanup_strategy()
    assert incremental is not None
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (
        5,
        False,
    )
    chosen = (
        StateTtlConfig.new_builder(Duration.of_days(1))
        .use_processing_time()
        .never_return_expired()
        .update_ttl_on_create_and_write()
        .cleanup_full_snapshot()
        .cleanup_in_rocksdb_compact_filter(77)
        .disable_cleanup_in_background()
        .build()
    )
    assert chosen.get_cleanup_strategies().in_full_snapshot()
    assert chosen.get_cleanup_strategies().get_incremental_cleanup_strategy() is None
    filtered = chosen.get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy()
    assert filtered is not None
    assert (
        filtered.get_query_time_after_num_entries(),
        filtered.get_periodic_compaction_time(),
    ) == (77, Duration.of_days(30))
