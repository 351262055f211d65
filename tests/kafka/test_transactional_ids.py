"""Which transactional ids a subtask takes, and which ones of earlier attempts it aborts. No
broker."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.connectors.kafka.writing.transactional_ids import (
    IDS,
    LOOKS_BACK,
    LOOKS_BACK_AT_MOST,
    TURNS,
    TakenOver,
    TooManyTransactionsError,
    TransactionalIds,
    Turn,
    Unfinished,
    begin_turn,
    ids_of,
)


def test_two_ids_take_turns_while_checkpoints_complete() -> None:
    ids, used = TransactionalIds("p", 0), list[str]()
    for _ in range(9):
        used.append(ids.take())
        ids.checkpoint_begins()
        ids.prepare(used[-1])
        ids.commit(used[-1])
    assert set(used) == {"p-0-0-0", "p-0-0-1"}


def test_with_the_next_one_made_ready_beforehand_there_are_three() -> None:
    ids, used = TransactionalIds("p", 0), list[str]()
    ready = ids.take()
    for _ in range(9):
        writing, ready = ready, ids.take()
        used.append(writing)
        ids.checkpoint_begins()
        ids.prepare(writing)
        ids.commit(writing)
    assert set(used) == {"p-0-0-0", "p-0-0-1", "p-0-0-2"}


def test_checkpoints_that_never_complete_use_up_all_ids() -> None:
    ids = TransactionalIds("p", 4)
    for _ in range(IDS):
        ids.checkpoint_begins()
        ids.prepare(ids.take())
    assert len(ids.unfinished().transactional_ids) == IDS
    with pytest.raises(
        TooManyTransactionsError,
        match=(
            "6 Kafka transactions of subtask 5 wait to be committed, because checkpoints were begun"
        ),
    ):
        ids.take()


@given(
    st.lists(st.sampled_from(["complete", "late", "abort", "empty"]), max_size=60),
    st.sets(st.integers(0, IDS - 1), max_size=3),
)
def test_no_id_is_taken_again_while_a_checkpoint_that_may_be_restored_names_it(
    fates: list[str], restored: set[int]
) -> None:
    """The checkpoint that would be restored is the last complete one; before the first, the one
    this attempt began with. A checkpoint is complete at once, or, late, when the next one has
    begun."""
    named = {ids_of("p", 0, 0)[number] for number in restored}
    ids = TransactionalIds("p", 0, Turn(0, 0), named)
    pending: list[str] = []
    late: list[str] | None = None
    for fate in fates:
        if not ids.has_free:
            return
        taken = None if fate == "empty" else ids.take()
        assert taken is None or taken not in named.union(pending)
        ids.checkpoint_begins()
        if taken is not None:
            ids.prepare(taken)
            pending.append(taken)
        saved = set(ids.unfinished().transactional_ids)
        assert saved == set(pending)
        if late is not None:
            named = set(late)
            for each in late:
                ids.commit(each)
            pending = [each for each in pending if each not in late]
            late = None
        if fate == "late":
            late = list(pending)
        if fate == "complete":
            named = saved
            for each in pending:
                ids.commit(each)
            pending = []


class Ids:
    """What a broker knows of ids: how often each was taken over. ``open`` are those with an open
    transaction. So many answers get lost first."""

    def __init__(self, lost_answers: int = 0) -> None:
        self.taken = Counter[str]()
        self.open = set[str]()
        self.asked = list[str]()
        self.lost_answers = lost_answers

    def abort(self, transactional_id: str) -> TakenOver:
        self.asked.append(transactional_id)
        self.open.discard(transactional_id)
        self.taken[transactional_id] += 1 + self.lost_answers
        return TakenOver(self.taken[transactional_id] - 1, 1 + self.lost_answers)

    def begin(
        self, subtask: int, parallelism: int, restored: list[Unfinished], *, is_first: bool = False
    ) -> TransactionalIds:
        turn = begin_turn("p", subtask, parallelism, restored, is_first=is_first, abort=self.abort)
        return TransactionalIds(
            "p", subtask, turn, {each for one in restored for each in one.transactional_ids}
        )

    def write(self, ids: TransactionalIds) -> str:
        taken = ids.take()
        self.taken[taken] += 1
        self.open.add(taken)
        return taken


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_each_attempt_aborts_what_those_before_have_left_open(transactions: list[int]) -> None:
    broker = Ids()
    for count in transactions:
        ids = broker.begin(0, 1, [])
        assert broker.open == set()
        for _ in range(count):
            broker.write(ids)


@given(st.lists(st.integers(0, LOOKS_BACK_AT_MOST - LOOKS_BACK), min_size=2, max_size=9))
def test_answers_that_get_lost_leave_nothing_open(lost_answers: list[int]) -> None:
    """Each question takes the id over, so the turns before are further back than they seem."""
    broker = Ids()
    for lost in lost_answers:
        broker.lost_answers = lost
        ids = broker.begin(0, 1, [])
        assert broker.open == set()
        broker.write(ids)


@given(st.integers(0, 40), st.lists(st.booleans(), min_size=1, max_size=9))
def test_the_turns_go_on_although_the_broker_has_forgotten_them(
    turn: int, forgets: list[bool]
) -> None:
    broker, restored = Ids(), list[Unfinished]()
    broker.taken["p-0"] = turn
    ids = broker.begin(0, 1, [])
    used = [broker.write(ids)]
    for forgotten in forgets:
        restored = [ids.unfinished()]
        if forgotten:
            del broker.taken["p-0"]
        ids = broker.begin(0, 1, restored)
        assert broker.open == set()
        used.append(broker.write(ids))
        assert used[-1] not in used[-LOOKS_BACK:-1]


@given(st.integers(0, 20), st.integers(1, LOOKS_BACK - 1))
def test_an_attempt_that_was_given_up_does_not_hit_the_next_ones_however_late_it_aborts(
    turn: int, later: int
) -> None:
    late, new = Ids(), Ids()
    late.taken["p-0"], new.taken["p-0"] = turn, turn + later
    given_up, newer = late.begin(0, 1, []), new.begin(0, 1, [])
    written = {newer.take() for _ in range(IDS)}
    assert not written & set(late.asked)
    assert not written & {given_up.take() for _ in range(IDS)}


@given(st.integers(1, 5), st.integers(1, 9))
def test_a_run_without_a_checkpoint_aborts_what_a_run_with_more_subtasks_left(
    parallelism: int, before: int
) -> None:
    broker = Ids()
    for subtask in range(before):
        broker.write(broker.begin(subtask, before, [], is_first=True))
    for subtask in range(parallelism):
        broker.begin(subtask, parallelism, [], is_first=True)
    assert broker.open == set()


@given(st.integers(1, 5), st.integers(1, 9), st.booleans(), st.data())
def test_what_the_restored_checkpoint_names_is_left_alone(
    parallelism: int, before: int, is_first: bool, data: st.DataObject
) -> None:
    broker, restored = Ids(), list[Unfinished]()
    for subtask in range(before):
        ids = broker.begin(subtask, before, [])
        written = [broker.write(ids) for _ in range(data.draw(st.integers(0, 3)))]
        restored.append(
            Unfinished(
                "p", subtask, tuple(data.draw(st.sets(st.sampled_from(written))) if written else ())
            )
        )
    named = {each for unfinished in restored for each in unfinished.transactional_ids}
    for subtask in range(parallelism):
        broker.begin(subtask, parallelism, restored, is_first=is_first)
    assert broker.open == named


def test_a_restart_does_not_look_further_each_time() -> None:
    broker = Ids()
    for _ in range(TURNS):
        broker.asked.clear()
        broker.begin(0, 1, [])
    assert len(broker.asked) == 1 + LOOKS_BACK * IDS


def test_ids_of_another_prefix_are_nobodys_business() -> None:
    broker = Ids()
    broker.begin(0, 1, [Unfinished("another", 7, ("another-7-0-0",))])
    assert {each.partition("-")[0] for each in broker.asked} == {"p"}
