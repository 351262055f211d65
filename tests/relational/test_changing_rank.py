"""The best rows of partitions against plain Python, row for row; batches of any size, restarts with
another parallelism between them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.core.errors import ProgramError
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.core.options.state import COLUMNS_MEMORY
from flinkpy.relational.ordering.rank_rows import RankSpec
from flinkpy.relational.ranks.changing_rank import ChangingRankOperator, ChangingRankSpec
from flinkpy.sql.physical.physical_nodes import RankStrategy
from flinkpy.sql.rex.rex_nodes import SortKey
from tests.operators.in_pieces import InPieces
from tests.relational.changing_subtasks import (
    RESTART,
    Change,
    ChangingSubtasks,
    folded,
    folded_by,
    shown,
)
from tests.relational.drawn_changes import ROWS, SIZES, changelogs, inserts
from tests.relational.plain_ranks import PlainRank

APPEND, UPDATE_FAST, RETRACT = RankStrategy
ORDERS = (
    (SortKey(2, descending=True),),
    (SortKey(3),),
    (SortKey(2, nulls_first=True), SortKey(3, descending=True)),
    (SortKey(1, descending=True),),
    (),
)
IN_PIECES: dict[str, Any] = {CHECKPOINT_INCREMENTAL.key: True}
RANGES = ((1, 1), (1, 2), (1, 3), (2, 3), (3, 3), (2, 1 << 62))


@st.composite
def specs(draw: Any, strategy: RankStrategy) -> ChangingRankSpec:
    first, last = draw(st.sampled_from(RANGES))
    partition = draw(st.sampled_from([(0,), (0, 1), ()]))
    rank = RankSpec(
        "ROW_NUMBER", partition, draw(st.sampled_from(ORDERS)), first, last, draw(st.booleans())
    )
    return ChangingRankSpec(rank, strategy, ALL_CHANGES)


def subtasks(
    spec: ChangingRankSpec, ttl_ms: int = 0, options: dict[str, Any] | None = None
) -> ChangingSubtasks:
    schema = ROWS.append(pa.field("rank", pa.int64())) if spec.rank.gives_rank else ROWS
    return ChangingSubtasks(
        lambda: ChangingRankOperator(spec, ROWS, schema, ttl_ms), ROWS, spec.rank.partition, options
    )


def check(
    spec: ChangingRankSpec, changes: list[Any], size: int, options: dict[str, Any] | None = None
) -> None:
    expected = PlainRank(spec).run(changes)
    found = subtasks(spec, options=options).run_changes(changes, size)
    if size == 1:
        assert found == expected
    assert folded(found) == folded(expected)


@settings(max_examples=24)
@given(st.data(), inserts(), SIZES)
def test_of_rows_that_are_added_the_best_are_given(
    data: st.DataObject, changes: list[Any], size: int
) -> None:
    check(data.draw(specs(APPEND)), changes, size, data.draw(st.sampled_from([{}, IN_PIECES])))


@settings(max_examples=40)
@given(st.data(), changelogs(), SIZES)
def test_of_rows_that_change_the_best_are_given(
    data: st.DataObject, changes: list[Any], size: int
) -> None:
    memory = data.draw(st.sampled_from([{}, {COLUMNS_MEMORY.key: "0 b"}, IN_PIECES]))
    check(data.draw(specs(RETRACT)), changes, size, memory)


@st.composite
def rising(draw: Any) -> list[Change | str]:
    """Updates by (k, name) whose n never falls."""
    numbers: dict[Any, int] = {}
    found: list[Change | str] = []
    for change in draw(inserts()):
        if change == RESTART:
            found.append(RESTART)
            continue
        key, name, value, more = change[1]
        kind = "+U" if (key, name) in numbers else "+I"
        numbers[key, name] = numbers.get((key, name), 0) + more
        found.append((kind, (key, name, value, numbers[key, name])))
    return found


@settings(max_examples=24)
@given(
    rising(),
    SIZES,
    st.sampled_from(RANGES[:-1]),
    st.booleans(),
    st.sampled_from([(0,), (1,)]),
    st.booleans(),
)
def test_rows_that_only_rise_are_found_by_their_key(
    changes: list[Any], size: int, wanted: Any, gives_rank: bool, partition: Any, in_pieces: bool
) -> None:
    order = (SortKey(3, descending=True, nulls_first=False),)
    rank = RankSpec("ROW_NUMBER", partition, order, wanted[0], wanted[1], gives_rank)
    spec = ChangingRankSpec(rank, UPDATE_FAST, ALL_CHANGES, (0, 1))
    check(spec, changes, size, IN_PIECES if in_pieces else {})


@settings(max_examples=24)
@given(st.data(), changelogs(), SIZES)
def test_who_wants_no_rows_before_updates_gets_what_stands(
    data: st.DataObject, changes: list[Any], size: int
) -> None:
    spec = data.draw(specs(RETRACT))
    upserting = ChangingRankSpec(spec.rank, RETRACT, ChangelogMode.upsert())
    found = subtasks(upserting).run_changes(changes, size)
    expected = folded(PlainRank(spec).run(changes))
    if spec.rank.gives_rank:
        keys = (*spec.rank.partition, len(ROWS))
        assert Counter(folded_by(found, keys).values()) == expected
    else:
        assert folded(found) == expected


@settings(max_examples=16)
@given(st.data(), changelogs(), st.lists(st.integers(0, 700), min_size=40, max_size=40))
def test_a_partition_that_was_not_written_to_for_its_time_is_forgotten(
    data: st.DataObject, changes: list[Any], pauses: list[int]
) -> None:
    spec = data.draw(specs(RETRACT))
    of, plain = subtasks(spec, ttl_ms=1000), PlainRank(spec)
    written: dict[Any, int] = {}
    now = 0
    for at, change in enumerate(changes):
        now += pauses[at % len(pauses)]
        of.timers.advance(pauses[at % len(pauses)] / 1000)
        if change == RESTART:
            of.restart(at % 3 + 1 if spec.rank.partition else 1)
            continue
        key = tuple(change[1][at] for at in spec.rank.partition)
        if written.get(key, now) <= now - 1000:
            plain.forget(key)
        written[key] = now
        assert of.take([change]) == plain.take(change[0], tuple(map(shown, change[1])))


def test_what_the_best_rows_do_not_need_is_not_kept() -> None:
    rank = RankSpec("ROW_NUMBER", (0,), (SortKey(3, descending=True),), 1, 3)
    of = subtasks(ChangingRankSpec(rank, APPEND, ALL_CHANGES), ttl_ms=1000)
    of.run_changes([("+I", (key % 2, "a", 1.0, key)) for key in range(100)], 7)
    assert of.operators[0].entries_held() == 6
    of.timers.advance(2)
    of.take([("+I", (5, "a", 1.0, 1))])
    assert of.operators[0].entries_held() == 1


@pytest.mark.wide
def test_rows_that_take_others_back_behind_the_best_ones_leave_nothing() -> None:
    rank = RankSpec("ROW_NUMBER", (0,), (SortKey(3),), 1, 2)
    of = subtasks(ChangingRankSpec(rank, RETRACT, ALL_CHANGES))
    of.take([("+I", (1, "a", 1.0, number)) for number in range(8)])
    for number in range(100, 1100):
        assert of.take([("+I", (1, "b", 1.0, number))]) == []
        assert of.take([("-D", (1, "b", 1.0, number))]) == []
    assert of.operators[0].entries_held() < 200
    found = of.take([("-D", (1, "a", 1.0, number)) for number in range(7)])
    assert [row[3] for kind, row in found if kind == "+I"] == [7]
    of.take([("-D", (1, "a", 1.0, 7))])
    assert of.operators[0].entries_held() == 0


def test_other_ranks_are_refused() -> None:
    with pytest.raises(ProgramError, match="use ROW_NUMBER"):
        ChangingRankSpec(RankSpec("RANK", (0,), (SortKey(1),), 1, 2), APPEND, ALL_CHANGES)


def test_a_row_that_falls_against_the_promise_is_still_replaced() -> None:
    """What is in front may have forgotten a group by its TTL, whose count begins again."""
    rank = RankSpec("ROW_NUMBER", (0,), (SortKey(3, descending=True),), 1, 2)
    of = subtasks(ChangingRankSpec(rank, UPDATE_FAST, ALL_CHANGES, (0, 1)))
    of.take(
        [("+I", (1, "a", 1.0, 8)), ("+I", (1, "b", 1.0, 9)), ("+I", (1, "much longer", 1.0, 7))]
    )
    assert of.take([("+U", (1, "a", 1.0, 1))]) == [
        ("-U", (1, "a", 1.0, 8)),
        ("+U", (1, "a", 1.0, 1)),
    ]


def test_a_row_that_was_taken_back_behind_the_best_does_not_come_up_after_a_restart(
    tmp_path: Path,
) -> None:
    rank = RankSpec("ROW_NUMBER", (0,), (SortKey(3),), 1, 1, False)
    of = subtasks(ChangingRankSpec(rank, RETRACT, ALL_CHANGES), options=IN_PIECES)
    rows = [(0, "a", 0.5, number) for number in range(30)]
    of.take([("+I", row) for row in rows])
    assert of.take([("-D", rows[25])]) == []
    checkpoints = InPieces(of, tmp_path)
    checkpoints.take()
    checkpoints.restart(2)
    best = [
        change[1][3] for row in rows[:28] if row != rows[25] for change in of.take([("-D", row)])
    ]
    assert 25 not in best
    assert {*range(25), 26, 27, 28} <= set(best)
    of.close()
