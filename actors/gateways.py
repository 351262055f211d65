"""The gateways: the messages that each endpoint accepts, as typed protocols.

A method that returns None is a tell: sent and forgotten. One that returns a Future is an ask: it is
answered, or fails at its timeout. Any message may be lost, late or doubled. So each call can be
repeated without harm. A message that must arrive is repeated until it is answered, or the
heartbeats make up for its loss: they carry what the sender holds. A TaskExecutor's messages carry
its ``sequence``, a counter that it raises with every change of its slots and tasks. A report says
nothing about later changes, and the counter tells the receiver which changes are later. Calls that
come by the thousand (slots, tasks, states) are batched. A test compares each gateway with its
endpoint, signature by signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo, InputInfo
from flinkpy.actors.rpc.delivery.courier import NumberedEvents
from flinkpy.actors.rpc.registration import RegistrationResponse
from flinkpy.actors.task_executor_info import ProcessDescription, TaskExecutorInfo
from flinkpy.core.elements import SavepointFormatType, SnapshotType
from flinkpy.core.futures import Future
from flinkpy.core.ids import (
    AllocationId,
    ExecutionAttemptId,
    FencingToken,
    JobId,
    JobVertexId,
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
from flinkpy.metrics.readings import TaskReading
from flinkpy.metrics.shown_accumulators import Shown
from flinkpy.runtime.memory.memory_report import MemoryReport
from flinkpy.runtime.task_messages import MessageFromTask, MessageToTask

# -- values in the messages ------------------------------------------------------------------------


@dataclass(frozen=True)
class JobOverview:
    """One line of `flinkpy list`. ``failure`` is the last failure in a line, and ``failed_ms`` when
    it was; empty and None if there was none."""

    job_id: JobId
    name: str
    state: JobState
    start_ms: int
    end_ms: int | None
    tasks: dict[ExecutionState, int] = field(default_factory=dict)
    restarts: int = 0
    failed_ms: int | None = None
    failure: str = ""


@dataclass(frozen=True)
class OperatorDetails:
    """What one operator of a vertex counts beside all records, summed over its subtasks: its state,
    and rows that change, by the names of the table of metrics."""

    name: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class VertexDetails:
    """One vertex of a running or ended job, summed over its subtasks, as of ``counted_ms`` on the
    JobMaster's clock (0: not yet counted).

    The three ``…_ms_per_second`` are each the maximum over the subtasks, as in Flink's web
    interface."""

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
    inputs: tuple[InputInfo, ...] = ()
    operators: tuple[OperatorDetails, ...] = ()


@dataclass(frozen=True)
class JobMetrics:
    """The metrics of a job.

    ``accumulators`` are the reported accumulators, merged over the job's subtasks; they include the
    metrics of its functions, and stay when the job has ended. ``engine`` holds what the engine
    counts in each subtask, by identifier. ``of_vertices`` and ``of_attempts`` are the accumulators
    for people, merged over the subtasks of a vertex, and of each known attempt. ``last`` has of
    each subtask that has ended what its current attempt told at its end."""

    accumulators: dict[str, Any] = field(default_factory=dict)
    engine: dict[str, float] = field(default_factory=dict)
    of_vertices: Mapping[JobVertexId, Shown] = field(default_factory=dict)
    of_attempts: Mapping[ExecutionAttemptId, Shown] = field(default_factory=dict)
    last: tuple[TaskReading, ...] = ()


@dataclass(frozen=True)
class SavepointRequest:
    """For a savepoint, or with CHECKPOINT for a checkpoint out of turn. Whoever asks chooses
    ``trigger_id``, and asks as often as they like under this id: the job takes one. ``directory``
    is the folder in which the savepoint gets a folder of its own; None is the job's default."""

    trigger_id: str
    snapshot_type: SnapshotType = SnapshotType.SAVEPOINT
    directory: str | None = None
    format_type: SavepointFormatType = SavepointFormatType.NATIVE


@dataclass(frozen=True)
class SavepointStatus:
    """How it stands. ``location`` is the folder, None for a checkpoint in memory; ``subtasks`` take
    part, of which some have ``acknowledged``. ``checkpoint_id`` is the number of one that is
    complete."""

    trigger_id: str
    is_over: bool = False
    location: str | None = None
    error: BaseException | None = None
    acknowledged: int = 0
    subtasks: int = 0  # 0: it has not begun
    checkpoint_id: int | None = None


@dataclass(frozen=True)
class JobDetails:
    overview: JobOverview
    vertices: tuple[VertexDetails, ...]
    error: BaseException | None = None
    restarts: int = 0
    last_failure: str = ""  # that the job has survived, in words
    checkpoint_id: int | None = None  # of the newest that is complete
    # that clients have asked for and that are over; the last few
    savepoints: tuple[SavepointStatus, ...] = ()
    graph: ExecutionGraphInfo | None = None  # of a job that has ended: all there is to tell
    # of a job that has ended, but for the accumulators in its result
    metrics: JobMetrics | None = None
    # the few TaskExecutors of the job that have most of their memory, as they last told
    fullest: tuple[tuple[ResourceId, MemoryReport], ...] = ()


@dataclass(frozen=True)
class JobResult:
    """How a job ended. ``accumulators`` are merged over all subtasks."""

    job_id: JobId
    name: str
    state: JobState
    runtime_ms: int
    error: BaseException | None = None
    accumulators: dict[str, Any] = field(default_factory=dict)
    restarts: int = 0
    was_initialised: bool = True  # whether its first tasks were scheduled


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
    process: ProcessDescription = field(default_factory=ProcessDescription)


@dataclass(frozen=True)
class SlotReport:
    """What the slots of a TaskExecutor hold. It sends this to the ResourceManager with heartbeats
    and whenever it frees a slot."""

    sequence: int
    slots: tuple[SlotStatus, ...]
    # Keeps results that may still be read: the TaskExecutor is needed though no slot is taken
    keeps_results: bool = False


@dataclass(frozen=True)
class SlotRequest:
    """A JobMaster asks the ResourceManager for a slot, under an allocation id that it chooses.
    Repeating the request under this id is harmless."""

    job_id: JobId
    allocation_id: AllocationId
    profile: ResourceProfile
    job_master_address: str
    job_master_token: FencingToken
    preferred: tuple[ResourceId, ...] = ()
    # the job makes progress with any number of slots, so it need not have all of them at once
    may_wait: bool = False


@dataclass(frozen=True)
class SlotAllocation:
    """The ResourceManager asks a TaskExecutor to allocate the slot to a job and to offer it to the
    JobMaster."""

    slot_index: int
    request: SlotRequest


@dataclass(frozen=True)
class JobMasterHeartbeat:
    """A JobMaster's heartbeat to the ResourceManager: the slots it still waits for."""

    requested: tuple[AllocationId, ...]


@dataclass(frozen=True)
class JobHeartbeat:
    """A TaskExecutor's heartbeat to a JobMaster: counters, and what it holds for that job, so that
    both notice lost messages. It is the answer to the JobMaster's, or rides on a report.

    ``running`` are the attempts whose end the JobMaster has not acknowledged yet.
    """

    sequence: int
    metrics: tuple[TaskMetrics, ...]
    running: tuple[ExecutionAttemptId, ...]
    slots: tuple[AllocationId, ...] = ()
    # finished attempts whose blocking results are kept here
    results: tuple[ExecutionAttemptId, ...] = ()
    memory: MemoryReport | None = None  # of its process


TaskMessages: TypeAlias = NumberedEvents[ExecutionAttemptId, MessageFromTask]
MessagesToTask: TypeAlias = NumberedEvents[ExecutionAttemptId, MessageToTask]


@dataclass(frozen=True)
class TaskReport:
    """What a TaskExecutor's tasks have to say to their JobMaster, in one message for all of them:
    of each the latest state, and what it has said, in order. What is not answered is in the next
    report again. With ``heartbeat``, the JobMaster need not ask for one."""

    sequence: int
    states: tuple[TaskExecutionState, ...] = ()
    messages: tuple[TaskMessages, ...] = ()
    heartbeat: JobHeartbeat | None = None


@dataclass(frozen=True)
class SubmitAnswer:
    """Which tasks the TaskExecutor did not start, and why. It started all others."""

    sequence: int
    refused: dict[ExecutionAttemptId, str]


# -- the gateways ----------------------------------------------------------------------------------


class DispatcherGateway(Protocol):
    """For clients and the REST endpoint. Every call can be repeated: a client whose JobManager has
    died makes it again at the next one."""

    def submit_job(self, job_graph: JobGraph) -> Future[JobId]:
        """Starts the job. Submitting it again starts nothing and returns the same id."""
        ...

    def list_jobs(self) -> Future[list[JobOverview]]: ...

    def request_job_status(self, job_id: JobId) -> Future[JobState]: ...

    def request_job_details(self, job_id: JobId) -> Future[JobDetails]: ...

    def request_execution_graph(self, job_id: JobId) -> Future[ExecutionGraphInfo]:
        """The whole job, running or ended, for those who watch it."""
        ...

    def request_job_metrics(self, job_id: JobId) -> Future[JobMetrics]: ...

    def request_job_result(self, job_id: JobId, wait_s: float) -> Future[JobResult | None]:
        """Returns the job's result once it has ended; None if it has not within ``wait_s`` (ask
        again). Keep ``wait_s`` below the ask's timeout."""
        ...

    def cancel_job(self, job_id: JobId) -> Future[None]:
        """Answered when the JobMaster has received the request; with high availability it holds for
        the next JobMaster, too. A job that has ended stays as it is."""
        ...

    def request_savepoint(
        self, job_id: JobId, request: SavepointRequest, wait_s: float
    ) -> Future[SavepointStatus]:
        """Asks for a savepoint, or, repeated under its ``trigger_id``, how it stands. Answered when
        it is over, at the latest after ``wait_s``. Keep ``wait_s`` below the ask's timeout."""
        ...

    def request_cluster_overview(self) -> Future[ClusterOverview]: ...

    def shut_down_cluster(self) -> Future[None]:
        """Cancels the running jobs, then ends the cluster. Answered when no job runs any more."""
        ...


class ResourceManagerGateway(Protocol):
    def register_job_master(
        self, registration: JobMasterRegistration
    ) -> Future[RegistrationResponse]: ...

    def register_task_executor(
        self, registration: TaskExecutorRegistration
    ) -> Future[RegistrationResponse]: ...

    def disconnect_job_master(self, job_id: JobId, reason: str) -> None: ...

    def disconnect_task_executor(self, resource_id: ResourceId, reason: str) -> None: ...

    def request_slots(
        self, requests: tuple[SlotRequest, ...]
    ) -> Future[dict[AllocationId, BaseException]]:
        """Returns the requests that can never be served, with the error of each
        (ResourceUnavailableError). TaskExecutors will offer slots for the others. Repeating is
        harmless."""
        ...

    def cancel_slot_requests(self, allocation_ids: tuple[AllocationId, ...]) -> None: ...

    def report_slots(self, resource_id: ResourceId, report: SlotReport) -> None:
        """The TaskExecutor's slots have changed (it freed one)."""
        ...

    def heartbeat_from_task_executor(
        self, resource_id: ResourceId, payload: SlotReport
    ) -> None: ...

    def heartbeat_from_job_master(
        self, resource_id: ResourceId, payload: JobMasterHeartbeat
    ) -> None: ...

    def request_overview(self) -> Future[ClusterOverview]: ...

    def request_task_executors(self) -> Future[tuple[TaskExecutorInfo, ...]]:
        """Those that are registered, in the order of their registration."""
        ...


class JobMasterGateway(Protocol):
    def register_task_executor(
        self, location: TaskManagerLocation
    ) -> Future[RegistrationResponse]: ...

    def offer_slots(
        self, resource_id: ResourceId, sequence: int, offers: tuple[SlotOffer, ...]
    ) -> Future[tuple[AllocationId, ...]]:
        """Returns the accepted slots; the TaskExecutor takes back the others. Fails with
        NotRegisteredError when it is not registered here."""
        ...

    def fail_slot(self, resource_id: ResourceId, allocation_id: AllocationId, reason: str) -> None:
        """The TaskExecutor has taken the slot back."""
        ...

    def notify_allocation_failed(self, allocation_id: AllocationId, error: BaseException) -> None:
        """The ResourceManager reports that the requested slot will not come."""
        ...

    def disconnect_task_executor(self, resource_id: ResourceId, reason: str) -> None: ...

    def disconnect_resource_manager(self, reason: str) -> None: ...

    def report_tasks(
        self, resource_id: ResourceId, report: TaskReport
    ) -> Future[tuple[ExecutionAttemptId, ...]]:
        """The TaskExecutor repeats this until it is answered, since no terminal state may be lost;
        messages that were seen already are skipped. The answer names attempts that the job does
        not know: the TaskExecutor cancels them."""
        ...

    def heartbeat_from_task_executor(
        self, resource_id: ResourceId, payload: JobHeartbeat
    ) -> None: ...

    def heartbeat_from_resource_manager(self, resource_id: ResourceId) -> None: ...

    def cancel(self) -> Future[None]: ...

    def request_status(self) -> Future[JobState]: ...

    def request_details(self) -> Future[JobDetails]: ...

    def request_execution_graph(self) -> Future[ExecutionGraphInfo]: ...

    def request_savepoint(
        self, request: SavepointRequest, wait_s: float
    ) -> Future[SavepointStatus]:
        """As the Dispatcher's."""
        ...

    def request_metrics(self) -> Future[JobMetrics]:
        """Answered after the TaskExecutors have had a moment to report their latest counters."""
        ...


class TaskExecutorGateway(Protocol):
    def request_slots(
        self, resource_manager_token: FencingToken, allocations: tuple[SlotAllocation, ...]
    ) -> Future[SlotReport]:
        """Returns the state of all slots. If the TaskExecutor refused an allocation, the report
        shows what holds that slot instead."""
        ...

    def submit_tasks(
        self, job_master_token: FencingToken, descriptors: tuple[TaskDeploymentDescriptor, ...]
    ) -> Future[SubmitAnswer]:
        """Starts the tasks, except those that it has started already."""
        ...

    def cancel_tasks(
        self, attempt_ids: tuple[ExecutionAttemptId, ...]
    ) -> Future[tuple[ExecutionAttemptId, ...]]:
        """Cancels the attempts. Returns those that it does not know (any more, or yet)."""
        ...

    def free_slots(self, allocation_ids: tuple[AllocationId, ...], reason: str) -> None:
        """The job does not need these slots: the TaskExecutor cancels what still runs there."""
        ...

    def release_results(self, attempt_ids: tuple[ExecutionAttemptId, ...]) -> None:
        """The blocking results of these finished attempts are not needed any more. A lost message
        is repeated after the next heartbeat."""
        ...

    def deliver_messages(
        self, batch: tuple[MessagesToTask, ...]
    ) -> Future[tuple[ExecutionAttemptId, ...]]:
        """What the JobMaster and its coordinators say to tasks here. Repeated until answered, and
        what was seen already is skipped. Returns the attempts that do not run here (yet, or any
        more): they have heard nothing."""
        ...

    def heartbeat_from_job_master(self, resource_id: ResourceId) -> None: ...

    def heartbeat_from_resource_manager(self, resource_id: ResourceId) -> None: ...

    def disconnect_job_master(self, job_id: JobId, reason: str) -> None: ...

    def disconnect_resource_manager(self, reason: str) -> None: ...


class WorkerDriver(Protocol):
    """How the ResourceManager starts and stops TaskExecutor processes: an object that it owns,
    called without RPC. Workers are Ray actors, local endpoints or simulated ones.

    All calls come from the ResourceManager's main thread and return at once.
    """

    def max_slots(self, profile: ResourceProfile) -> int | None:
        """How many slots of that profile the cluster can ever have, all workers together; None if
        unlimited."""
        ...

    def explain_limit(self, profile: ResourceProfile, wanted: int) -> str:
        """Says, with numbers and the option to change, why the cluster cannot have ``wanted``
        slots."""
        ...

    def start_worker(
        self,
        resource_id: ResourceId,
        slots: int,
        profile: ResourceProfile,
        on_failure: Callable[[str], None],
    ) -> None:
        """Starts a TaskExecutor that will register under ``resource_id``, unless one is starting
        under it already. Calls ``on_failure(reason)``, in any thread, if it cannot be started or
        when it has died."""
        ...

    def stop_worker(self, resource_id: ResourceId) -> None:
        """Ends the worker. Unknown and ended workers are ignored."""
        ...
