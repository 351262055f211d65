"""The gateways: what each endpoint can be asked, as typed protocols.

A method that returns None is a tell: sent and forgotten. One that returns a Future is an ask: answered, or failed by its timeout.
Every message may be lost, late or doubled. So each call here can be repeated without harm, and what must arrive is repeated until answered or
made good by the heartbeats, which carry what the sender holds. What a TaskExecutor says carries its ``sequence``, a counter it raises with every
change of its slots and tasks: a report can deny only what was true before it, so a late report is recognised.
Calls that come by the thousand (slots, tasks, states) are batched.
A test compares each gateway with its endpoint, signature by signature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from flinkpy.actors.rpc.registration import RegistrationResponse
from flinkpy.core.futures import Future
from flinkpy.core.ids import (
    AllocationId,
    ExecutionAttemptId,
    FencingToken,
    JobId,
    OperatorId,
    ResourceId,
)
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.graph.deployment import (
    JobMasterRegistration,
    SlotOffer,
    SlotStatus,
    TaskDeploymentDescriptor,
    TaskExecutionState,
    TaskManagerLocation,
    TaskMetrics,
)
from flinkpy.graph.job_graph import JobGraph
from flinkpy.graph.resources import ResourceProfile

# -- values in the messages ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JobOverview:
    """One line of `flinkpy list`."""

    job_id: JobId
    name: str
    state: JobState
    start_ms: int
    end_ms: int | None
    tasks: dict[ExecutionState, int] = field(default_factory=dict)


@dataclass(frozen=True)
class VertexDetails:
    """One vertex of a running or ended job, summed over its subtasks, as it was at ``counted_ms`` of the JobMaster's clock (0: not yet counted).

    Of the milliseconds a second that its subtasks are busy, held back by their consumers or idle, the greatest count each, as in Flink's pages.
    """

    vertex_id: str
    name: str
    parallelism: int
    states: dict[ExecutionState, int]
    records_in: int = 0
    records_out: int = 0
    counted_ms: int = 0
    busy_ms_per_second: int = 0
    back_pressured_ms_per_second: int = 0
    idle_ms_per_second: int = 0


@dataclass(frozen=True)
class JobMetrics:
    """``accumulators`` of a job as far as they were reported, merged over its subtasks, the metrics of its functions among them; ``engine``
    what the engine itself counts in each subtask, by identifier. Of an ended job the accumulators stay."""

    accumulators: dict[str, Any] = field(default_factory=dict)
    engine: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class JobDetails:
    overview: JobOverview
    vertices: tuple[VertexDetails, ...]
    error: BaseException | None = None


@dataclass(frozen=True)
class JobResult:
    """How a job ended. ``accumulators`` are merged over all subtasks."""

    job_id: JobId
    name: str
    state: JobState
    runtime_ms: int
    error: BaseException | None = None
    accumulators: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusterOverview:
    task_executors: int
    slots_total: int
    slots_free: int
    jobs_running: int


@dataclass(frozen=True)
class TaskExecutorRegistration:
    location: TaskManagerLocation
    report: SlotReport


@dataclass(frozen=True)
class SlotReport:
    """What the slots of a TaskExecutor hold: its payload to the ResourceManager, sent with heartbeats and whenever a slot was freed."""

    sequence: int
    slots: tuple[SlotStatus, ...]
    keeps_results: bool = False  # somebody may still read from it: it is needed though no slot is taken


@dataclass(frozen=True)
class SlotRequest:
    """A JobMaster asks the ResourceManager for a slot; the allocation id is the JobMaster's. Asking again under the same id is no second request."""

    job_id: JobId
    allocation_id: AllocationId
    profile: ResourceProfile
    job_master_address: str
    job_master_token: FencingToken
    preferred: tuple[ResourceId, ...] = ()
    may_wait: bool = False  # any slot gets the job on, so that it need not have all of them at a time


@dataclass(frozen=True)
class SlotAllocation:
    """The ResourceManager asks a TaskExecutor to promise the slot to a job and to offer it to its JobMaster."""

    slot_index: int
    request: SlotRequest


@dataclass(frozen=True)
class JobMasterHeartbeat:
    """Payload of a JobMaster to the ResourceManager: the slots it still waits for."""

    requested: tuple[AllocationId, ...]


@dataclass(frozen=True)
class JobHeartbeat:
    """Payload of a TaskExecutor to a JobMaster: counters, and what it holds for that job, so that lost messages are noticed on both sides.

    ``running`` are the attempts whose end the JobMaster has not acknowledged yet.
    """

    sequence: int
    metrics: tuple[TaskMetrics, ...]
    running: tuple[ExecutionAttemptId, ...]
    slots: tuple[AllocationId, ...] = ()
    results: tuple[ExecutionAttemptId, ...] = ()  # finished attempts whose blocking results are kept here


@dataclass(frozen=True)
class SubmitAnswer:
    """Which tasks were not started, and why; all others were."""

    sequence: int
    refused: dict[ExecutionAttemptId, str]


# -- the gateways ----------------------------------------------------------------------------------------------------------------


class DispatcherGateway(Protocol):
    """For clients and the REST endpoint."""

    def submit_job(self, job_graph: JobGraph) -> Future[JobId]:
        """Starts the job; the same job again starts nothing and gives the same answer."""
        ...

    def list_jobs(self) -> Future[list[JobOverview]]: ...

    def request_job_status(self, job_id: JobId) -> Future[JobState]: ...

    def request_job_details(self, job_id: JobId) -> Future[JobDetails]: ...

    def request_job_metrics(self, job_id: JobId) -> Future[JobMetrics]: ...

    def request_job_result(self, job_id: JobId, wait_s: float) -> Future[JobResult | None]:
        """The result once the job ended; None when it has not within ``wait_s`` (ask again). Choose ``wait_s`` below the ask's timeout."""
        ...

    def cancel_job(self, job_id: JobId) -> Future[None]:
        """Done when the JobMaster has the request; a job that has ended stays as it is."""
        ...

    def request_cluster_overview(self) -> Future[ClusterOverview]: ...

    def shut_down_cluster(self) -> Future[None]:
        """Cancels what runs, then ends the cluster; done when no job runs any more."""
        ...


class ResourceManagerGateway(Protocol):
    def register_job_master(self, registration: JobMasterRegistration) -> Future[RegistrationResponse]: ...

    def register_task_executor(self, registration: TaskExecutorRegistration) -> Future[RegistrationResponse]: ...

    def disconnect_job_master(self, job_id: JobId, reason: str) -> None: ...

    def disconnect_task_executor(self, resource_id: ResourceId, reason: str) -> None: ...

    def request_slots(self, requests: tuple[SlotRequest, ...]) -> Future[dict[AllocationId, BaseException]]:
        """The answer names those that can never be had (ResourceUnavailableError); TaskExecutors will offer the others. Repeating is harmless."""
        ...

    def cancel_slot_requests(self, allocation_ids: tuple[AllocationId, ...]) -> None: ...

    def report_slots(self, resource_id: ResourceId, report: SlotReport) -> None:
        """A TaskExecutor's slots changed (one was freed)."""
        ...

    def heartbeat_from_task_executor(self, resource_id: ResourceId, payload: SlotReport) -> None: ...

    def heartbeat_from_job_master(self, resource_id: ResourceId, payload: JobMasterHeartbeat) -> None: ...

    def request_overview(self) -> Future[ClusterOverview]: ...


class JobMasterGateway(Protocol):
    def register_task_executor(self, location: TaskManagerLocation) -> Future[RegistrationResponse]: ...

    def offer_slots(self, resource_id: ResourceId, sequence: int, offers: tuple[SlotOffer, ...]) -> Future[tuple[AllocationId, ...]]:
        """The accepted ones; the others go back. Fails with RecipientUnreachableError when the TaskExecutor is not registered here."""
        ...

    def fail_slot(self, resource_id: ResourceId, allocation_id: AllocationId, reason: str) -> None:
        """The TaskExecutor took the slot back."""
        ...

    def notify_allocation_failed(self, allocation_id: AllocationId, error: BaseException) -> None:
        """From the ResourceManager: the requested slot will not come."""
        ...

    def disconnect_task_executor(self, resource_id: ResourceId, reason: str) -> None: ...

    def disconnect_resource_manager(self, reason: str) -> None: ...

    def update_task_execution_states(
        self, resource_id: ResourceId, sequence: int, states: tuple[TaskExecutionState, ...],
    ) -> Future[tuple[ExecutionAttemptId, ...]]:
        """Repeated by the TaskExecutor until answered, since no terminal state may be lost. The answer names attempts to cancel: the job does
        not know them."""
        ...

    def send_operator_events(self, attempt_id: ExecutionAttemptId, first: int, events: tuple[tuple[OperatorId | None, Any], ...]) -> Future[None]:
        """Events of a task for its coordinators, numbered from ``first``; repeated until answered, and those already seen are skipped."""
        ...

    def heartbeat_from_task_executor(self, resource_id: ResourceId, payload: JobHeartbeat) -> None: ...

    def heartbeat_from_resource_manager(self, resource_id: ResourceId) -> None: ...

    def cancel(self) -> Future[None]: ...

    def request_status(self) -> Future[JobState]: ...

    def request_details(self) -> Future[JobDetails]: ...

    def request_metrics(self) -> Future[JobMetrics]:
        """Answered when the TaskExecutors have had a moment to tell the latest."""
        ...


class TaskExecutorGateway(Protocol):
    def request_slots(self, resource_manager_token: FencingToken, allocations: tuple[SlotAllocation, ...]) -> Future[SlotReport]:
        """The answer shows which slots hold what now: a refused allocation is not among them, its slot's occupant is."""
        ...

    def submit_tasks(self, job_master_token: FencingToken, descriptors: tuple[TaskDeploymentDescriptor, ...]) -> Future[SubmitAnswer]:
        """Starts them; those it has already are not started again."""
        ...

    def cancel_tasks(self, attempt_ids: tuple[ExecutionAttemptId, ...]) -> Future[tuple[ExecutionAttemptId, ...]]:
        """Cancels them; the answer names those it does not know (any more, or yet)."""
        ...

    def free_slots(self, allocation_ids: tuple[AllocationId, ...], reason: str) -> None:
        """The job does not need them: what still runs there is cancelled."""
        ...

    def release_results(self, attempt_ids: tuple[ExecutionAttemptId, ...]) -> None:
        """The blocking results of these finished attempts are not needed any more. A lost message is repeated after the next heartbeat."""
        ...

    def send_operator_events(self, attempt_id: ExecutionAttemptId, first: int, events: tuple[tuple[OperatorId | None, Any], ...]) -> Future[None]:
        """Events of coordinators for a task, numbered from ``first``; repeated until answered, and those already seen are skipped."""
        ...

    def heartbeat_from_job_master(self, resource_id: ResourceId) -> None: ...

    def heartbeat_from_resource_manager(self, resource_id: ResourceId) -> None: ...

    def disconnect_job_master(self, job_id: JobId, reason: str) -> None: ...

    def disconnect_resource_manager(self, reason: str) -> None: ...


class WorkerDriver(Protocol):
    """How the ResourceManager gets and gives back TaskExecutor processes; no RPC, an object it owns. Ray actors, local endpoints, or simulated ones.

    All calls come from the ResourceManager's main thread and return at once.
    """

    def max_slots(self, profile: ResourceProfile) -> int | None:
        """How many slots of that profile the cluster can ever have, all workers together; None when unlimited."""
        ...

    def explain_limit(self, profile: ResourceProfile, wanted: int) -> str:
        """In words, with numbers and the option to change, why ``wanted`` slots cannot be had."""
        ...

    def start_worker(self, resource_id: ResourceId, slots: int, profile: ResourceProfile, on_failure: Callable[[str], None]) -> None:
        """Starts a TaskExecutor that will register under ``resource_id``, unless it does so already; ``on_failure(reason)``, from any thread, if
        it cannot or once it died."""
        ...

    def stop_worker(self, resource_id: ResourceId) -> None:
        """Ends the worker; unknown and ended ones are ignored."""
        ...
