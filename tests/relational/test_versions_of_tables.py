"""A join with the versions of a table, against a plain loop over rows: with rows that come out of
order and late, in batches of any size, and with restarts at another parallelism. What feeds it must
tell of every change, also of one that the next row of a batch replaces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.core.keys import channel_of_key_group, key_group
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.temporal_rows_join import TemporalRowsJoinOperator, TemporalTimes
from flinkpy.relational.ranks.deduplicated_rows import LastRowsOperator
from flinkpy.relational.ranks.normalized_rows import NormalizedRowsOperator
from flinkpy.sql.rex.relational_terms import JoinKind
from tests.operators.harness import do_all
from tests.operators.joining import MAX_PARALLELISM
from tests.relational.changing_subtasks import KINDS, ChangingSubtasks, batch_of, parts_of
from tests.relational.subtasks_of_tables import ROWS

BOTH = pa.schema([*ROWS, *(field.with_name(f"{field.name}0") for field in ROWS)])
NOTHING = (None, None, None)
Row: TypeAlias = "tuple[str, tuple[Any, ...]]"  # a kind, and key, number and time


class TwoInputs(ChangingSubtasks):
    """Subtasks of the join, which take changes of both sides."""

    def __init__(self, kind: JoinKind, ttl_ms: int = 0) -> None:
        spec, times = JoinSpec(kind, (0,), (0,)), TemporalTimes(2, 2, ttl_ms)
        super().__init__(
            lambda: TemporalRowsJoinOperator(spec, times, ROWS, ROWS, BOTH, ALL_CHANGES), ROWS, (0,)
        )

    def give(self, side: int, records: Sequence[Row]) -> None:
        batch = batch_of(records, ROWS)
        count = len(self.operators)
        groups = [key_group(row[0], MAX_PARALLELISM) for _, row in records]
        channels = np.array([channel_of_key_group(g, MAX_PARALLELISM, count) for g in groups])
        for channel, operator in enumerate(self.operators):
            mine = np.flatnonzero(channels == channel)
            if len(mine):
                take = (operator.process_batch1, operator.process_batch2)[side]
                do_all(take(batch.take(mine)))

    def run_steps(self, steps: Sequence[Any], size: int) -> dict[Any, list[Row]]:
        for step in steps:
            if isinstance(step, int):
                self.watermark(step)
            elif step[0] == "restart":
                self.restart(step[1])
            else:
                for part in parts_of(step[1], size):
                    self.give(step[0], part)
        return by_key(self.output.changes)


def by_key(changes: Sequence[Row]) -> dict[Any, list[Row]]:
    """The changes of each key in their order; those of several have none."""
    found: dict[Any, list[Row]] = defaultdict(list)
    for kind, row in changes:
        found[row[0]].append((kind, tuple(map(_milliseconds, row))))
    return dict(found)


def _milliseconds(value: Any) -> Any:
    return round(value.timestamp() * 1000) if hasattr(value, "timestamp") else value


def joined_row_by_row(steps: Sequence[Any], kind: JoinKind) -> dict[Any, list[Row]]:
    """As Flink's operator does: a version of a key for each time, of which the last one up to the
    watermark stays; rows of the left in the order in which they came."""
    waiting: list[Row] = []
    versions: dict[Any, dict[int, tuple[bool, Any]]] = defaultdict(dict)
    found: list[Row] = []

    def met(key: Any, time: int) -> Any:
        earlier = [each for each in versions[key] if each <= time]
        is_there, row = versions[key][max(earlier)] if earlier else (False, None)
        return row if is_there else None

    for step in steps:
        if isinstance(step, int):
            for change, row in [each for each in waiting if each[1][2] <= step]:
                partner = met(row[0], row[2])
                if partner is not None or kind is JoinKind.LEFT:
                    found.append((change, (*row, *(partner or NOTHING))))
            waiting = [each for each in waiting if each[1][2] > step]
            for key, times in versions.items():
                past = [each for each in times if each <= step]
                kept = {each for each in past if each == max(past) and times[each][0]}
                versions[key] = {at: times[at] for at in times if at > step or at in kept}
        elif step[0] == 0:
            waiting += step[1]
        elif step[0] == 1:
            for change, row in step[1]:
                versions[row[0]][row[2]] = (change in ("+I", "+U"), row)
    return by_key(found)


@st.composite
def two_sides(draw: st.DrawFn) -> list[Any]:
    """Rows of both sides, watermarks that go on, and restarts; the end of time."""
    keys, times = st.integers(0, 3), st.integers(0, 40)
    rows = st.tuples(st.sampled_from(KINDS), st.tuples(keys, st.integers(0, 99), times))
    batch = st.lists(rows, min_size=1, max_size=8)
    sides = st.tuples(st.integers(0, 1), batch)
    restarts = st.tuples(st.just("restart"), st.integers(1, 3))
    steps: list[Any] = draw(st.lists(st.one_of(sides, sides, st.just(0), restarts), max_size=12))
    now = 0
    for at, each in enumerate(steps):
        if each == 0:
            now += draw(st.integers(0, 15))
            steps[at] = now
    return [*steps, MAX_TIMESTAMP]


# a version that comes late, and one that is deleted
LATE = [(1, [("+I", (0, 1, 10))]), 20, (1, [("+I", (0, 2, 5))]), 25]
LATE += [(0, [("+I", (0, 3, 30))]), MAX_TIMESTAMP]
DELETED = [(1, [("+I", (0, 1, 10)), ("-D", (0, 1, 12))]), (0, [("+I", (0, 3, 13))]), MAX_TIMESTAMP]


@settings(max_examples=60)
@given(two_sides(), st.sampled_from([JoinKind.INNER, JoinKind.LEFT]))
@example(LATE, JoinKind.INNER)
@example(DELETED, JoinKind.INNER)
def test_a_row_meets_the_version_of_its_time_in_batches_of_any_size_and_after_restarts(
    steps: list[Any], kind: JoinKind
) -> None:
    wanted = joined_row_by_row(steps, kind)
    for size in (1, 7, 1 << 30):
        of = TwoInputs(kind)
        assert of.run_steps(steps, size) == wanted
        stand = sum(each.entries_held() for each in of.operators)
        assert stand <= 4  # at the end one version of each key, and nothing that waits


def test_a_version_that_nobody_asks_for_is_forgotten_and_a_row_keeps_it() -> None:
    of = TwoInputs(JoinKind.LEFT, ttl_ms=1000)
    of.give(1, [("+I", (1, 10, 0)), ("+I", (2, 20, 0))])
    of.watermark(5)
    of.timers.advance(0.6)
    of.give(0, [("+I", (1, 0, 8))])
    of.watermark(10)
    of.timers.advance(0.6)
    of.give(0, [("+I", (1, 0, 12)), ("+I", (2, 0, 12))])
    of.watermark(20)
    assert [(row[0], row[4]) for _, row in of.output.changes] == [(1, 10), (1, 10), (2, None)]


UPSERTS = ChangelogMode.upsert()
rows_of_few_keys = st.lists(
    st.tuples(
        st.sampled_from(["+I", "+U", "-D"]),
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 5)),
    ),
    max_size=30,
)


@settings(max_examples=40)
@given(rows_of_few_keys, st.sampled_from([UPSERTS, ALL_CHANGES]), st.booleans())
@example([("+I", (0, 0, 0)), ("-D", (0, 0, 0)), ("+I", (0, 0, 0))], ALL_CHANGES, False)
def test_every_change_goes_out_whatever_the_batches_are(
    changes: list[Row], gives: ChangelogMode, keeps_last: bool
) -> None:
    if keeps_last:
        changes = [("+I", row) for _, row in changes]

    def made(*, every_change: bool) -> Any:
        if keeps_last:
            return LastRowsOperator(ROWS, None, (0,), ROWS, gives, every_change=every_change)
        return NormalizedRowsOperator(ROWS, (0,), ROWS, gives, every_change=every_change)

    one_by_one = ChangingSubtasks(lambda: made(every_change=False), ROWS, (0,))
    wanted = by_key(one_by_one.run_changes(changes, 1))
    for size in (7, 1 << 30):
        of = ChangingSubtasks(lambda: made(every_change=True), ROWS, (0,))
        assert by_key(of.run_changes(changes, size)) == wanted


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT])
def test_a_key_that_is_null_meets_nothing(kind: JoinKind) -> None:
    of = TwoInputs(kind)
    of.give(1, [("+I", (None, 1, 0))])
    of.give(0, [("+I", (None, 2, 5))])
    of.watermark(9)
    assert len(of.output.changes) == (kind is JoinKind.LEFT)
