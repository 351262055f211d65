"""TaskSlotTable and SlotPool alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.actors.job_master.slot_pool import SlotPool
from flinkpy.actors.task_executor.slot_table import SlotNotAvailableError, TaskSlotTable
from flinkpy.core.ids import (
    AllocationId,
    ExecutionAttemptId,
    JobId,
    JobVertexId,
    ResourceId,
    SlotRequestId,
)
from flinkpy.core.lifecycles import TaskSlotState
from flinkpy.graph.resources import ANY

JOB, OTHER = JobId("job"), JobId("other")
A, B = AllocationId("a"), AllocationId("b")
TE = ResourceId("te")


def task(number: int, job: JobId = JOB) -> ExecutionAttemptId:
    return ExecutionAttemptId(job, JobVertexId("v"), number, 0)


def test_a_slot_goes_from_promised_to_active_to_free() -> None:
    table = TaskSlotTable([ANY, ANY])
    assert table.allocate(0, JOB, A).state is TaskSlotState.ALLOCATED
    assert [offer.allocation_id for offer in table.offers(JOB)] == [A]
    assert table.activate(A)
    assert table.offers(JOB) == ()
    assert table.free_slot(A, "done") == ()
    assert [status.allocation_id for status in table.report()] == [None, None]


def test_a_slot_promised_twice_under_one_allocation_is_promised_once() -> None:
    table = TaskSlotTable([ANY, ANY])
    assert table.allocate(0, JOB, A) is table.allocate(0, JOB, A)
    with pytest.raises(SlotNotAvailableError, match="there is"):
        table.allocate(1, JOB, A)


def test_an_occupied_slot_names_its_occupant() -> None:
    table = TaskSlotTable([ANY])
    table.allocate(0, JOB, A)
    with pytest.raises(SlotNotAvailableError, match="ALLOCATED for job job"):
        table.allocate(0, OTHER, B)
    with pytest.raises(SlotNotAvailableError, match="no slot 3"):
        table.allocate(3, OTHER, B)


def test_a_slot_with_tasks_is_free_only_when_the_last_one_ended() -> None:
    table = TaskSlotTable([ANY])
    table.allocate(0, JOB, A)
    table.add_task(task(0), A)
    table.add_task(task(1), A)
    assert set(table.free_slot(A, "lost")) == {task(0), task(1)}
    assert not table.remove_task(task(0))
    assert table.report()[0].allocation_id == A
    assert table.remove_task(task(1))
    assert table.statistics().releasing == 0


def test_a_slot_being_released_takes_no_task_and_no_promise() -> None:
    table = TaskSlotTable([ANY])
    table.allocate(0, JOB, A)
    table.add_task(task(0), A)
    table.free_slot(A, "lost")
    with pytest.raises(SlotNotAvailableError, match="being released"):
        table.add_task(task(1), A)
    with pytest.raises(SlotNotAvailableError, match="RELEASING"):
        table.allocate(0, JOB, A)


def test_a_task_in_a_slot_being_released_does_not_speak_any_more() -> None:
    table = TaskSlotTable([ANY])
    table.allocate(0, JOB, A)
    table.add_task(task(0), A)
    assert table.may_send_events(task(0))
    table.free_slot(A, "lost")
    assert not table.may_send_events(task(0))
    assert table.runs(task(0))


def test_a_task_of_another_job_does_not_get_in() -> None:
    table = TaskSlotTable([ANY])
    table.allocate(0, JOB, A)
    with pytest.raises(SlotNotAvailableError, match="not held here for job other"):
        table.add_task(task(0, OTHER), A)


def test_a_task_that_ended_is_remembered_while_its_slot_is_held() -> None:
    table = TaskSlotTable([ANY])
    table.allocate(0, JOB, A)
    table.add_task(task(0), A)
    table.remove_task(task(0))
    assert table.has_seen(task(0), A)
    assert not table.has_seen(task(1), A)


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["allocate", "activate", "free", "add", "remove"]),
        st.integers(0, 3),
        st.integers(0, 4),
    ),
    max_size=50,
)


@settings(max_examples=150, deadline=None)
@given(MOVES)
def test_the_slot_table_agrees_with_itself_whatever_happens(
    moves: list[tuple[str, int, int]],
) -> None:
    table = TaskSlotTable([ANY, ANY, ANY])
    for kind, slot, number in moves:
        allocation, job = AllocationId(f"a{number}"), JobId(f"job-{number % 2}")
        try:
            if kind == "allocate":
                table.allocate(slot, job, allocation)
            elif kind == "activate":
                table.activate(allocation)
            elif kind == "free":
                table.free_slot(allocation, "test")
            elif kind == "add" and not table.runs(task(slot, job)):
                table.add_task(task(slot, job), allocation)
            elif kind == "remove":
                table.remove_task(task(slot, job))
        except SlotNotAvailableError:
            pass
        table.check_invariants()


# -- the pool --------------------------------------------------------------------------------------


def pool_with(*requests: str) -> SlotPool:
    pool = SlotPool(timeout_s=10.0)
    for now, name in enumerate(requests):
        pool.add_request(SlotRequestId(f"r-{name}"), AllocationId(name), ANY, (), float(now))
    return pool


def test_an_offer_is_accepted_when_it_is_waited_for_and_again_when_repeated() -> None:
    pool = pool_with("a")
    accepted, slot = pool.accept_offer(TE, A, 1)
    assert (accepted, slot and slot.request_id) == (True, "r-a")
    assert pool.accept_offer(TE, A, 2) == (True, None)


def test_an_offer_nobody_waits_for_or_from_a_second_executor_is_rejected() -> None:
    pool = pool_with("a")
    pool.accept_offer(TE, A, 1)
    assert pool.accept_offer(ResourceId("other"), A, 1) == (False, None)
    assert pool.accept_offer(TE, B, 1) == (False, None)


def test_requests_expire_in_the_order_they_were_made() -> None:
    pool = pool_with("a", "b")
    assert pool.expire_requests(9.0) == []
    assert [request.allocation_id for request in pool.expire_requests(10.5)] == [A]
    assert pool.pending_ids() == (B,)


def test_a_report_denies_only_what_was_offered_before_it() -> None:
    pool = pool_with("a", "b")
    pool.accept_offer(TE, A, 5)
    assert pool.reconcile(TE, 4, []) == ([], [])
    assert pool.reconcile(TE, 5, []) == ([A], [])
    assert pool.reconcile(TE, 6, [A, B]) == ([], [])  # b is on its way here
    assert pool.reconcile(TE, 6, [A, AllocationId("stranger")]) == ([], ["stranger"])


def test_a_lost_executor_takes_its_slots_with_it() -> None:
    pool = pool_with("a", "b")
    pool.accept_offer(TE, A, 1)
    pool.accept_offer(ResourceId("other"), B, 1)
    assert [slot.allocation_id for slot in pool.remove_executor(TE)] == [A]
    assert pool.statistics().allocated == 1
    pool.check_invariants()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["request", "cancel", "fail", "offer", "remove", "lose", "expire"]),
            st.integers(0, 5),
        ),
        max_size=50,
    )
)
def test_the_slot_pool_agrees_with_itself_whatever_happens(moves: list[tuple[str, int]]) -> None:
    pool, made = SlotPool(20.0), 0
    for now, (kind, number) in enumerate(moves):
        allocation = AllocationId(f"a{number}")
        if kind == "request":
            made += 1
            is_free = pool.get_slot(allocation) is None and allocation not in pool.pending_ids()
            fresh = AllocationId(f"a{number}") if is_free else AllocationId(f"n{made}")
            pool.add_request(SlotRequestId(f"r{made}"), fresh, ANY, (), float(now))
        elif kind == "cancel":
            pool.cancel_request(SlotRequestId(f"r{number}"))
        elif kind == "fail":
            pool.fail_request(allocation)
        elif kind == "offer":
            pool.accept_offer(ResourceId(f"te-{number % 2}"), allocation, now)
        elif kind == "remove":
            pool.remove_slot(allocation)
        elif kind == "lose":
            pool.remove_executor(ResourceId(f"te-{number % 2}"))
        else:
            pool.expire_requests(float(now))
        pool.check_invariants()
