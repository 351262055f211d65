"""Timers that have no room in memory fire when timers in memory fire, each once, whatever is added
and deleted meanwhile, and are saved and restored with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.core.clock import ManualClock
from flinkpy.operators.process.far_key_timers import timer_queue
from flinkpy.state.far_timers import FarTimers
from flinkpy.state.rocksdb.database import RocksDBConfig
from flinkpy.state.rocksdb.rocksdb_backend import RocksDBKeyedStateBackend
from flinkpy.state.table_backend import TableBackend
from flinkpy.windowing.general.per_window.far_window_timers import window_timers
from flinkpy.windowing.windows import TimeWindow
from tests.state.helpers import _IN_MEMORY, MAX_PARALLELISM, backend, close_all

pytest.importorskip("rocksdict")

GROUPS = range(MAX_PARALLELISM)
TIMERS = st.tuples(st.integers(0, 6), st.sampled_from("abcdef"))
STEPS = st.lists(
    st.tuples(st.just("add"), st.lists(TIMERS, max_size=6))
    | st.tuples(st.just("remove"), st.lists(TIMERS, max_size=3))
    | st.tuples(st.just("due"), st.integers(0, 3))
    | st.tuples(st.just("restore"), st.sampled_from(["rocksdb", "rocksdb", "hashmap"])),
    max_size=14,
)


@pytest.fixture(autouse=True, scope="module")
def closed_in_the_end() -> Iterator[None]:
    yield
    close_all()


class OfKeys:
    """Timers of keys."""

    def __init__(self, of: TableBackend) -> None:
        self.queue = timer_queue(of, "_timers")

    def add(self, moment: int, key: str) -> None:
        self.queue.add(moment, key)

    def remove(self, moment: int, key: str) -> None:
        self.queue.remove(moment, key)

    def due(self, now: int) -> Iterator[tuple[int, str]]:
        yield from self.queue.due(now)

    @property
    def next(self) -> int | None:
        return self.queue.next_timestamp()


class OfWindows:
    """Timers of windows: two windows of a key may have the same moment."""

    def __init__(self, of: TableBackend) -> None:
        self.queue = window_timers(of, "_timers")

    def add(self, moment: int, key: str) -> None:
        self.queue.add(moment, "key", TimeWindow(ord(key), 200))

    def remove(self, moment: int, key: str) -> None:
        self.queue.remove(moment, "key", TimeWindow(ord(key), 200))

    def due(self, now: int) -> Iterator[tuple[int, str]]:
        for moment, (_, window) in self.queue.due(now):
            assert type(window) is TimeWindow
            yield moment, chr(window.start)

    @property
    def next(self) -> int | None:
        return self.queue.next_moment()


def on_disk() -> TableBackend:
    config = RocksDBConfig(_IN_MEMORY, objects=0)
    return RocksDBKeyedStateBackend(MAX_PARALLELISM, GROUPS, ManualClock(), config)


@settings(max_examples=40, deadline=None)
@given(STEPS, st.integers(1, 20))
@example([("add", [(0, key) for key in "abcdf"]), ("due", 0)], 1)
@pytest.mark.parametrize("form", [OfKeys, OfWindows])
def test_timers_on_disk_fire_as_timers_in_memory_do(form: Any, steps: Any, few: int) -> None:
    now, model = 0, set[tuple[int, str]]()
    with mock.patch.object(FarTimers, "few", few):
        of = on_disk()
        timers = form(of)
        for what, told in [*steps, ("due", 1 << 40)]:
            if what == "add":
                for moment, key in told:
                    timers.add(now + moment, key)
                    model.add((now + moment, key))
            elif what == "remove":
                for moment, key in told:
                    timers.remove(now + moment, key)
                    model.discard((now + moment, key))
            elif what == "due":
                now += told
                for moment, key in timers.due(now):
                    assert (moment, key) in model
                    assert moment == min(model)[0]
                    model.discard((moment, key))
                    if key in "ab":  # the function adds and deletes timers
                        for other in {"a": [(now, "c"), (now + 2, "d")], "b": [(now + 1, "d")]}[
                            key
                        ]:
                            timers.add(*other)
                            model.add(other)
                        timers.remove(now, "e")
                        model.discard((now, "e"))
                assert not [each for each in model if each[0] <= now]
            else:
                saved = of.freeze().write()
                timers.add(now + 3, "f")  # what was saved is not touched
                of.close()
                of = on_disk() if told == "rocksdb" else backend(kind="hashmap")
                of.restore(saved)
                timers = form(of)
            if what != "add" or len(told) % 2:
                timers.queue.after_batch()
            first = timers.next
            if model:  # it may be earlier: of a timer that was deleted
                assert first is not None
                assert first <= min(model)[0]
        of.close()
