"""Entries by key and moment on disk against a dict of them: read, put together, saved in files and
in one piece, and restored with another number of subtasks and another backend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.keys import canonical_key, key_group, key_group_range
from flinkpy.state.snapshots.saved_state import SavedState, share_of
from flinkpy.state.timed_entries import TimedEntries
from tests.state.helpers import MAX_PARALLELISM, backend, close_all
from tests.state.test_incremental_rocksdb import Checkpoints, incremental

pytest.importorskip("rocksdict")

Model = dict[tuple[int, Any], Any]
NAME = "_entries"
KEYS = st.sampled_from(["a", "b", 1, 2.5, True, (1, "c"), float("nan"), None]).map(canonical_key)
MOMENTS = st.integers(-1, 2)
STEPS = st.lists(
    st.tuples(MOMENTS, st.dictionaries(KEYS, st.integers() | st.lists(st.integers())))
    | MOMENTS.map(lambda moment: (moment, None)),
    max_size=8,
)


@pytest.fixture(autouse=True, scope="module")
def closed_in_the_end() -> Iterator[None]:
    yield
    close_all()


def do(steps: Any, entries: list[TimedEntries], parallelism: int, model: Model) -> None:
    """Each subtask gets the keys of its groups."""
    for moment, values in steps:
        for subtask, each in enumerate(entries):
            groups = key_group_range(subtask, MAX_PARALLELISM, parallelism)
            if values is None:
                each.drop(moment)
            else:
                mine = [(key, values[key]) for key in values if group(key) in groups]
                each.put(moment, mine)
        if values is None:
            for at in [at for at in model if at[0] == moment]:
                del model[at]
        else:
            # a key that is there keeps its form
            model.update({(moment, key): value for key, value in values.items()})


def group(key: Any) -> int:
    return key_group(key, MAX_PARALLELISM)


def read(entries: list[TimedEntries], size: int) -> Model:
    found: Model = {}
    for each in entries:
        moments = sorted(each.moments())
        for parts in each.together(moments, size):
            assert len(set().union(*parts)) <= size
            for moment, part in zip(moments, parts):
                assert not found.keys() & {(moment, key) for key in part}
                found |= {(moment, key): value for key, value in part.items()}
    return found


@pytest.mark.wide(but=("one piece",))
@settings(max_examples=15, deadline=None)
@given(STEPS, STEPS, st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 3)]), st.integers(1, 3))
@pytest.mark.parametrize("way", ["files", "files into memory", "one piece"])
def test_entries_on_disk_are_those_of_a_dict(
    way: str, steps: Any, later: Any, scales: tuple[int, int], size: int
) -> None:
    checkpoints, model = Checkpoints(), Model()
    backends = [
        incremental(key_group_range(subtask, MAX_PARALLELISM, scales[0]))
        for subtask in range(scales[0])
    ]
    entries = [each.timed_entries(NAME) for each in backends]
    do([(7, {"a": 0, "b": 0, 1: 0, "d": 0, "g": 0})], entries, scales[0], model)
    do(steps, entries, scales[0], model)
    assert read(entries, size) == model
    keys = [key for _, key in model]
    assert {
        (moment, key): value
        for each in entries
        for moment in each.moments()
        for key, value in each.get(moment, keys).items()
    } == model
    if way == "one piece":
        rest = [SavedState(each.freeze().write()) for each in backends]
    else:
        saved = checkpoints.save(*backends)
    do([(7, None), *later], entries, scales[0], {})  # what was saved is not touched
    restored: Model = {}
    for subtask in range(scales[1]):
        groups = key_group_range(subtask, MAX_PARALLELISM, scales[1])
        into = incremental(groups) if way == "files" else backend(groups=groups, kind="hashmap")
        if way == "one piece":
            share = share_of(rest, MAX_PARALLELISM, scales[1], subtask)
            assert share.keyed is not None
            into.restore(share.keyed)
        else:
            kind = "rocksdb" if way == "files" else "hashmap"
            checkpoints.restore(saved, into, groups, kind)
        found = into.timed_entries(NAME)
        if found is not None:
            restored |= read([found], size)
        for key, values in into.take_timed(NAME).items() if found is None else ():
            restored |= {(moment, key): value for (moment, _), value in values.items()}
        into.close()
    assert restored == model
    for each in backends:
        each.close()
