"""GROUP BY in two phases gives what it gives in one: in each batch, whatever the batches are, from
several senders, and from a savepoint of the other form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.relational.groups.changing_groups import GroupAggregateOperator, GroupSpec
from flinkpy.relational.groups.groups_in_phases import GlobalGroupsOperator, LocalGroupsOperator
from tests.operators.harness import do_all
from tests.operators.joining import BARRIER, Gathered, Subtasks
from tests.relational.changing_groups_in_python import COMES, DELETE, INSERT, Row
from tests.relational.test_changing_groups import (
    CALLS,
    KEYS,
    ROWS,
    SubtasksOfGroups,
    changelogs,
    pushed_in_batches,
    schema_of_results,
    subtasks_of,
    twin_of,
)

_IN_ORDER = {"FIRST_VALUE", "LAST_VALUE", "LISTAGG", "ARRAY_AGG", "ARRAY_AGG in order", "COLLECT"}


class Parts(Gathered):
    """What the first phase gives."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[ColumnBatch] = []

    def emit(self, batch: Batch) -> None:
        assert isinstance(batch, ColumnBatch)
        assert batch.kinds is None
        self.batches.append(batch)


class Senders(Subtasks):
    """Subtasks of the first phase. A row is always taken back where it came."""

    output: Parts

    def new_output(self) -> Parts:
        return Parts()


class GroupsInPhases(SubtasksOfGroups):
    """Rows go through both phases."""

    def __init__(
        self, keys: Sequence[int], names: Sequence[str], senders: int, *, takes_back: bool
    ) -> None:
        calls = tuple(CALLS[name][0] for name in names)
        spec = GroupSpec(tuple(keys), calls, takes_back=takes_back)
        schema = schema_of_results(keys, names)
        results = [CALLS[name][1] for name in names]
        self._rows = SubtasksOfGroups(
            lambda: GroupAggregateOperator(spec, ROWS, schema), keys, ROWS
        )
        self._locals = Senders(lambda: LocalGroupsOperator(spec, ROWS, results), senders)
        parts = self._locals.operators[0].schema
        super().__init__(lambda: GlobalGroupsOperator(spec, ROWS, schema), range(len(keys)), parts)

    def push_changes(self, changes: Sequence[tuple[int, Row]]) -> list[tuple[int, Row]]:
        for number, sender in enumerate(self._locals.operators):
            count = len(self._locals.operators)
            mine = [each for each in changes if hash(repr(each[1])) % count == number]
            if mine:
                do_all(sender.process_batch(self._rows.batch_of(mine)))
        for parts in self._locals.output.batches:
            self.push_batch(parts)
        self._locals.output.batches.clear()
        return self.output.taken()

    def saved(self) -> list[Any]:
        return [operator.freeze_state(BARRIER).write() for operator in self.operators]


def folded(changes: Sequence[tuple[int, Row]]) -> list[str]:
    rows: list[str] = []
    for kind, row in changes:
        if kind in COMES:
            rows.append(repr(row))
        else:
            rows.remove(repr(row))
    return sorted(rows)


@pytest.mark.wide
@settings(max_examples=30)
@given(st.data())
def test_two_phases_give_what_one_gives(data: st.DataObject) -> None:
    takes_back = data.draw(st.booleans())
    keys = KEYS[data.draw(st.sampled_from(sorted(KEYS)))]
    senders = data.draw(st.sampled_from([1, 3]))
    calls = sorted(CALLS) if senders == 1 else sorted(set(CALLS) - _IN_ORDER)
    names = data.draw(st.lists(st.sampled_from(calls), min_size=not keys, max_size=5, unique=True))
    changes = data.draw(changelogs(takes_back))
    phases = GroupsInPhases(keys, names, senders, takes_back=takes_back)
    twin = twin_of(keys, names)
    all_given, all_wanted = [], []
    for batch in pushed_in_batches(changes, data.draw(st.sampled_from([1, 7, 100]))):
        found, wanted = phases.push_changes(batch), twin.push(batch)
        if senders == 1:  # the same rows in the same batches
            assert sorted(found, key=repr) == sorted(wanted, key=repr)
        all_given += found
        all_wanted += wanted
        assert folded(all_given) == folded(all_wanted)
        if data.draw(st.integers(0, 3)) == 0:
            phases.restart(data.draw(st.sampled_from([1, 3])) if keys else 1)
    phases.close()


def test_a_savepoint_of_one_form_is_good_for_the_other() -> None:
    names = ["COUNT(*)", "AVG", "MIN", "LISTAGG", "COUNT DISTINCT"]
    rows = [(INSERT, (at % 3, None, at, None, None, "u", True)) for at in range(9)]
    one = subtasks_of((0,), names)
    two = GroupsInPhases((0,), names, 2, takes_back=True)
    one.push_changes(rows)
    saved = [operator.freeze_state(BARRIER).write() for operator in one.operators]
    two.start(3, saved)
    wanted = one.push_changes([(DELETE, rows[4][1])])
    assert two.push_changes([(DELETE, rows[4][1])]) == wanted
    one.start(1, two.saved())
    assert sorted(one.push_changes(rows[:3])) == sorted(two.push_changes(rows[:3]))
    one.close()
    two.close()
