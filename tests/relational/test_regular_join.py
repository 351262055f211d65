"""Regular joins over changes, against a join row by row in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.sql.calc_program import CalcProgram, ProgramBuilder
from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY, ChangelogMode
from flinkpy.common.logical_types.logical_type import BigIntType, BooleanType
from flinkpy.common.types import RowKind
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.keys import channel_of_key_group
from flinkpy.core.options.state import COLUMNS_MEMORY
from flinkpy.metrics.definitions import ENTRIES, STATE_BYTES
from flinkpy.relational.joins import regular_join
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.kept_rows import JoinInput
from flinkpy.relational.joins.regular_join import RegularJoinOperator
from flinkpy.relational.state.rows_by_group import groups_of_rows
from flinkpy.sql.rex.relational_terms import JoinKind
from tests.operators.harness import do_all
from tests.operators.joining import MAX_PARALLELISM, Gathered, Subtasks
from tests.relational.joins_row_by_row import Change, JoinRowByRow, Row, comparable_row

ROWS = pa.schema([("k", pa.float64()), ("id", pa.int64()), ("v", pa.int64())])
OTHERS = pa.schema([field.with_name(f"{field.name}0") for field in ROWS])
BOTH = pa.schema([*ROWS, *OTHERS])
KEYS = (None, float("nan"), 1.0, 2.0, 3.5)
MEMORIES = (None, "0 b", "1 kb")
ONE_SIDE = (JoinKind.SEMI, JoinKind.ANTI)


def in_memory(size: str | None) -> dict[str, Any]:
    """The configuration with which so much of an operator's rows is in memory; None: all."""
    return {} if size is None else {COLUMNS_MEMORY.key: size}


class GatheredChanges(Gathered):
    """The changes that came out since they were last taken."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[Change] = []

    def emit(self, batch: Batch) -> None:
        assert isinstance(batch, ColumnBatch)
        assert len(batch)
        kinds = np.zeros(len(batch), np.int8) if batch.kinds is None else batch.kinds
        rows = zip(*(column.to_pylist() for column in batch.data.columns))
        self.changes += [(RowKind(k), comparable_row(r)) for k, r in zip(kinds.tolist(), rows)]


class SubtasksOfChanges(Subtasks):
    output: GatheredChanges

    def new_output(self) -> GatheredChanges:
        return GatheredChanges()

    def push_changes(self, side: int, changes: Sequence[Change]) -> list[Change]:
        columns = zip(*(row for _, row in changes))
        arrays = [pa.array(column, field.type) for column, field in zip(columns, ROWS)]
        data = pa.RecordBatch.from_arrays(arrays, schema=(ROWS, OTHERS)[side])
        kinds = np.array([kind.value for kind, _ in changes], np.int8)
        parallelism = len(self.operators)
        keys = () if self.operators[0].spec.null_aware else (0,)
        channels = np.array(
            [
                channel_of_key_group(group, MAX_PARALLELISM, parallelism)
                for group in groups_of_rows(data, keys, MAX_PARALLELISM).tolist()
            ]
        )
        batch = ColumnBatch(data, None, kinds)
        for channel, operator in enumerate(self.operators):
            part = batch.take(np.flatnonzero(channels == channel))
            if len(part):
                do_all((operator.process_batch1, operator.process_batch2)[side](part))
        found, self.output.changes = self.output.changes, []
        return found


def changelog(
    chance: random.Random, count: int, unique: Sequence[int] | None, kinds: ChangelogMode
) -> list[Change]:
    """A legal changelog: what goes is there, and no two rows share a unique key. Without -U in the
    kinds a row of the same key is sent as it is now."""
    live: list[Row] = []
    found: list[Change] = []

    def identity(row: Row) -> Any:
        return None if unique is None else comparable_row(tuple(row[at] for at in unique))

    def fresh() -> Row:
        return chance.choice(KEYS), chance.randrange(4), chance.randrange(3)

    before = kinds.contains(RowKind.UPDATE_BEFORE)
    while len(found) < count:
        row = fresh()
        others = [each for each in live if unique is not None and identity(each) == identity(row)]
        what = chance.random()
        if others or (live and unique is None and what < 0.3):
            old = others[0] if others else chance.choice(live)
            if kinds.is_insert_only:
                continue
            live.remove(old)
            if not before:
                row = (old[0], *row[1:])
            if what < 0.7 or (unique is None and what < 0.15):
                live.append(row)
                found += [(RowKind.UPDATE_BEFORE, old)] if before else []
                found.append((RowKind.UPDATE_AFTER, row))
            else:
                found.append((RowKind.DELETE, old))
        elif live and what < 0.3 and not kinds.is_insert_only:
            found.append((RowKind.DELETE, live.pop(chance.randrange(len(live)))))
        else:
            live.append(row)
            found.append((RowKind.INSERT, row))
    return found


def in_turns(chance: random.Random, changes: Sequence[list[Change]], size: int) -> Iterator[Any]:
    """Batches of both sides in any order."""
    places = [0, 0]
    while any(at < len(each) for at, each in zip(places, changes)):
        side = chance.randrange(2)
        batch = changes[side][places[side] : places[side] + size]
        places[side] += size
        if batch:
            yield side, batch


def folded(changes: Sequence[Change]) -> Counter[Row]:
    """The rows that are there in the end."""
    rows: Counter[Row] = Counter()
    for kind, row in changes:
        rows[row] += 1 if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
    assert all(count >= 0 for count in rows.values())
    return +rows


def v_at_most_v() -> CalcProgram:
    builder = ProgramBuilder()
    left, right = (builder.input(at, BigIntType()) for at in (2, 5))
    return builder.program([], builder.call("<=", [left, right], BooleanType()))


UPSERTS = ChangelogMode.upsert()
LAYOUTS: dict[str, tuple[Sequence[int] | None, ChangelogMode]] = {
    "any rows": (None, ALL_CHANGES),
    "a unique key": ((1,), ALL_CHANGES),
    "a unique join key": ((0,), ALL_CHANGES),
    "rows that only come": (None, INSERT_ONLY),
}


def operator_for(
    kind: JoinKind,
    layouts: Sequence[tuple[Sequence[int] | None, ChangelogMode]],
    condition: CalcProgram | None = None,
    nulls: str = "",
    ttl: Sequence[int] = (0, 0),
    gives: ChangelogMode = ALL_CHANGES,
) -> Callable[[], RegularJoinOperator]:
    is_aware = nulls == "aware" and kind is JoinKind.ANTI
    spec = JoinSpec(kind, (0,), (0,), (nulls == "safe",), condition, is_aware)
    inputs = [
        JoinInput(schema, () if unique is None else (tuple(unique),), kinds, ttl_ms)
        for (unique, kinds), schema, ttl_ms in zip(layouts, (ROWS, OTHERS), ttl)
    ]
    schema = ROWS if kind in ONE_SIDE else BOTH
    return lambda: RegularJoinOperator(spec, inputs[0], inputs[1], schema, gives)


CASES = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(JoinKind),
        "layouts": st.tuples(st.sampled_from(sorted(LAYOUTS)), st.sampled_from(sorted(LAYOUTS))),
        "has_condition": st.booleans(),
        "nulls": st.sampled_from(["", "safe", "aware"]),
        "seed": st.integers(0, 1 << 32),
        "parallelism": st.sampled_from([1, 3]),
        "memory": st.sampled_from(MEMORIES),
    }
)


@settings(max_examples=10)
@given(CASES)
def test_rows_that_come_alone_give_what_they_give_in_flink(case: dict[str, Any]) -> None:
    check_row_by_row(case, 10)


@pytest.mark.wide
@settings(max_examples=100)
@given(CASES)
def test_rows_that_come_alone_give_what_they_give_in_flink_in_many_cases(
    case: dict[str, Any],
) -> None:
    check_row_by_row(case, 25)


def check_row_by_row(case: dict[str, Any], count: int) -> None:
    chance = random.Random(case["seed"])
    layouts = [LAYOUTS[name] for name in case["layouts"]]
    condition = v_at_most_v() if case["has_condition"] else None
    of = SubtasksOfChanges(
        operator_for(case["kind"], layouts, condition, case["nulls"]),
        case["parallelism"],
        configuration=in_memory(case["memory"]),
    )
    model = JoinRowByRow(
        case["kind"],
        0,
        (layouts[0][0], layouts[1][0]),
        (lambda left, right: left[2] <= right[2]) if case["has_condition"] else None,
        case["nulls"] == "safe",
        case["nulls"] == "aware" and case["kind"] is JoinKind.ANTI,
    )
    changes = [changelog(chance, count, *layout) for layout in layouts]
    steps = list(in_turns(chance, changes, 1))
    restart_at = chance.randrange(len(steps))
    for at, (side, [change]) in enumerate(steps):
        if at == restart_at:
            of.restart(chance.choice([1, 2, 3]), in_memory(chance.choice(MEMORIES)))
        found = of.push_changes(side, [change])
        expected = model.take(side, change)
        # Flink has no order among the rows of a key, but among what a row gives it has
        assert [kind for kind, _ in found] == [kind for kind, _ in expected]
        assert Counter(found) == Counter(expected)


@settings(max_examples=20)
@given(CASES, st.sampled_from([7, 1000]), st.booleans())
def test_a_batch_gives_the_net_change_of_its_rows(
    case: dict[str, Any], size: int, in_small_parts: bool
) -> None:
    check_net_changes(case, size, in_small_parts)


@pytest.mark.wide
@settings(max_examples=200)
@given(CASES, st.sampled_from([7, 1000]), st.booleans())
def test_a_batch_gives_the_net_change_of_its_rows_in_many_cases(
    case: dict[str, Any], size: int, in_small_parts: bool
) -> None:
    check_net_changes(case, size, in_small_parts)


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI])
def test_rows_that_replace_others_leave_what_the_net_rows_leave(kind: JoinKind) -> None:
    """The inputs send no -U. Whatever a row met goes when the one that replaces it does not."""
    for seed in range(6):
        chance = random.Random(seed)
        upserts = ChangelogMode.upsert()
        layouts = [((0, 1), upserts), ((0,), upserts)]
        has_condition = seed % 3 > 0
        condition = v_at_most_v() if has_condition else None
        of = SubtasksOfChanges(operator_for(kind, layouts, condition))
        changes = [changelog(chance, 30, *layout) for layout in layouts]
        found: list[Change] = []
        for side, batch in in_turns(chance, changes, (1, 5)[seed % 2]):
            found += of.push_changes(side, batch)
        left, right = (last_by_key(each, key) for each, key in zip(changes, ((0, 1), (0,))))
        model = JoinRowByRow(
            kind, 0, condition=(lambda left, right: left[2] <= right[2]) if has_condition else None
        )
        expected: list[Change] = []
        for side, rows in enumerate((left, right)):
            for row in rows:
                expected += model.take(side, (RowKind.INSERT, row))
        key = (0, 1) if kind in ONE_SIDE else (0, 1, 3)
        assert last_by_key(found, key) == last_by_key(expected, key)


def last_by_key(changes: Sequence[Change], key: Sequence[int]) -> set[Row]:
    """What is left in a table of upserts: the last row of each key."""
    rows: dict[Row, Row] = {}
    for kind, row in changes:
        row = comparable_row(row)
        if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            rows[tuple(row[at] for at in key)] = row
        else:
            rows.pop(tuple(row[at] for at in key), None)
    return set(rows.values())


def check_net_changes(case: dict[str, Any], size: int, in_small_parts: bool) -> None:
    chance = random.Random(case["seed"])
    layouts = [LAYOUTS[name] for name in case["layouts"]]
    condition = v_at_most_v() if case["has_condition"] else None
    of = SubtasksOfChanges(
        operator_for(case["kind"], layouts, condition, case["nulls"]),
        case["parallelism"],
        configuration=in_memory(case["memory"]),
    )
    changes = [changelog(chance, 40, *layout) for layout in layouts]
    found: list[Change] = []
    steps = list(in_turns(chance, changes, size))
    with pytest.MonkeyPatch.context() as patched:
        if in_small_parts:
            patched.setattr(regular_join, "_PAIRS_AT_ONCE", 5)
            patched.setattr(regular_join, "ROWS_AT_ONCE", 3)
        for at, (side, batch) in enumerate(steps):
            if at == len(steps) // 2:
                of.restart(chance.choice([1, 2, 3]), in_memory(chance.choice(MEMORIES)))
            found += of.push_changes(side, batch)
    model = JoinRowByRow(
        case["kind"],
        0,
        condition=(lambda left, right: left[2] <= right[2]) if case["has_condition"] else None,
        null_safe=case["nulls"] == "safe",
        null_aware=case["nulls"] == "aware" and case["kind"] is JoinKind.ANTI,
    )
    expected: list[Change] = []
    for side, each in enumerate(changes):
        for row, count in folded([(kind, comparable_row(row)) for kind, row in each]).items():
            for _ in range(count):
                expected += model.take(side, (RowKind.INSERT, row))
    assert folded(found) == folded(expected)


def test_rows_may_go_in_another_order_than_they_came_in() -> None:
    of = SubtasksOfChanges(operator_for(JoinKind.INNER, [LAYOUTS["any rows"]] * 2))
    rows: list[Row] = [(1.0, 0, 0), (2.0, 0, 0), (1.0, 1, 0)]
    of.push_changes(0, [(RowKind.INSERT, row) for row in rows])
    of.push_changes(0, [(RowKind.DELETE, row) for row in reversed(rows[:2])])
    found = of.push_changes(1, [(RowKind.INSERT, (key, 0, 0)) for key in (1.0, 2.0)])
    assert found == [(RowKind.INSERT, (1.0, 1, 0, 1.0, 0, 0))]


def test_a_row_of_not_in_may_get_another_key() -> None:
    of = SubtasksOfChanges(
        operator_for(JoinKind.ANTI, [LAYOUTS["a unique key"]] * 2, None, "aware")
    )
    of.push_changes(1, [(RowKind.INSERT, (1.0, 0, 0))])
    of.push_changes(1, [(RowKind.UPDATE_BEFORE, (1.0, 0, 0)), (RowKind.UPDATE_AFTER, (2.0, 0, 0))])
    found = of.push_changes(0, [(RowKind.INSERT, (key, int(key), 0)) for key in (1.0, 2.0)])
    assert found == [(RowKind.INSERT, (1.0, 1, 0))]


@pytest.mark.parametrize("memory", [None, "0 b"])
def test_a_join_tells_how_large_its_state_is(memory: str | None) -> None:
    of = SubtasksOfChanges(
        operator_for(JoinKind.LEFT, [LAYOUTS["any rows"]] * 2), configuration=in_memory(memory)
    )
    [operator] = of.operators
    empty = operator.measures(0)
    for side in (0, 1):
        of.push_changes(side, [(RowKind.INSERT, (1.0, at, at)) for at in range(500)])
    told = operator.measures(0)
    assert told[ENTRIES] == empty[ENTRIES] + 1000
    assert told[STATE_BYTES] >= empty[STATE_BYTES] + 1000 * 3 * 8


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.FULL, JoinKind.ANTI])
def test_rows_that_nobody_writes_to_are_forgotten(kind: JoinKind) -> None:
    """Each side by its own time to live; what goes afterwards is taken back all the same."""
    ttl = (1000, 300)
    names = ["a unique key", "a unique join key", "rows that only come"]
    for seed in range(6):
        chance = random.Random(seed)
        layouts = [LAYOUTS[chance.choice(names)] for _ in range(2)]
        of = SubtasksOfChanges(operator_for(kind, layouts, ttl=ttl))
        model = JoinRowByRow(kind, 0, (layouts[0][0], layouts[1][0]), ttl=ttl)
        changes = [changelog(chance, 20, *layout) for layout in layouts]
        now = 0
        for at, (side, [change]) in enumerate(in_turns(chance, changes, 1)):
            if at == 15:
                of.restart(1)
            step = chance.choice([0, 50, 200])
            of.timers.clock.advance(step / 1000)
            now += step
            found, expected = of.push_changes(side, [change]), model.take(side, change, now)
            assert [kind for kind, _ in found] == [kind for kind, _ in expected]
            assert Counter(found) == Counter(expected)
        of.timers.clock.advance(10)
        for _ in range(20):
            of.push_changes(0, [(RowKind.INSERT, (None, 1, 1))])
        [operator] = of.operators
        assert operator.entries_held() == 0
        assert len(operator._index) == 0


def test_with_a_time_to_live_the_memory_of_a_steady_load_is_level_for_ten_minutes() -> None:
    of = SubtasksOfChanges(
        operator_for(JoinKind.LEFT, [LAYOUTS["any rows"]] * 2, ttl=(60_000, 60_000))
    )
    [operator] = of.operators
    sizes, entries = [], []
    for step in range(120):  # of five seconds; each row has a key of its own
        for side in (0, 1):
            rows: list[Row] = [(100.0 * step + at, at, step) for at in range(20)]
            of.push_changes(side, [(RowKind.INSERT, row) for row in rows])
        of.timers.clock.advance(5)
        sizes.append(operator.bytes_held())
        entries.append(operator.entries_held())
    minute = 12
    assert max(entries[2 * minute :]) <= 1.2 * max(entries[minute : 2 * minute])
    assert max(sizes[3 * minute :]) <= 1.2 * max(sizes[minute : 3 * minute])
    assert len(operator._index) <= operator.entries_held()


def cases_of_flink() -> dict[str, list[list[list[str]]]]:
    """By title: each change of an input, and what came of it, as words."""
    text = Path(__file__).with_name("joins_of_flink.txt").read_text("utf-8")
    found: dict[str, list[list[list[str]]]] = {}
    for block in text.split("\n\n")[1:]:
        title, *lines = block.strip("\n").split("\n")
        steps = found[title] = []
        for line in lines:
            if line.startswith(" "):
                steps[-1].append(line.split())
            else:
                steps.append([line.split()])
    return found


def change_of(words: Sequence[str]) -> Change:
    kind = next(each for each in RowKind if str(each) == words[0])
    return kind, tuple(None if word == "null" else int(word) for word in words[1:])


@pytest.mark.parametrize(("title", "steps"), cases_of_flink().items(), ids=cases_of_flink())
def test_a_live_flink_gives_the_same(title: str, steps: list[list[list[str]]]) -> None:
    words, left, right, *more = title.split(", ")
    kind = JoinKind.ANTI if words == "NOT IN" else JoinKind[words]
    condition = v_at_most_v() if "condition" in more else None
    nulls = "aware" if words == "NOT IN" else ""
    of = SubtasksOfChanges(operator_for(kind, (LAYOUTS[left], LAYOUTS[right]), condition, nulls))
    for number, ((side, *change), *answer) in enumerate(steps):
        found = of.push_changes(side == "right", [change_of(change)])
        expected = [change_of(each) for each in answer]
        assert [kind for kind, _ in found] == [kind for kind, _ in expected], number
        assert Counter(found) == Counter(expected), number
