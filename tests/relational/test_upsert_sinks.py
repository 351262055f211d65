"""What stands in front of the sink of a table with a primary key, against plain Python."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.relational.row_by_row.drop_update_before import DropUpdateBeforeOperator
from flinkpy.relational.sinks.materialiser import MaterialiserOperator
from flinkpy.relational.sinks.net_changes import NetChangesOperator
from tests.relational.changing_subtasks import RESTART, Change, ChangingSubtasks, folded_by, shown
from tests.relational.drawn_changes import ROWS, SIZES, changelogs, upserts

TTL_MS = 1000


class PlainMaterialiser:
    """Per key the list of rows; the last one stands."""

    def __init__(self) -> None:
        self.lists: dict[Any, list[Any]] = {}

    def take(self, change: Change) -> list[Change]:
        kind, row = change[0], tuple(map(shown, change[1]))
        rows = self.lists.setdefault(row[0], [])
        if kind in ("+I", "+U"):
            rows.append(row)
            return [("+U" if len(rows) > 1 else "+I", row)]
        if row not in rows:
            return []
        at = rows.index(row)
        del rows[at]
        if not rows:
            return [("-D", row)]
        return [("+U", rows[-1])] if at == len(rows) else []


@settings(max_examples=24)
@given(changelogs(), SIZES, st.booleans())
def test_the_last_row_of_a_key_stands(changes: list[Any], size: int, in_pieces: bool) -> None:
    plain = PlainMaterialiser()
    expected = [each for change in changes if change != RESTART for each in plain.take(change)]
    options = {CHECKPOINT_INCREMENTAL.key: in_pieces}
    of = ChangingSubtasks(lambda: MaterialiserOperator(ROWS, (0,)), ROWS, (0,), options)
    found = of.run_changes(changes, size)
    if size == 1:
        assert found == expected
    assert folded_by(found, (0,)) == folded_by(expected, (0,))
    assert sum(each.entries_held() for each in of.operators) == sum(map(len, plain.lists.values()))


@settings(max_examples=16)
@given(changelogs(), st.lists(st.integers(0, 700), min_size=40, max_size=40))
def test_a_list_that_was_not_written_to_for_its_time_is_forgotten(
    changes: list[Any], pauses: list[int]
) -> None:
    of = ChangingSubtasks(lambda: MaterialiserOperator(ROWS, (0,), TTL_MS), ROWS, (0,))
    plain, now = PlainMaterialiser(), 0
    written: dict[Any, int] = {}
    for at, change in enumerate(changes):
        now += pauses[at % len(pauses)]
        of.timers.advance(pauses[at % len(pauses)] / 1000)
        if change == RESTART:
            of.restart(at % 3 + 1)
            continue
        key = change[1][0]
        if written.get(key, now) <= now - TTL_MS:
            plain.lists.pop(key, None)
        written[key] = now
        assert of.take([change]) == plain.take(change)


@settings(max_examples=24)
@given(upserts(), SIZES)
def test_of_a_batch_only_the_last_row_of_a_key_goes_out(changes: list[Any], size: int) -> None:
    of = ChangingSubtasks(lambda: NetChangesOperator(ROWS, (0,)), ROWS, (0,))
    tables: list[dict[Any, Any]] = [{}, {}]
    for change in changes:
        apply(tables[0], change)
    for part in range(0, len(changes), size):
        batch = [change for change in changes[part : part + size] if change != RESTART]
        found = of.take(batch) if batch else []
        assert len({row[0] for _, row in found}) == len(found)
        for each in found:
            apply(tables[1], each)
    assert tables[0] == tables[1]


def apply(table: dict[Any, Any], change: Any) -> None:
    """Writes a change into a table."""
    if change == RESTART:
        return
    row = tuple(map(shown, change[1]))
    if change[0] in ("+I", "+U"):
        table[row[0]] = row
    else:
        table.pop(row[0], None)


def test_rows_that_came_and_went_in_a_batch_are_deleted_to_be_sure() -> None:
    of = ChangingSubtasks(lambda: NetChangesOperator(ROWS, (0,)), ROWS, (0,))
    row, later = (1, "a", 1.0, 1), (1, "a", 2.0, 1)
    assert of.take([("+I", row), ("-D", row)]) == [("-D", row)]
    assert of.take([("+I", row), ("-U", row), ("+U", later)]) == [("+I", later)]
    assert of.take([("-U", row), ("+U", later)]) == [("+U", later)]
    assert of.take([("-U", row)]) == [("-D", row)]


def test_rows_before_updates_are_dropped() -> None:
    of = ChangingSubtasks(lambda: DropUpdateBeforeOperator(ROWS), ROWS, (0,))
    row = (1, "a", 1.0, 1)
    changes: list[Change] = [("+I", row), ("-U", row), ("+U", row), ("-D", row)]
    assert of.take(changes) == [("+I", row), ("+U", row), ("-D", row)]
