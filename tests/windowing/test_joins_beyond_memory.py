"""Window joins that have no room in memory give what they give in memory: with some records on disk
or all, with failures in between, restored with another backend and another parallelism."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from typing import Any, TypeAlias
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.options.state import ROCKSDB_DIRECTORY, ROCKSDB_OBJECTS, STATE_BACKEND
from flinkpy.windowing.joins.columnar_join import ColumnarJoinOperator
from flinkpy.windowing.joins.slices_on_disk import SlicesOnDisk
from flinkpy.windowing.joins.window_co_group import WindowCoGroupOperator
from flinkpy.windowing.joins.window_join import WindowJoinOperator
from tests.operators.joining import Subtasks, disordered
from tests.windowing.joins import ASSIGNERS, FIRST, SLIDING, columns, group, pair

pytest.importorskip("rocksdict")

_IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
NO_ROOM: dict[str, Any] = {STATE_BACKEND.key: "rocksdb", ROCKSDB_OBJECTS.key: "0 b"}
if _IN_MEMORY is not None:
    NO_ROOM[ROCKSDB_DIRECTORY.key] = _IN_MEMORY
Made: TypeAlias = "tuple[Callable[[Any, int], Any], Any]"  # the operator, and its batches
FORMS: dict[str, Made] = {
    "join": (partial(WindowJoinOperator, pair, FIRST, FIRST), None),
    "co-group": (partial(WindowCoGroupOperator, group, FIRST, FIRST), None),
    "columns": (lambda assigner, _: ColumnarJoinOperator(["k"], ["k"], assigner), columns),
}


@pytest.fixture(autouse=True)
def _looks_at_each_batch() -> Iterator[None]:
    with mock.patch.multiple(SlicesOnDisk, few=0, at_once=2):
        yield


class Changing(Subtasks):
    """Each start is with the next of these backends."""

    def __init__(self, make: Any, batches: Any, backends: Sequence[str]) -> None:
        self._backends = cycle(backends)
        super().__init__(make, batches=batches, configuration=self._next())

    def _next(self) -> dict[str, Any]:
        return NO_ROOM | {STATE_BACKEND.key: next(self._backends)}

    def restart(self, parallelism: int, configuration: dict[str, Any] | None = None) -> None:
        super().restart(parallelism, configuration or self._next())


def by_time(of: Any) -> list[Any]:
    return sorted(of.main, key=lambda result: (result[1], repr(result[0])))


@pytest.mark.wide(but=("join",))
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=12, deadline=None)
@given(
    disordered(at_least=10),
    ASSIGNERS,
    st.sampled_from([0, 0, 7]),
    st.lists(st.sampled_from(["rocksdb", "rocksdb", "hashmap"]), min_size=3, max_size=3),
)
def test_joins_without_room_in_memory_give_what_joins_in_memory_give(
    form: str, steps: list[Any], assigner: Any, lateness: int, backends: list[str]
) -> None:
    make, batches = FORMS[form]
    memory = Subtasks(lambda: make(assigner, lateness), batches=batches)
    disk = Changing(lambda: make(assigner, lateness), batches, backends)
    assert by_time(disk.run(steps)) == by_time(memory.run(steps))
    memory.close()
    disk.close()


@pytest.mark.parametrize("form", FORMS)
def test_records_that_come_behind_a_restore_lie_beside_those_on_disk(form: str) -> None:
    make, batches = FORMS[form]
    left, right = [[((key, key), 3)] for key in range(4)], [[((key, 9), 4)] for key in range(4)]
    records = [*((0, each) for each in left), *((1, each) for each in right)]
    # the first of both windows of 3 and 4 fires before the first restart
    steps = [0, *records, 6, ("restart", 1, 6), *records, ("restart", 2, 7), *records, 100]
    memory = Subtasks(lambda: make(SLIDING, 0), batches=batches)
    expected = by_time(memory.run(steps))
    for backends in (["rocksdb"], ["rocksdb", "hashmap", "rocksdb"]):
        disk = Changing(lambda: make(SLIDING, 0), batches, backends)
        assert by_time(disk.run(steps)) == expected
        disk.close()
    memory.close()
