"""The SlotManager alone: what it decides, and that its tables never contradict each other."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.actors.gateways import SlotReport, SlotRequest
from flinkpy.actors.resource_manager.slot_actions import (
    Action,
    AllocateSlot,
    FailRequest,
    StartWorker,
    StopWorker,
)
from flinkpy.actors.resource_manager.slot_manager import SlotManager
from flinkpy.actors.resource_manager.worker_provisioner import WorkerProvisioner
from flinkpy.core.ids import AllocationId, FencingToken, IdFactory, JobId, ResourceId, SlotId
from flinkpy.core.options.engine import SlotConfig
from flinkpy.graph.deployment import SlotStatus
from flinkpy.graph.resources import ANY, ResourceProfile

GPU = ResourceProfile(gpus=1.0)
ONE, TWO = ResourceId("one"), ResourceId("two")


def manager(
    slots_per_executor: int = 1, max_slots: int | None = None, limit: int | None = None
) -> SlotManager:
    config = SlotConfig(
        slots_per_executor,
        max_slots,
        idle_timeout=timedelta(seconds=30),
        request_timeout=timedelta(seconds=60),
    )
    return SlotManager(
        config,
        IdFactory(1),
        lambda profile: limit,
        lambda profile, wanted: f"{wanted} of {limit}: lower the parallelism",
    )


def request(
    name: str,
    job: str = "job",
    profile: ResourceProfile = ANY,
    preferred: tuple[ResourceId, ...] = (),
) -> SlotRequest:
    return SlotRequest(
        JobId(job), AllocationId(name), profile, "jm/jobmaster", FencingToken("t"), preferred
    )


def report(sequence: int, *holds: str | None, profile: ResourceProfile = ANY) -> SlotReport:
    return SlotReport(
        sequence,
        tuple(
            SlotStatus(
                index, profile, JobId("job") if held else None, AllocationId(held) if held else None
            )
            for index, held in enumerate(holds)
        ),
    )


def allocated(actions: list[Action]) -> list[tuple[ResourceId, int, str]]:
    return [
        (*action.slot_id, action.request.allocation_id)
        for action in actions
        if isinstance(action, AllocateSlot)
    ]


def test_a_request_gets_a_free_slot() -> None:
    slots = manager()
    slots.register_executor(ONE, report(0, None, None), 0.0)
    assert allocated(slots.request_slots([request("a"), request("b")], 1.0)) == [
        (ONE, 0, "a"),
        (ONE, 1, "b"),
    ]
    assert slots.statistics().pending == 2


def test_the_same_request_again_is_no_second_one() -> None:
    slots = manager()
    slots.register_executor(ONE, report(0, None, None), 0.0)
    slots.request_slots([request("a")], 1.0)
    assert slots.request_slots([request("a")], 2.0) == []


def test_a_worker_that_was_started_for_the_first_job_serves_its_requests() -> None:
    slots = manager(slots_per_executor=2)
    slots.start_worker(StartWorker(ONE, 2, ANY), 0.0)
    assert slots.request_slots([request("a"), request("b")], 1.0) == []
    assert [
        action.slots
        for action in slots.request_slots([request("c")], 2.0)
        if isinstance(action, StartWorker)
    ] == [2]
    assert allocated(slots.register_executor(ONE, report(0, None, None), 3.0)) == [
        (ONE, 0, "a"),
        (ONE, 1, "b"),
    ]


def test_a_worker_that_was_started_for_the_first_job_and_never_comes_is_given_up() -> None:
    slots = manager()
    slots.start_worker(StartWorker(ONE, 1, ANY), 0.0)
    slots.request_slots([request("a")], 1.0)
    assert StopWorker(ONE, "did not register in time") in slots.tick(61.0)
    assert [action.slots for action in slots.tick(65.0) if isinstance(action, StartWorker)] == [1]


def test_a_worker_that_was_started_for_a_job_that_wants_others_makes_room() -> None:
    slots = manager(limit=2)
    slots.start_worker(StartWorker(ONE, 1, ANY), 0.0)
    assert [
        action.profile
        for action in slots.request_slots([request("a", profile=GPU)], 1.0)
        if isinstance(action, StartWorker)
    ] == [GPU]
    assert [
        action.resource_id
        for action in slots.register_executor(ONE, report(0, None), 2.0)
        if isinstance(action, StopWorker)
    ] == [ONE]


def test_a_preferred_executor_is_taken_first() -> None:
    slots = manager()
    slots.register_executor(ONE, report(0, None), 0.0)
    slots.register_executor(TWO, report(0, None), 0.0)
    assert allocated(slots.request_slots([request("a", preferred=(TWO,))], 1.0)) == [(TWO, 0, "a")]


def test_no_more_workers_are_started_than_the_requests_need() -> None:
    slots = manager(slots_per_executor=2)
    started = [
        action
        for action in slots.request_slots([request("a"), request("b"), request("c")], 0.0)
        if isinstance(action, StartWorker)
    ]
    assert [worker.slots for worker in started] == [2, 2]
    assert slots.request_slots([request("d")], 1.0) == []  # the second worker has a slot to spare
    assert allocated(
        slots.register_executor(started[0].resource_id, report(0, None, None), 2.0)
    ) == [(started[0].resource_id, 0, "a"), (started[0].resource_id, 1, "b")]


def test_workers_are_started_up_to_the_limit_and_the_rest_waits() -> None:
    slots = manager(slots_per_executor=2, max_slots=3)
    started = slots.request_slots(
        [request("a", "x"), request("b", "x"), request("c", "y"), request("d", "y")], 0.0
    )
    assert [action.slots for action in started if isinstance(action, StartWorker)] == [2, 1]
    assert slots.statistics().unmet_requests == 4


def test_what_can_never_be_had_is_refused_at_once_with_the_numbers() -> None:
    actions = manager(limit=2).request_slots([request("a"), request("b"), request("c")], 0.0)
    refused = [action for action in actions if isinstance(action, FailRequest)]
    assert [str(action.error) for action in refused] == ["3 of 2: lower the parallelism"] * 3
    by_option = [
        action
        for action in manager(max_slots=1).request_slots([request("a"), request("b")], 0.0)
        if isinstance(action, FailRequest)
    ]
    assert "slotmanager.number-of-slots.max allows 1" in str(by_option[0].error)


def test_a_refused_allocation_is_tried_in_another_slot_and_the_occupant_is_believed() -> None:
    slots = manager()
    slots.register_executor(ONE, report(0, None), 0.0)
    slots.register_executor(TWO, report(0, None), 0.0)
    slots.request_slots([request("a")], 1.0)
    actions = slots.allocation_answered(ONE, [(0, AllocationId("a"))], report(3, "other"), 2.0)
    assert allocated(actions) == [(TWO, 0, "a")]
    assert slots.view(ONE) == {0: "other"}


def test_a_slot_whose_executor_does_not_answer_is_in_doubt_until_it_reports() -> None:
    slots = manager()
    slots.register_executor(ONE, report(0, None), 0.0)
    slots.request_slots([request("a")], 1.0)
    slots.allocation_answered(ONE, [(0, AllocationId("a"))], None, 2.0)
    assert (slots.statistics().doubted, slots.statistics().unmet_requests) == (1, 1)
    assert allocated(slots.report_slots(ONE, report(0, None), 3.0)) == [(ONE, 0, "a")]


def test_a_late_report_is_not_believed() -> None:
    slots = manager()
    slots.register_executor(ONE, report(0, None), 0.0)
    slots.request_slots([request("a")], 1.0)
    slots.allocation_answered(ONE, [(0, AllocationId("a"))], report(5, "a"), 2.0)
    slots.report_slots(ONE, report(4, None), 3.0)
    assert slots.view(ONE) == {0: "a"}


def test_what_a_lost_executor_had_promised_is_looked_for_elsewhere() -> None:
    slots = manager()
    slots.register_executor(ONE, report(0, None), 0.0)
    slots.request_slots([request("a")], 1.0)
    slots.register_executor(TWO, report(0, None), 2.0)
    assert allocated(slots.unregister_executor(ONE, 3.0)) == [(TWO, 0, "a")]


def test_an_idle_worker_is_stopped_after_the_timeout_and_one_with_a_slot_taken_is_not() -> None:
    slots = manager(slots_per_executor=2)
    [start] = slots.request_slots([request("a")], 0.0)
    assert isinstance(start, StartWorker)
    slots.register_executor(start.resource_id, report(0, None, None), 1.0)
    slots.allocation_answered(
        start.resource_id, [(0, AllocationId("a"))], report(1, "a", None), 1.0
    )
    assert slots.tick(100.0) == []
    slots.report_slots(start.resource_id, report(2, None, None), 101.0)
    assert slots.tick(130.0) == []
    assert [type(action) for action in slots.tick(131.0)] == [StopWorker]
    assert slots.statistics().slots == 0


def test_a_worker_that_keeps_results_is_not_idle_until_they_are_released() -> None:
    slots = manager()
    [start] = slots.request_slots([request("a")], 0.0)
    assert isinstance(start, StartWorker)
    slots.register_executor(start.resource_id, report(0, None), 1.0)
    slots.allocation_answered(start.resource_id, [(0, AllocationId("a"))], report(1, "a"), 1.0)
    slots.report_slots(start.resource_id, replace(report(2, None), keeps_results=True), 2.0)
    assert slots.tick(1000.0) == []
    slots.check_invariants()
    slots.report_slots(start.resource_id, report(3, None), 1001.0)
    slots.check_invariants()
    assert slots.tick(1030.0) == []
    assert [type(action) for action in slots.tick(1031.0)] == [StopWorker]


def test_requests_of_a_job_that_runs_in_parts_may_be_more_than_there_can_ever_be_slots() -> None:
    slots = manager(max_slots=1, limit=1)
    actions = slots.request_slots([replace(request(name), may_wait=True) for name in "abc"], 0.0)
    assert [type(action) for action in actions] == [StartWorker]
    assert slots.statistics().unmet_requests == 3


def test_a_worker_that_came_by_itself_is_never_stopped() -> None:
    slots = manager()
    slots.register_executor(ONE, report(0, None), 0.0)
    assert slots.tick(1000.0) == []


def test_an_idle_worker_that_fits_nobody_makes_room_for_one_that_does() -> None:
    slots = manager(max_slots=1)
    [start] = slots.request_slots([request("a")], 0.0)
    assert isinstance(start, StartWorker)
    slots.cancel_requests([AllocationId("a")])
    slots.register_executor(start.resource_id, report(0, None), 1.0)
    actions = slots.request_slots([request("g", profile=GPU)], 2.0)
    assert [type(action) for action in actions] == [StopWorker, StartWorker]


def test_idle_workers_that_end_together_are_each_stopped_once_although_the_first_makes_room_for_waiting_requests() -> (
    None
):
    slots = manager(max_slots=4)
    for name in (ONE, TWO):
        slots.start_worker(StartWorker(name, 1, ANY), 0.0)
        slots.register_executor(name, report(0, None), 0.0)
    [start] = slots.request_slots([request("g0", profile=GPU)], 29.0)
    assert isinstance(start, StartWorker)
    # nothing is started for a moment
    slots.worker_failed(start.resource_id, "no room on the node", 29.5)
    assert (
        slots.request_slots([request(f"g{number}", profile=GPU) for number in (1, 2, 3)], 29.6)
        == []
    )
    actions = slots.tick(30.5)
    assert sorted(action.resource_id for action in actions if isinstance(action, StopWorker)) == [
        ONE,
        TWO,
    ]
    assert sum(isinstance(action, StartWorker) for action in actions) == 4
    slots.check_invariants()


def test_workers_that_cannot_be_started_are_tried_again_and_then_given_up() -> None:
    slots = manager()
    actions: list[Action] = slots.request_slots([request("a")], 0.0)
    for attempt in range(WorkerProvisioner.FAILURES_IN_A_ROW):
        [start] = [action for action in actions if isinstance(action, StartWorker)]
        now = 100.0 * attempt
        actions = slots.worker_failed(start.resource_id, "no room on the node", now) + slots.tick(
            now + 50
        )
    assert [str(action.error) for action in actions if isinstance(action, FailRequest)] == [
        "no worker could be started: no room on the node"
    ]


def test_requests_nobody_speaks_of_any_more_are_dropped() -> None:
    slots = manager(max_slots=1)
    slots.request_slots([request("a", "x")], 0.0)
    slots.request_slots([request("b", "y")], 5.0)
    slots.keep_only(JobId("x"), [], asked_before=3.0)
    slots.keep_only(JobId("y"), [], asked_before=3.0)  # its request is too young to be missed
    assert slots.statistics().unmet_requests == 1


def test_the_slots_of_a_job_that_has_left_are_waited_for() -> None:
    slots = manager()
    slots.register_executor(ONE, report(0, "a"), 0.0)
    slots.job_left(JobId("job"))
    assert slots.request_slots([request("b", "next")], 1.0) == []
    assert allocated(slots.report_slots(ONE, report(1, None), 1.01)) == [(ONE, 0, "b")]
    assert slots.stop_expecting(JobId("job"), 1.05) == []
    slots.check_invariants()


def test_workers_are_started_at_once_for_what_exceeds_the_slots_that_come_back() -> None:
    slots = manager()
    slots.register_executor(ONE, report(0, "a"), 0.0)
    slots.job_left(JobId("job"))
    assert [
        type(action)
        for action in slots.request_slots([request("b", "next"), request("c", "next")], 1.0)
    ] == [StartWorker]


def test_slots_that_do_not_come_back_in_time_are_replaced() -> None:
    slots = manager()
    slots.register_executor(ONE, report(0, "a"), 0.0)
    slots.job_left(JobId("job"))
    slots.request_slots([request("b", "next")], 1.0)
    assert [type(action) for action in slots.stop_expecting(JobId("job"), 1.05)] == [StartWorker]


def test_slots_that_come_back_and_fit_nobody_who_waits_are_not_waited_for() -> None:
    slots = manager()
    slots.register_executor(ONE, report(0, "a"), 0.0)
    slots.job_left(JobId("job"))
    assert [type(action) for action in slots.request_slots([request("b", "next", GPU)], 1.0)] == [
        StartWorker
    ]


def test_slots_of_a_worker_that_is_lost_do_not_come_back() -> None:
    slots = manager()
    slots.register_executor(ONE, report(0, "a"), 0.0)
    slots.job_left(JobId("job"))
    slots.request_slots([request("b", "next")], 1.0)
    assert [type(action) for action in slots.unregister_executor(ONE, 1.01)] == [StartWorker]
    slots.check_invariants()


KINDS = [
    "register",
    "unregister",
    "request",
    "cancel",
    "answer",
    "silence",
    "free",
    "fail",
    "tick",
    "lie",
    "leave",
    "stop expecting",
]
STEPS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 5), st.integers(0, 7)), max_size=60
)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.integers(1, 3), st.sampled_from([None, 4]))
def test_the_tables_agree_whatever_happens(
    steps: list[tuple[str, int, int]], per_executor: int, max_slots: int | None
) -> None:
    """Plays TaskExecutors that answer, stay silent, free and contradict, in any order."""
    slots, now, sequence = manager(per_executor, max_slots), 0.0, 0
    names = [ResourceId(f"te-{number}") for number in range(6)]
    pending: list[tuple[SlotId, AllocationId]] = []
    starting: list[ResourceId] = []

    def act(actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, AllocateSlot):
                pending.append((action.slot_id, action.request.allocation_id))
            elif isinstance(action, StartWorker):
                starting.append(action.resource_id)

    def view(resource_id: ResourceId, index: int, held: str | None) -> SlotReport:
        held_now = [*slots.view(resource_id).values()]
        held_now[index % len(held_now)] = AllocationId(held) if held else None
        return report(sequence, *held_now)

    for kind, who, what in steps:
        now, sequence = now + 7.0, sequence + 1
        known = [name for name in [*names, *starting] if slots.knows(name)]
        target = known[who % len(known)] if known else None
        if kind == "register":
            act(slots.register_executor(names[who], report(sequence, *[None] * per_executor), now))
        elif kind == "request":
            act(
                slots.request_slots(
                    [request(f"{what}-{step}", f"job-{who}") for step in range(2)], now
                )
            )
        elif kind == "cancel":
            slots.cancel_requests([AllocationId(f"{what}-0")])
        elif kind == "fail" and starting:
            act(slots.worker_failed(starting[who % len(starting)], "it did not start", now))
        elif kind == "tick":
            act(slots.tick(now))
        elif kind == "leave":
            slots.job_left(JobId(f"job-{who}" if what else "job"))
        elif kind == "stop expecting":
            act(slots.stop_expecting(JobId(f"job-{who}" if what else "job"), now))
        elif kind in ("answer", "silence") and pending:
            slot_id, allocation_id = pending.pop(who % len(pending))
            if slots.knows(slot_id.resource_id):
                answer = (
                    view(slot_id.resource_id, slot_id.slot_index, allocation_id)
                    if kind == "answer"
                    else None
                )
                act(
                    slots.allocation_answered(
                        slot_id.resource_id, [(slot_id.slot_index, allocation_id)], answer, now
                    )
                )
        elif kind == "unregister" and target is not None:
            act(slots.unregister_executor(target, now))
        elif kind in ("free", "lie") and target is not None:
            act(
                slots.report_slots(
                    target, view(target, what, None if kind == "free" else f"stranger-{what}"), now
                )
            )
        slots.check_invariants()


# -- spare workers, and workers of an earlier ResourceManager --------------------------------------


def started(actions: list[Action]) -> list[ResourceId]:
    return [action.resource_id for action in actions if isinstance(action, StartWorker)]


def with_spare(limit: int | None = None) -> SlotManager:
    config = SlotConfig(
        1,
        idle_timeout=timedelta(seconds=30),
        request_timeout=timedelta(seconds=60),
        spare_workers=1,
    )
    return SlotManager(config, IdFactory(1), lambda profile: limit)


def test_a_spare_worker_is_started_for_jobs_that_run_and_stays_while_they_do() -> None:
    slots = with_spare()
    assert slots.tick(0.0) == []
    [first] = started(slots.request_slots([request("a")], 1.0))
    slots.register_executor(first, report(0, None), 2.0)
    slots.allocation_answered(first, [(0, AllocationId("a"))], report(1, "a"), 2.0)
    assert slots.tick(4.0) == []  # the job begins on the first one
    [spare] = started(slots.tick(5.0))
    slots.register_executor(spare, report(0, None), 6.0)
    assert slots.tick(10.0) == []
    assert slots.tick(100.0) == []  # it is idle for long, and stays
    slots.report_slots(first, report(2, None), 101.0)
    assert {
        action.resource_id for action in slots.tick(200.0) if isinstance(action, StopWorker)
    } == {first, spare}
    slots.check_invariants()


def test_a_spare_worker_takes_over_at_once_and_the_next_one_comes_when_jobs_have_restarted() -> (
    None
):
    slots = with_spare()
    for name in (ONE, TWO):
        slots.register_executor(name, report(0, None), 0.0)
    slots.request_slots([request("a")], 1.0)
    slots.allocation_answered(ONE, [(0, AllocationId("a"))], report(1, "a"), 1.0)
    assert started(slots.tick(2.0)) == []
    slots.unregister_executor(ONE, 10.0)
    assert allocated(slots.request_slots([request("b")], 10.1)) == [(TWO, 0, "b")]
    assert started(slots.tick(11.0)) == []
    assert len(started(slots.tick(13.0))) == 1


def test_where_the_cluster_has_no_room_there_is_no_spare() -> None:
    slots = with_spare(limit=1)
    slots.register_executor(ONE, report(0, None), 0.0)
    slots.request_slots([request("a")], 1.0)
    slots.allocation_answered(ONE, [(0, AllocationId("a"))], report(1, "a"), 1.0)
    assert started(slots.tick(20.0)) == []


def test_workers_of_an_earlier_resource_manager_are_waited_for_and_belong_to_this_one() -> None:
    slots = manager()
    slots.workers.expect_workers([ONE, TWO], 0.0)
    assert started(slots.request_slots([request("a"), request("b"), request("c")], 0.5)) == []
    assert allocated(slots.register_executor(ONE, report(0, None), 1.0)) == [(ONE, 0, "a")]
    assert len(started(slots.tick(2.5))) == 2  # the other one did not come in time
    assert slots.workers.owns(ONE)
    assert slots.workers.owns(TWO)


def test_when_all_of_them_have_come_others_are_started_at_once() -> None:
    slots = manager()
    slots.workers.expect_workers([ONE], 0.0)
    slots.request_slots([request("a"), request("b")], 0.5)
    assert len(started(slots.register_executor(ONE, report(0, None), 1.0))) == 1
