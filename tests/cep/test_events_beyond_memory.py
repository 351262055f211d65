"""Events of patterns that wait for the watermark and have no room in memory have their turn as in
memory: over rows and columns and with patterns that come and go, with restarts, another backend and
another number of subtasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.cep import Pattern, PatternProcessFunction, PatternUpdate
from flinkpy.cep.matching import events_on_disk, pending_columns, pending_events
from flinkpy.cep.matching.pending_events import PendingEvents
from flinkpy.common import Duration, Row, Types
from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.core.keys import canonical_key, channel_of_key_group, key_group
from flinkpy.core.memory import size_of
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.core.options.state import ROCKSDB_OBJECTS, STATE_BACKEND
from flinkpy.table.expressions import col
from flinkpy.testing import OneInputHarness, TwoInputHarness
from tests.operators.in_pieces import InPieces

pytest.importorskip("rocksdict")

NO_ROOM = {STATE_BACKEND.key: "rocksdb", ROCKSDB_OBJECTS.key: "0 b"}
BACKENDS = st.sampled_from([NO_ROOM, NO_ROOM, {STATE_BACKEND.key: "rocksdb"}, {}])
NAMES = ("key", "letter", "number", "time")
ROW = Types.ROW_NAMED(NAMES, [Types.DOUBLE(), Types.STRING(), Types.INT(), Types.LONG()])
PATTERN = (
    Pattern.begin("a")
    .where(col("letter") == "A")
    .followed_by_any("b")
    .where(col("letter") == "B")
    .within(Duration.of_millis(12))
)
Event = tuple[Any, str, int, int]


class Show(PatternProcessFunction):
    def process_match(self, match: Any, ctx: Any) -> Iterator[Any]:
        yield [tuple(event) for events in match.values() for event in events]


def same(event: Any) -> Any:
    return event


def key_of(event: Any) -> Any:
    return event.key


def of_columns(stream: Any) -> Any:
    selected = stream.map(same, output_type=ROW).select(*NAMES)
    return selected.key_by("key").match(PATTERN).process(Show())


def of_rows(stream: Any) -> Any:
    # as many operators as in front of the pattern over columns
    mapped = stream.map(same, output_type=ROW).map(same, output_type=ROW).map(same, output_type=ROW)
    return mapped.key_by(key_of).match(PATTERN).process(Show())


def one_input(build: Callable[[Any], Any]) -> Callable[[dict[str, str]], Any]:
    return lambda configuration: OneInputHarness.of(build, configuration=configuration)


def dynamic(configuration: dict[str, str]) -> TwoInputHarness:
    initial = [PatternUpdate("first", 1, PATTERN), PatternUpdate("second", 1, PATTERN)]
    return TwoInputHarness.of(
        lambda events, updates: (
            events.key_by(key_of).match_dynamic(updates, initial).process(Show())
        ),
        configuration=configuration,
    )


KINDS: dict[str, Callable[[dict[str, str]], Any]] = {
    "rows": one_input(of_rows),
    "columns": one_input(of_columns),
    "dynamic": dynamic,
}


class Subtasks:
    """All subtasks of an operator, fed by key."""

    def __init__(self, kind: str, configuration: dict[str, str]) -> None:
        self.kind = kind
        self.subtasks = [KINDS[kind](configuration)]
        self._found: list[Any] = []

    def push(self, events: Sequence[Event]) -> None:
        shares: dict[int, list[Row]] = {}
        for event in events:
            group = key_group(canonical_key(event[0]), 128)
            channel = channel_of_key_group(group, 128, len(self.subtasks))
            shares.setdefault(channel, []).append(Row(**dict(zip(NAMES, event))))
        for channel, share in shares.items():
            subtask = self.subtasks[channel]
            if self.kind == "dynamic":
                for each in share:
                    subtask.push1(each, each.time)
            else:
                subtask.push_all(share, [each.time for each in share])

    def watermark(self, moment: int) -> None:
        for each in self.subtasks:
            if self.kind == "dynamic":
                each.push_watermark1(moment)
            else:
                each.push_watermark(moment)

    def restart(
        self, parallelism: int, configuration: dict[str, str], kind: str | None = None
    ) -> None:
        saved = [each.snapshot() for each in self.subtasks]
        self.close()
        first = self.subtasks[0]
        if kind is not None and kind != self.kind:
            self.kind = kind
            first = KINDS[kind]({})
            first.close()
        self.subtasks = [
            first.restore(
                *saved, parallelism=parallelism, subtask_index=at, configuration=configuration
            )
            for at in range(parallelism)
        ]

    def close(self) -> None:
        for each in self.subtasks:
            self._found += each.output
            each.close()

    def run(self, steps: Sequence[Any], changes: dict[str, str] | None = None) -> list[Any]:
        """What is found. ``changes``: of the backend, None: as the steps say."""
        for step in steps:
            if isinstance(step, int):
                self.watermark(step)
            elif isinstance(step, tuple):
                _, parallelism, backend, kind = step
                self.restart(
                    parallelism,
                    backend if changes is None else changes,
                    None if self.kind == "dynamic" else kind,
                )
            else:
                self.push(step)
        self.close()
        return self._found


@pytest.fixture(autouse=True)
def _narrow_slices() -> Iterator[None]:
    with (
        mock.patch.object(events_on_disk, "WIDTH", 3),
        mock.patch.object(pending_events, "WIDTH", 3),
        mock.patch.object(pending_columns, "WIDTH", 3),
        mock.patch.object(PendingEvents, "few", 0),
    ):
        yield


KEYS = [None, float("nan"), 0.0, -0.0, 1.0, 2.0]


@st.composite
def steps_of(draw: st.DrawFn, *, restarts: bool) -> list[Any]:
    """Batches of events, watermarks that go on, and restarts, also as the other kind of stream."""
    numbers = iter(range(1000))
    one = st.tuples(st.sampled_from(KEYS), st.sampled_from("AABBC"), st.integers(0, 40))
    batch = st.lists(one, min_size=1, max_size=8)
    again = st.tuples(
        st.just("restart"), st.integers(1, 3), BACKENDS, st.sampled_from(["rows", "columns"])
    )
    kinds = [batch, batch, st.just(0), *([again] if restarts else [])]
    steps: list[Any] = draw(st.lists(st.one_of(kinds), max_size=12))
    now = 0
    for at, each in enumerate(steps):
        if each == 0:
            now += draw(st.integers(0, 15))
            steps[at] = now
        elif isinstance(each, list):
            steps[at] = [(key, letter, next(numbers), time) for key, letter, time in each]
    return [*steps, MAX_TIMESTAMP]


# their key groups are not in the order in which they come
IN_ONE_SLICE = [
    (float(key), letter, 10 * at + key, 4) for at, letter in enumerate("AB") for key in (9, 1, 5, 7)
]


@settings(max_examples=24, deadline=None)
@given(steps_of(restarts=False))
@example([IN_ONE_SLICE[:3], IN_ONE_SLICE[3:], 5, MAX_TIMESTAMP])
@pytest.mark.parametrize("kind", KINDS)
def test_events_without_room_in_memory_are_matched_as_in_memory(
    kind: str, steps: list[Any]
) -> None:
    found = Subtasks(kind, NO_ROOM).run(steps)
    assert repr(found) == repr(Subtasks(kind, {}).run(steps))


def by_key(found: Sequence[Any]) -> dict[str, list[str]]:
    of_keys: dict[str, list[str]] = {}
    for match in found:
        key = match[0][0]
        of_keys.setdefault(repr(0.0 if key == 0 else key), []).append(repr(match))
    return of_keys


@settings(max_examples=24, deadline=None)
@given(steps_of(restarts=True))
@pytest.mark.parametrize("kind", KINDS)
def test_events_on_disk_are_matched_after_restarts_over_rows_and_over_columns(
    kind: str, steps: list[Any]
) -> None:
    wanted = by_key(Subtasks(kind, {}).run(steps, changes={}))
    assert by_key(Subtasks(kind, NO_ROOM).run(steps)) == wanted


@dataclass
class OperatorAlone:
    """What ``InPieces`` takes checkpoints of."""

    operators: list[Any]


def waiting(kind: str, share: str, tmp_path: Path) -> tuple[Any, OperatorAlone]:
    configuration = {**NO_ROOM, ROCKSDB_OBJECTS.key: share, CHECKPOINT_INCREMENTAL.key: "true"}
    found = KINDS[kind](configuration)
    return found, OperatorAlone([each for each in found._operators if hasattr(each, "_matcher")])


@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_events_in_memory_stay_within_their_share_and_a_checkpoint_writes_what_came_since(
    kind: str, tmp_path: Path
) -> None:
    share, count = 200_000, 20_000
    found, alone = waiting(kind, f"{share} b", tmp_path)
    [operator] = alone.operators
    with mock.patch.object(PendingEvents, "few", 100):
        for start in range(0, count, 200):
            events = [
                Row(key=float(at % 7), letter="C", number=at, time=at * 7919 % 60)
                for at in range(start, start + 200)
            ]
            found.push_all(events, [event.time for event in events])
            if kind == "rows":
                assert sum(map(size_of, operator._pending._events)) < 2 * share
            else:
                assert sum(part.data.nbytes for part in operator._waiting._parts) < 2 * share
    checkpoints = InPieces(cast("Any", alone), tmp_path)
    checkpoints.take()
    again, everything = checkpoints.take()
    for letter in "AB":
        found.push(Row(key=1.0, letter=letter, number=count, time=59), 59)
    more, _ = checkpoints.take()
    assert everything > 300_000
    assert again < share
    assert more < again + 20_000
    found.push_watermark(MAX_TIMESTAMP)
    assert found.output == [[(1.0, "A", count, 59), (1.0, "B", count, 59)]]
    found.close()
