"""Event by event: what the scheduler asks for."""

from __future__ import annotations

import pickle

import pytest

from flinkpy.core.errors import (
    EngineError,
    PartitionNotFoundError,
    ProgramError,
    ResourceUnavailableError,
    RpcTimeoutError,
    TaskExecutorLostError,
)
from flinkpy.core.ids import AllocationId, IdFactory, JobId, ResourceId, SlotRequestId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.core.options.engine import SchedulingStrategyKind
from flinkpy.graph.deployment import TaskManagerLocation
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.protocol import (
    CancelJob,
    CancelSlotRequest,
    CancelTask,
    Command,
    DeploymentRejected,
    DeployTasks,
    FailJob,
    JobStateChanged,
    ReleaseSlot,
    RequestSlot,
    ResetCoordinators,
    SetTimer,
    SlotAssigned,
    SlotLost,
    SlotRequestFailed,
    StartScheduling,
    TaskStateChanged,
    TimerFired,
)
from flinkpy.scheduler.scheduler import Scheduler, SchedulerConfig
from tests.scheduler.environment import Boom, World, short, shorts
from tests.scheduler.jobs import (
    ALL_TO_ALL,
    BLOCKING,
    PIPELINED,
    POINTWISE,
    batch,
    job,
    pipeline,
    strands,
)

S, J = ExecutionState, JobState
RESTARTS = SchedulerConfig(restart="fixed-delay", attempts=2, delay_s=5.0)


def told(commands: list[Command]) -> list[str]:
    """Commands in short, in order: ``deploy tm1: A0#0 B0#0``, ``cancel A0#0``, ``job RUNNING``."""
    lines = []
    for command in commands:
        if isinstance(command, DeployTasks):
            lines.append(
                f"deploy {command.location.resource_id}: "
                + " ".join(short(each.attempt_id) for each in command.descriptors)
            )
        elif isinstance(command, CancelTask):
            lines.append(f"cancel {short(command.attempt_id)}")
        elif isinstance(command, ResetCoordinators):
            lines.append("reset " + " ".join(sorted(shorts(command.attempts))))
        elif isinstance(command, JobStateChanged):
            lines.append(
                f"job {command.state.name}" + (f": {command.error}" if command.error else "")
            )
        elif isinstance(command, SetTimer):
            lines.append(f"timer {command.timer_id} {command.delay_s}")
        elif isinstance(command, ReleaseSlot):
            lines.append(f"release {command.allocation_id}")
        else:
            lines.append("request" if isinstance(command, RequestSlot) else "cancel request")
    return lines


def started(job_graph: JobGraph, config: SchedulerConfig | None = None) -> World:
    """A job whose slots are all there."""
    world = World.of(job_graph, config)
    world.send(StartScheduling())
    world.grant_all()
    return world


# -- from start to end -----------------------------------------------------------------------------


def test_a_pipelined_job_is_deployed_once_all_its_slots_are_there() -> None:
    world = World.of(pipeline(2))
    assert told(world.send(StartScheduling())) == [
        "job CREATED",
        "job RUNNING",
        "request",
        "request",
    ]
    first, second = world.requests
    assert told(world.grant(first)) == []
    assert told(world.grant(second)) == ["deploy tm1: A0#0 B0#0", "deploy tm2: A1#0 B1#0"]


def test_a_slot_is_given_back_when_its_last_task_has_ended_and_the_job_ends_with_the_last_of_all() -> (
    None
):
    world = started(pipeline(1))
    world.run_to(S.RUNNING)
    assert told(world.progress(world.attempt("A", 0))) == []
    assert told(world.progress(world.attempt("B", 0))) == ["release slot1", "job FINISHED"]


def test_every_strand_of_a_pointwise_job_starts_by_itself() -> None:
    world = World.of(strands(2))
    world.send(StartScheduling())
    first, second = world.requests
    assert told(world.grant(second)) == ["deploy tm1: A1#0 B1#0"]
    assert told(world.grant(first)) == ["deploy tm2: A0#0 B0#0"]


def test_consumers_of_a_blocking_result_are_scheduled_when_it_is_all_there() -> None:
    world = started(batch(2))
    assert world.running == {"A0#0", "A1#0"}
    world.run_to(S.RUNNING)
    assert told(world.progress(world.attempt("A", 0))) == ["release slot1"]
    # B1 takes over the slot A1 leaves
    assert told(world.progress(world.attempt("A", 1))) == ["request", "deploy tm2: B1#0"]
    world.grant_all()
    assert world.running == {"B0#0", "B1#0"}


def test_a_later_stage_prefers_the_place_its_slot_was_at_before() -> None:
    world = started(batch(2))
    world.run_to(S.FINISHED, "A")
    assert [request.preferred for request in world.requests.values()] == [("tm1",)]


def test_the_eager_strategy_deploys_blocking_stages_together() -> None:
    world = started(batch(2), SchedulerConfig(strategy=SchedulingStrategyKind.EAGER))
    assert world.running == {"A0#0", "A1#0", "B0#0", "B1#0"}


def test_the_lazy_strategy_starts_consumers_when_all_their_producers_run() -> None:
    world = started(pipeline(2), SchedulerConfig(strategy=SchedulingStrategyKind.LAZY_FROM_SOURCES))
    assert world.running == {"A0#0", "A1#0"}
    world.run_to(S.RUNNING)
    assert world.running == {"A0#0", "A1#0", "B0#0", "B1#0"}  # into the slots that are there


def test_slot_sharing_groups_get_slots_of_their_own() -> None:
    world = World.of(
        job({"A": 2, "B": 3}, ("A", "B", ALL_TO_ALL, PIPELINED), groups={"B": "heavy"})
    )
    world.send(StartScheduling())
    assert len(world.requests) == 5
    world = World.of(job({"A": 2, "B": 3}, ("A", "B", ALL_TO_ALL, PIPELINED)))
    world.send(StartScheduling())
    assert len(world.requests) == 3


def test_a_result_blocked_by_a_detour_that_needs_its_own_consumer_does_not_wait_for_ever() -> None:
    graph = job(
        {"A": 1, "B": 1, "C": 1},
        ("A", "C", POINTWISE, PIPELINED),
        ("A", "B", ALL_TO_ALL, BLOCKING),
        ("B", "C", ALL_TO_ALL, BLOCKING),
    )
    assert started(graph).running == {"A0#0", "B0#0", "C0#0"}


def test_a_job_without_vertices_is_finished_at_once() -> None:
    assert told(Scheduler(JobGraph(JobId("j"), "empty", [])).handle(StartScheduling(), 0.0)) == [
        "job CREATED",
        "job RUNNING",
        "job FINISHED",
    ]


# -- wiring in the descriptors ---------------------------------------------------------------------


def test_all_consumers_of_an_all_to_all_edge_share_one_tuple_of_producers() -> None:
    world = started(pipeline(3))
    gates = [
        task.descriptor.gates[0]
        for attempt, task in sorted(world.tasks.items())
        if attempt.vertex_id == "B"
    ]
    assert [gate.subpartition_index for gate in gates] == [0, 1, 2]
    assert gates[0].producers is gates[1].producers is gates[2].producers
    assert shorts([producer.partition_id.producer for producer in gates[0].producers]) == {
        "A0#0",
        "A1#0",
        "A2#0",
    }
    assert [
        task.descriptor.partitions[0].subpartitions
        for attempt, task in world.tasks.items()
        if attempt.vertex_id == "A"
    ] == [3, 3, 3]


def test_the_shared_producers_are_pickled_once_and_are_shared_again_when_opened() -> None:
    world = started(pipeline(3))
    gates = [
        task.descriptor.gates[0]
        for attempt, task in sorted(world.tasks.items())
        if attempt.vertex_id == "B"
    ]
    first, second = pickle.loads(pickle.dumps(gates[:2], 5))
    assert [first, second] == gates[:2]
    assert first.producers is second.producers


def test_a_pointwise_edge_from_two_to_four_gives_each_producer_two_consumers() -> None:
    world = started(job({"A": 2, "B": 4}, ("A", "B", POINTWISE, PIPELINED)))
    read = {
        attempt.subtask_index: (
            short(gate.producers[0].partition_id.producer),
            gate.subpartition_index,
        )
        for attempt, task in world.tasks.items()
        for gate in task.descriptor.gates
    }
    assert read == {0: ("A0#0", 0), 1: ("A0#0", 1), 2: ("A1#0", 0), 3: ("A1#0", 1)}


def test_a_pointwise_edge_from_three_to_two_shares_the_producers_out() -> None:
    world = started(job({"A": 3, "B": 2}, ("A", "B", POINTWISE, PIPELINED)))
    read = {
        attempt.subtask_index: [
            short(producer.partition_id.producer) for producer in gate.producers
        ]
        for attempt, task in world.tasks.items()
        for gate in task.descriptor.gates
    }
    assert read == {0: ["A0#0"], 1: ["A1#0", "A2#0"]}


# -- ending early ----------------------------------------------------------------------------------


def test_cancelling_before_the_slots_came_takes_the_requests_back() -> None:
    world = World.of(pipeline(2))
    world.send(StartScheduling())
    assert told(world.send(CancelJob())) == [
        "job CANCELLING",
        "cancel request",
        "cancel request",
        "job CANCELED",
    ]


def test_a_cancelled_job_waits_for_its_tasks() -> None:
    world = started(pipeline(1))
    assert told(world.send(CancelJob())) == ["job CANCELLING", "cancel A0#0", "cancel B0#0"]
    assert told(world.progress(world.attempt("A", 0))) == []
    assert told(world.progress(world.attempt("B", 0))) == ["release slot1", "job CANCELED"]
    assert told(world.send(CancelJob())) == []


def test_cancelling_a_job_that_never_started_ends_it() -> None:
    assert told(World.of(pipeline(1)).send(CancelJob())) == ["job CANCELLING", "job CANCELED"]


def test_the_first_failure_fails_a_job_without_restarts_and_is_the_one_shown() -> None:
    world = started(pipeline(1))
    assert told(world.fail(world.attempt("A", 0), Boom("division by zero"))) == [
        "job FAILING: division by zero",
        "cancel B0#0",
    ]
    assert told(world.fail(world.attempt("B", 0), PartitionNotFoundError("A is gone"))) == [
        "release slot1",
        "job FAILED: division by zero",
    ]


def test_the_real_failure_replaces_its_symptom_that_was_heard_first() -> None:
    world = started(pipeline(1))
    world.fail(world.attempt("B", 0), ConnectionResetError("A's process closed the connection"))
    assert (
        told(world.lose(AllocationId("slot1"), TaskExecutorLostError("tm1 died")))[-1]
        == "job FAILED: tm1 died"
    )


def test_a_failure_of_no_subtask_restarts_all_of_the_job() -> None:
    world = started(pipeline(1), RESTARTS)
    commands = told(world.send(FailJob(Boom("enumerator"))))
    assert commands[:2] == ["cancel A0#0", "cancel B0#0"]
    assert commands[-1] == "job RESTARTING: enumerator"
    world.run_fairly()
    assert world.states[-1] is JobState.FINISHED
    assert {attempt.attempt for attempt in world.ended} == {0, 1}


def test_a_failure_before_the_start_goes_through_the_restart_strategy_too() -> None:
    world = World.of(pipeline(1), RESTARTS)
    world.send(FailJob(Boom("enumerator")))
    world.send(StartScheduling())
    world.run_fairly()
    assert world.states[-1] is JobState.FINISHED


def test_a_failure_of_no_subtask_ends_a_job_that_does_not_restart() -> None:
    world = started(pipeline(1))
    assert told(world.send(FailJob(Boom("enumerator")))) == [
        "job FAILING: enumerator",
        "cancel A0#0",
        "cancel B0#0",
    ]
    assert told(World.of(pipeline(1)).send(FailJob(Boom("early")))) == [
        "job CREATED",
        "job FAILING: early",
        "job FAILED: early",
    ]


def test_a_refused_slot_fails_the_job_with_the_reason() -> None:
    world = World.of(pipeline(2))
    world.send(StartScheduling())
    (request_id, _) = world.requests
    del world.requests[request_id]
    commands = told(
        world.send(
            SlotRequestFailed(
                request_id, ResourceUnavailableError("4 slots of 1 CPU, the cluster has 2")
            )
        )
    )
    assert (
        commands[0]
        == commands[-1].replace("FAILED", "FAILING")
        == "job FAILING: 4 slots of 1 CPU, the cluster has 2"
    )
    assert commands[1:-1] == ["cancel request"]


# -- restarting ------------------------------------------------------------------------------------


def test_a_failure_restarts_its_region_in_the_slots_it_has() -> None:
    world = started(pipeline(1), RESTARTS)
    assert told(world.fail(world.attempt("A", 0), Boom("why"))) == [
        "cancel B0#0",
        "timer restart-1 5.0",
        "job RESTARTING: why",
    ]
    assert told(world.fire("restart-1")) == []  # B has not ended yet
    assert told(world.progress(world.attempt("B", 0))) == [
        "reset A0#0 B0#0",
        "job RUNNING",
        "deploy tm1: A0#1 B0#1",
    ]


def test_the_other_regions_go_on() -> None:
    world = started(strands(2), RESTARTS)
    world.fail(world.attempt("A", 1))
    world.progress(world.attempt("B", 1))
    world.run_to(S.RUNNING)
    assert world.running == {"A0#0", "B0#0"}
    assert told(world.fire("restart-1")) == [
        "reset A1#0 B1#0",
        "job RUNNING",
        "deploy tm2: A1#1 B1#1",
    ]


def test_a_lost_task_executor_restarts_what_ran_there_in_a_new_slot_which_is_asked_for_at_once() -> (
    None
):
    world = started(strands(2), RESTARTS)
    assert told(world.lose(AllocationId("slot2"), TaskExecutorLostError("why"))) == [
        "timer restart-1 5.0",
        "job RESTARTING: why",
        "request",
    ]
    assert [request.preferred for request in world.requests.values()] == [()]
    world.grant_all()
    assert told(world.fire("restart-1")) == [
        "reset A1#0 B1#0",
        "job RUNNING",
        "deploy tm0: A1#1 B1#1",
    ]


def test_a_slot_asked_for_during_the_pause_is_given_back_when_the_job_ends_instead() -> None:
    world = started(pipeline(1), RESTARTS)
    world.lose(AllocationId("slot1"))
    assert told(world.send(CancelJob())) == ["job CANCELLING", "cancel request", "job CANCELED"]


def test_a_slot_that_cannot_be_had_during_the_pause_is_asked_for_again_after_it() -> None:
    world = started(pipeline(1), RESTARTS)
    world.lose(AllocationId("slot1"))
    [request_id] = world.requests
    assert told(world.send(SlotRequestFailed(request_id, Boom("no room")))) == []
    assert told(world.fire("restart-1")) == ["reset A0#0 B0#0", "request", "job RUNNING"]


def test_finished_tasks_of_the_region_run_again() -> None:
    world = started(pipeline(1), RESTARTS)
    world.run_to(S.FINISHED, "A")
    world.fail(world.attempt("B", 0))
    assert told(world.fire("restart-1")) == [
        "reset A0#0 B0#0",
        "job RUNNING",
        "deploy tm1: A0#1 B0#1",
    ]


def test_finished_producers_of_blocking_results_do_not_run_again() -> None:
    world = started(batch(1), RESTARTS)
    world.run_to(S.FINISHED, "A")
    world.grant_all()
    world.fail(world.attempt("B", 0))
    assert told(world.fire("restart-1"))[0] == "reset B0#0"


@pytest.mark.parametrize(
    "error", [PartitionNotFoundError("A's result is gone"), TaskExecutorLostError("died")]
)
def test_producers_of_lost_blocking_results_run_again(error: BaseException) -> None:
    world = World(Scheduler(batch(1), RESTARTS, IdFactory(7)), executors=1)
    world.send(StartScheduling())
    world.grant_all()
    world.run_to(S.FINISHED, "A")
    if isinstance(error, TaskExecutorLostError):
        world.lose(next(iter(world.slots)), error)
    else:
        world.fail(world.attempt("B", 0), error)
    assert told(world.fire("restart-1"))[0] == "reset A0#0 B0#0"
    assert world.run_fairly() is J.FINISHED


@pytest.mark.parametrize("finished", [False, True])
def test_all_that_reads_from_a_region_that_runs_again_runs_again_too(finished: bool) -> None:
    """Its second run may give other records, or the same in another order: who has read half of the
    first must not go on with the second."""
    world = started(
        job(
            {"A": 1, "B": 1, "C": 1},
            ("A", "B", ALL_TO_ALL, BLOCKING),
            ("A", "C", ALL_TO_ALL, BLOCKING),
        ),
        RESTARTS,
    )
    world.run_to(S.FINISHED, "A")
    world.grant_all()
    world.run_to(S.FINISHED if finished else S.RUNNING, "C")
    commands = told(world.fail(world.attempt("B", 0), PartitionNotFoundError("A's result is gone")))
    assert ("cancel C0#0" in commands) is not finished
    world.run_to(S.CANCELED, "C")
    assert told(world.fire("restart-1"))[0] == "reset A0#0 B0#0 C0#0"
    assert world.run_fairly() is J.FINISHED


def test_when_the_attempts_are_used_up_the_job_fails_with_the_last_error() -> None:
    world = started(pipeline(1), RESTARTS)
    for round_ in range(2):
        world.fail(world.attempt("A", 0), Boom(f"round {round_}"))
        world.progress(world.attempt("B", 0))
        world.fire(f"restart-{round_ + 1}")
    world.fail(world.attempt("A", 0), Boom("enough"))
    world.progress(world.attempt("B", 0))
    assert (world.states[-1], str(world.error)) == (J.FAILED, "enough")
    assert [
        (str(failure.error), failure.restarted) for failure in world.scheduler.details().failures
    ] == [("round 0", True), ("round 1", True), ("enough", False)]


def test_a_job_cancelled_while_it_waits_to_restart_ends_at_once_and_ignores_the_timer() -> None:
    world = started(pipeline(1), RESTARTS)
    world.fail(world.attempt("A", 0))
    world.progress(world.attempt("B", 0))
    assert told(world.send(CancelJob())) == ["job CANCELLING", "release slot1", "job CANCELED"]
    assert told(world.fire("restart-1")) == []


def test_a_failure_in_another_region_restarts_on_its_own_timer() -> None:
    world = started(strands(2), RESTARTS)
    world.fail(world.attempt("A", 0))
    world.fail(world.attempt("A", 1))
    world.run_to(S.CANCELED)
    assert told(world.fire("restart-2")) == ["reset A1#0 B1#0", "deploy tm2: A1#1 B1#1"]
    assert told(world.fire("restart-1")) == [
        "reset A0#0 B0#0",
        "job RUNNING",
        "deploy tm1: A0#1 B0#1",
    ]


def test_a_failure_upstream_takes_over_a_restart_downstream() -> None:
    world = started(job({"A": 2, "B": 2}, ("A", "B", POINTWISE, BLOCKING)), RESTARTS)
    world.run_to(S.FINISHED, "A")
    world.grant_all()
    world.fail(world.attempt("B", 0), Boom("first"))
    world.fail(world.attempt("B", 1), PartitionNotFoundError("A1 is gone"))
    assert set(world.scheduler.failovers.pending) == {"restart-1", "restart-2"}
    assert world.run_fairly() is J.FINISHED
    assert {short(attempt) for attempt in world.ended} == {
        "A0#0",
        "A1#0",
        "B0#0",
        "B1#0",
        "B0#1",
        "A1#1",
        "B1#1",
    }


def test_a_task_executor_that_dies_with_several_slots_is_one_failure() -> None:
    world = started(strands(3), SchedulerConfig(restart="fixed-delay", attempts=1))
    died = TaskExecutorLostError("tm died")
    world.lose(AllocationId("slot1"), died)
    assert told(world.lose(AllocationId("slot2"), died)) == ["request"]
    assert told(world.fire("restart-1"))[0] == "reset A0#0 A1#0 B0#0 B1#0"
    assert world.run_fairly() is J.FINISHED


def test_a_program_that_asks_for_what_cannot_be_is_not_restarted() -> None:
    world = started(pipeline(1), RESTARTS)
    assert (
        told(world.fail(world.attempt("A", 0), ProgramError("cannot be sent")))[0]
        == "job FAILING: cannot be sent"
    )


def test_a_rejected_deployment_counts_as_a_failure() -> None:
    world = started(pipeline(1), RESTARTS)
    attempt_id = world.attempt("A", 0)
    del world.tasks[attempt_id]
    assert told(world.send(DeploymentRejected(attempt_id, Boom("no memory")))) == [
        "cancel B0#0",
        "timer restart-1 5.0",
        "job RESTARTING: no memory",
    ]


def test_a_task_whose_deployment_was_never_answered_is_cancelled_to_be_safe() -> None:
    world = started(job({"A": 1}), RESTARTS)
    assert (
        told(world.send(DeploymentRejected(world.attempt("A", 0), RpcTimeoutError("no answer"))))[0]
        == "cancel A0#0"
    )


# -- what comes late, twice or unasked -------------------------------------------------------------


def test_reports_of_past_attempts_are_ignored() -> None:
    world = started(job({"A": 1}), RESTARTS)
    old = world.attempt("A", 0)
    world.fail(old)
    world.fire("restart-1")
    for state in ExecutionState:
        assert told(world.send(TaskStateChanged(old, state, Boom("late")))) == []
    assert world.running == {"A0#1"}


def test_a_slot_nobody_waits_for_any_more_goes_back_even_after_the_end() -> None:
    world = World.of(pipeline(1))
    world.send(StartScheduling())
    (request_id,) = world.requests
    world.send(CancelJob())
    location = TaskManagerLocation(ResourceId("tm9"), "tm9/taskexecutor")
    late = SlotAssigned(request_id, AllocationId("late"), location)
    assert told(world.scheduler.handle(late, 1.0)) == ["release late"]
    assert told(
        world.scheduler.handle(
            SlotAssigned(SlotRequestId("never asked"), AllocationId("x"), location), 1.0
        )
    ) == ["release x"]


def test_the_same_slot_assigned_twice_is_one_slot() -> None:
    world = started(job({"A": 1}))
    (slot,) = world.scheduler.slots.by_key.values()
    assert slot.allocation_id is not None
    assert slot.location is not None
    assert told(world.send(SlotAssigned(slot.request_id, slot.allocation_id, slot.location))) == []


def test_late_progress_and_unknown_slots_and_timers_change_nothing() -> None:
    world = started(job({"A": 1}))
    attempt_id = world.attempt("A", 0)
    world.run_to(S.RUNNING)
    assert told(world.send(TaskStateChanged(attempt_id, S.INITIALIZING))) == []
    assert told(world.send(SlotLost(AllocationId("unknown"), Boom("x")))) == []
    assert told(world.send(SlotRequestFailed(SlotRequestId("unknown"), Boom("x")))) == []
    assert told(world.send(TimerFired("restart-9"))) == []
    assert told(world.send(StartScheduling())) == []


def test_a_task_that_finishes_before_its_running_report_came_is_finished() -> None:
    world = started(job({"A": 1}))
    world.progress(world.attempt("A", 0))
    attempt_id = world.attempt("A", 0)
    del world.tasks[attempt_id]
    assert told(world.send(TaskStateChanged(attempt_id, S.FINISHED))) == [
        "release slot1",
        "job FINISHED",
    ]


def test_a_task_cancelled_by_nobody_is_a_failure() -> None:
    world = started(job({"A": 1}))
    attempt_id = world.attempt("A", 0)
    del world.tasks[attempt_id]
    world.send(TaskStateChanged(attempt_id, S.CANCELED))
    assert world.states[-1] is J.FAILED
    assert isinstance(world.error, EngineError)


# -- what it tells ---------------------------------------------------------------------------------


def test_details_count_the_states_per_vertex() -> None:
    world = started(pipeline(2))
    world.run_to(S.RUNNING, "A")
    details = world.scheduler.details()
    assert (details.state, details.slots, details.slots_requested, details.restarts) == (
        J.RUNNING,
        2,
        0,
        0,
    )
    assert {vertex.name: vertex.states for vertex in details.vertices} == {
        "A": {S.RUNNING: 2},
        "B": {S.DEPLOYING: 2},
    }
    assert [attempts[0].name for attempts in world.scheduler.report().attempts] == [
        "A (1/2)",
        "A (2/2)",
        "B (1/2)",
        "B (2/2)",
    ]


def test_it_knows_on_which_task_executor_an_attempt_runs() -> None:
    world = started(strands(2))
    b0 = world.attempt("B", 0)
    location = world.scheduler.location_of(b0)
    assert location is not None
    assert location.resource_id == "tm1"
    assert world.scheduler.location_of(b0._replace(attempt=7)) is None


def test_equal_events_and_ids_give_equal_commands() -> None:
    def run() -> list[Command]:
        world = World(Scheduler(pipeline(3), RESTARTS, IdFactory(3)))
        world.send(StartScheduling())
        world.run_fairly()
        return world.commands

    assert run() == run()


def test_a_broken_invariant_is_told_with_the_parts_that_contradict() -> None:
    world = started(pipeline(1))
    world.scheduler.slots.by_key.clear()
    with pytest.raises(EngineError, match=r"A \(1/1\)#0: DEPLOYING.* is not in a slot of the job"):
        world.scheduler.check_invariants()


def test_cancel_slot_requests_name_the_request() -> None:
    world = World.of(pipeline(1))
    world.send(StartScheduling())
    (request_id,) = world.requests
    assert CancelSlotRequest(request_id) in world.send(CancelJob())
