"""The last row of each key against a dict: deduplication, upserts made whole, TTL; batches of any
size, restarts with another parallelism between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.relational.ranks.deduplicated_rows import LastRowsOperator
from flinkpy.relational.ranks.keeps_last_rows import KeepsLastRows
from flinkpy.relational.ranks.normalized_rows import NormalizedRowsOperator
from tests.relational.changing_subtasks import (
    RESTART,
    Change,
    ChangingSubtasks,
    folded,
    folded_by,
    shown,
)
from tests.relational.drawn_changes import ROWS, SIZES, inserts, upserts

UPSERT = ChangelogMode.upsert()
TIMED = pa.schema([("k", pa.int64()), ("name", pa.string()), ("t", pa.timestamp("ms"))])
TTL_MS = 1000
Rule = Callable[[Any, Change], list[Change]]


def last_by_arrival(old: Any, change: Change) -> list[Change]:
    if old == change[1]:
        return []
    return [("+I", change[1])] if old is None else [("-U", old), ("+U", change[1])]


def normalized(old: Any, change: Change) -> list[Change]:
    if change[0] in ("+I", "+U"):
        return last_by_arrival(old, change)
    return [] if old is None else [("-D", old)]


def last_by_time(old: Any, change: Change) -> list[Change]:
    if old is None:
        return [("+I", change[1])]
    return [("-U", old), ("+U", change[1])] if old[2] <= change[1][2] else []


def plain(changes: list[Any], rule: Rule) -> list[Change]:
    """What comes of one change after the other."""
    rows: dict[Any, Any] = {}
    found: list[Change] = []
    for change in changes:
        if change != RESTART:
            row = tuple(map(shown, change[1]))
            given = rule(rows.get(row[0]), (change[0], row))
            found += given
            if given:
                rows[row[0]] = given[-1][1] if given[-1][0] != "-D" else None
    return found


def last_rows(time: int | None = None, changes: ChangelogMode = ALL_CHANGES) -> LastRowsOperator:
    rows = ROWS if time is None else TIMED
    return LastRowsOperator(rows, time, (0,), rows, changes)


def normalizing(changes: ChangelogMode = ALL_CHANGES) -> NormalizedRowsOperator:
    return NormalizedRowsOperator(ROWS, (0,), ROWS, changes)


def check(make: Callable[..., KeepsLastRows], changes: list[Any], size: int, rule: Rule) -> None:
    schema = make().inputs
    expected = plain(changes, rule)
    found = ChangingSubtasks(make, schema, (0,)).run_changes(changes, size)
    if size == 1:
        assert found == expected
    assert folded(found) == folded(expected)
    upserted = ChangingSubtasks(lambda: make(changes=UPSERT), schema, (0,))
    found = upserted.run_changes(changes, size)
    assert not [change for change in found if change[0] == "-U"]
    assert folded_by(found, (0,)) == folded_by(expected, (0,))


@settings(max_examples=16)
@given(inserts(), SIZES)
def test_the_row_that_came_last_stands(changes: list[Any], size: int) -> None:
    check(last_rows, changes, size, last_by_arrival)


@settings(max_examples=16)
@given(inserts(), SIZES)
def test_the_row_with_the_greatest_time_stands(changes: list[Any], size: int) -> None:
    timed = [
        each if each == RESTART else ("+I", (each[1][0], each[1][1], each[1][3]))
        for each in changes
    ]
    of = ChangingSubtasks(lambda: last_rows(2), TIMED, (0,))
    found = [
        (kind, (*row[:2], int(row[2].timestamp() * 1000)))
        for kind, row in of.run_changes(timed, size)
    ]
    expected = plain(timed, last_by_time)
    if size == 1:
        assert found == expected
    assert folded(found) == folded(expected)


@settings(max_examples=16)
@given(upserts(), SIZES)
def test_upserts_become_all_changes(changes: list[Any], size: int) -> None:
    check(normalizing, changes, size, normalized)


@settings(max_examples=16)
@given(upserts(), st.lists(st.integers(0, 700), min_size=40, max_size=40), SIZES)
def test_a_key_that_was_not_written_to_for_its_time_is_forgotten(
    changes: list[Any], pauses: list[int], size: int
) -> None:
    of = ChangingSubtasks(
        lambda: NormalizedRowsOperator(ROWS, (0,), ROWS, ALL_CHANGES, TTL_MS), ROWS, (0,)
    )
    rows: dict[Any, Any] = {}
    written: dict[Any, int] = {}
    now = 0
    for at, change in enumerate(changes):
        pause = pauses[at % len(pauses)]
        now += pause
        of.timers.advance(pause / 1000)
        if change == RESTART:
            of.restart(at % 3 + 1)
            continue
        row = tuple(map(shown, change[1]))
        old = rows.get(row[0]) if written.get(row[0], -TTL_MS) > now - TTL_MS else None
        expected = normalized(old, (change[0], row))
        if change[0] in ("+I", "+U") and not expected:
            expected = [("-U", row), ("+U", row)]  # so that those behind hear of it
        assert of.take([change]) == expected
        rows[row[0]] = row if change[0] in ("+I", "+U") else None
        written[row[0]] = now


def test_what_has_expired_is_swept() -> None:
    of = ChangingSubtasks(
        lambda: NormalizedRowsOperator(ROWS, (0,), ROWS, ALL_CHANGES, TTL_MS), ROWS, (0,)
    )
    of.take([("+I", (key, "a", 1.0, 1)) for key in range(100)])
    of.timers.advance(2)
    for key in range(100, 130):
        of.take([("+I", (key, "a", 1.0, 1))])
    assert of.operators[0].entries_held() == 30


@pytest.mark.parametrize("size", [1, 5])
def test_rows_without_a_key_replace_each_other(size: int) -> None:
    of = ChangingSubtasks(lambda: LastRowsOperator(ROWS, None, (), ROWS, ALL_CHANGES), ROWS, ())
    changes: list[Any] = [("+I", (each, "a", 1.0, each)) for each in range(5)]
    changes.insert(3, RESTART)
    assert folded(of.run_changes(changes, size)) == {(4, "a", 1.0, 4): 1}
