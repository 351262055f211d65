"""The simulated cluster: real endpoints, simulated processes and workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from flinkpy.actors.dispatcher import Dispatcher, DispatcherHost, OnTerminal
from flinkpy.actors.endpoint_services import EndpointServices
from flinkpy.actors.gateways import DispatcherGateway, JobDetails, JobResult
from flinkpy.actors.job_master.job_master import JobMaster
from flinkpy.actors.job_store import Inheritance, JobStore
from flinkpy.actors.resource_manager.resource_manager import ResourceManager
from flinkpy.actors.rpc.delivery.envelope import Message, RpcAnswer, RpcInvocation
from flinkpy.actors.rpc.leadership import (
    LeaderRetrievalService,
    StandaloneLeadership,
    connect_to_leader,
    first_leader,
)
from flinkpy.actors.rpc.simulated.event_queue import Place
from flinkpy.actors.rpc.simulated.network_port import SimulatedProcess
from flinkpy.actors.rpc.simulated.simulated_service import SimulatedHost, SimulatedRpcService
from flinkpy.actors.rpc.simulated.unreliable_network import FaultPlan, SimulatedNetwork
from flinkpy.actors.task_executor.task_executor import TaskExecutor
from flinkpy.actors.task_executor.worker_process import WorkerProcess
from flinkpy.cluster.leader_finder import LeaderFinder
from flinkpy.cluster.leader_takeover import TakeOver, with_checkpoint_folder
from flinkpy.cluster.session import RestPlace, SessionEndpoint
from flinkpy.core.errors import EngineError, RemoteError
from flinkpy.core.futures import Future
from flinkpy.core.ids import ExecutionAttemptId, FencingToken, IdFactory, JobId, ResourceId
from flinkpy.core.options.engine import RpcConfig, SlotConfig
from flinkpy.core.options.high_availability import HighAvailability
from flinkpy.graph.job_graph import JobGraph
from flinkpy.graph.resources import ANY, ResourceProfile
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.testing.simulation.checkpoint_oracle import CheckpointOracle
from flinkpy.testing.simulation.cluster_files import ClusterFiles
from flinkpy.testing.simulation.data_plane import DataPlane
from flinkpy.testing.simulation.scenario import Partition
from flinkpy.testing.simulation.simulated_task_runner import SimulatedTaskRunner
from flinkpy.testing.simulation.stream_surroundings import Streams
from flinkpy.testing.simulation.watched_runner import WatchedRunner

T = TypeVar("T")


class Machines(Protocol):
    """Makes what runs the tasks of each TaskExecutor (``flinkpy.testing.simulation.machine``)."""

    def runner_of(
        self, process: SimulatedRpcService, stores: Callable[[str], FileStore]
    ) -> WatchedRunner: ...


HIGH_AVAILABILITY = HighAvailability("simulated://store", "cluster")
TERM_BEGINS_S = 600.0
ECHO_S = 3.0  # how late an echo comes at most
SESSION = "session"
DISPATCHER, RESOURCE_MANAGER, CLIENT = "dispatcher", "resourcemanager", "client"


class WatchedNetwork(SimulatedNetwork):
    """Remembers where the current event ran, so that only those places are checked after it."""

    def __init__(self, seed: int, faults: FaultPlan, config: RpcConfig) -> None:
        super().__init__(seed, faults, config=config)
        self.touched: dict[SimulatedHost, None] = {}
        self.bugs: list[BaseException] = []
        self.echoes = 0.0  # how likely it is that what a task has said comes once more, long after
        # For tests: True loses the message
        self.swallow: Callable[[str, str, Message], bool] = lambda source, target, message: False

    def run_at(self, place: Place | None, action: Callable[[], object]) -> None:
        if type(place) is SimulatedHost:
            self.touched[place] = None
        super().run_at(place, action)

    def send(self, source: SimulatedProcess, process: str, message: Message) -> None:
        """Sends the message. Keeps an answer that reports a bug, since its receiver may not wait
        for it any more."""
        if isinstance(message, RpcAnswer) and isinstance(message.error, (EngineError, RemoteError)):
            self.bugs.append(message.error)
        if self.swallow(source.process, process, message):
            return
        super().send(source, process, message)
        if (
            self.echoes
            and isinstance(message, RpcInvocation)
            and message.method in ("deliver_messages", "report_tasks")
        ):
            self._echo(source, process, message)

    def _echo(self, source: SimulatedProcess, process: str, message: Message) -> None:
        target = self._processes.get(process)
        if target is not None and self.random.random() < self.echoes:
            arrive = partial(self._arrive, source.process, target, message)
            self.schedule(
                ECHO_S * self.random.random(), arrive, f"{source.process}>{process} echo", target
            )

    def touched_hosts(self) -> list[SimulatedHost]:
        """Returns the endpoints in which the last event ran, if they still exist, and forgets
        them."""
        hosts = [host for host in self.touched if host.alive]
        self.touched.clear()
        return hosts


@dataclass
class SimulatedWorker:
    """One process with one TaskExecutor."""

    service: SimulatedRpcService
    executor: TaskExecutor
    runner: WatchedRunner
    slots: int
    on_failure: Callable[[str], None] | None  # the driver's callback, for workers it started


@dataclass
class SimulatedJobMaster:
    """One process with one JobMaster, started by the Dispatcher."""

    service: SimulatedRpcService
    master: JobMaster

    @property
    def address(self) -> str:
        return self.master.address

    @property
    def token(self) -> FencingToken | None:
        return self.master.token

    def start(self) -> None:
        self.master.start()

    def stop(self) -> Future[None]:
        return self.service.stop()


class SimulatedDriver:
    """A WorkerDriver. Workers take a while to start, may fail to start, and their death may be
    noticed or not."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        *,
        max_slots: int | None = None,
        start_s: float = 1.0,
        failing: float = 0.0,
    ) -> None:
        self._cluster = cluster
        self._max_slots = max_slots
        self._start_s = start_s
        self.failing = failing
        self._starting: set[ResourceId] = set()
        self.started = 0

    def max_slots(self, profile: ResourceProfile) -> int | None:
        return self._max_slots

    def explain_limit(self, profile: ResourceProfile, wanted: int) -> str:
        return (
            f"the job needs {wanted} slots, the simulated cluster has {self._max_slots}: "
            "lower the parallelism"
        )

    def start_worker(
        self,
        resource_id: ResourceId,
        slots: int,
        profile: ResourceProfile,
        on_failure: Callable[[str], None],
    ) -> None:
        network = self._cluster.network
        self._starting.add(resource_id)
        self.started += 1

        def come_up() -> None:
            if resource_id not in self._starting:
                return
            self._starting.discard(resource_id)
            if network.random.random() < self.failing:
                on_failure("the simulated worker did not start")
            else:
                self._cluster.start_worker(resource_id, slots, profile, on_failure)

        network.schedule(
            self._start_s * network.random.random(), come_up, f"driver starts {resource_id}"
        )

    def stop_worker(self, resource_id: ResourceId) -> None:
        self._starting.discard(resource_id)
        network = self._cluster.network
        network.schedule(
            0.01, lambda: self._cluster.end_worker(resource_id), f"driver stops {resource_id}"
        )


class SimulatedWorkerProcess(WorkerProcess):
    """Counts how often its worker was idle."""

    def __init__(self, cluster: SimulatedCluster, resource_id: ResourceId) -> None:
        super().__init__()
        self._cluster = cluster
        self._resource_id = resource_id
        self.times_idle = 0

    def idle(self) -> None:
        self.times_idle += 1

    def refused(self, reason: str) -> None:
        self._cluster.refuse(self._resource_id)


class SimulatedCluster(DispatcherHost):
    """The Dispatcher, the ResourceManager, every JobMaster and every TaskExecutor have a process
    each. ``client()`` returns a gateway to the Dispatcher from one more; ``network`` injects
    faults. The leaders are known from a service that does not fail, as in Flink."""

    def __init__(
        self,
        seed: int = 0,
        faults: FaultPlan = FaultPlan(),  # noqa: B008
        *,
        rpc_config: RpcConfig = RpcConfig(),  # noqa: B008
        slot_config: SlotConfig = SlotConfig(),  # noqa: B008
        max_slots: int | None = None,
        start_s: float = 1.0,
        failing: float = 0.0,
        told_late_s: float = 0.0,
        failing_files: float = 0.0,
        machines: Machines | None = None,
        masters_come_back: bool = False,
        workers_ask: bool = False,
    ) -> None:
        """With ``machines``, TaskExecutors run real tasks on them, and stand-ins for tasks
        otherwise. With ``workers_ask`` those ask the session who leads, as on Ray."""
        self._workers_ask = workers_ask
        self.network = WatchedNetwork(seed, faults, rpc_config)
        self._machines = machines
        self.files = ClusterFiles(self.network.random, failing_files)
        self.oracle = CheckpointOracle(self.files, self._runs_tasks_of)
        self._streams = Streams(DataPlane(self.network), self.files, self.oracle)
        self._rpc_config = rpc_config
        self._slot_config = slot_config
        self._told_late_s = told_late_s
        self.client_service = self.network.service(CLIENT)
        self.driver = SimulatedDriver(self, max_slots=max_slots, start_s=start_s, failing=failing)
        self._ids = ids = IdFactory(self.network.random.getrandbits(64))
        self.managing, self.dispatching = StandaloneLeadership(ids), StandaloneLeadership(ids)
        self.workers: dict[ResourceId, SimulatedWorker] = {}
        self.job_masters: dict[JobId, JobMaster] = {}
        self.terms = 0
        self._store: JobStore | None = None
        if masters_come_back:
            self._begin_term()
            self.network.run_until(lambda: self.terms == 1, TERM_BEGINS_S)
        else:
            self.resource_manager = self._start_resource_manager()
            self._start_dispatcher(self.network.service(DISPATCHER), None)

    def services(self, service: SimulatedRpcService) -> EndpointServices:
        """What endpoints of that process are made with."""
        return EndpointServices(service, self._rpc_config, self._slot_config, self.files.store_of)

    # -- masters -----------------------------------------------------------------------------------

    def prepare(self, job_graph: JobGraph) -> JobGraph:
        return with_checkpoint_folder(None if self._store is None else HIGH_AVAILABILITY, job_graph)

    def _start_dispatcher(
        self, service: SimulatedRpcService, inheritance: Inheritance | None
    ) -> None:
        self.dispatcher = Dispatcher(
            self.services(service),
            self,
            self.managing.retrieval(),
            election=self.dispatching,
            inheritance=inheritance,
        )
        self.dispatcher.start()

    def _begin_term(self) -> None:
        """A JobManager starts: it takes over from those before it, if there were some."""
        service = self.network.service(DISPATCHER)
        take_over = TakeOver(service, HIGH_AVAILABILITY, lambda: None, self.files.store_of)

        def lead(done: Future[Inheritance]) -> None:
            inheritance = done.result(timeout=0)
            self.terms, self._store = self.terms + 1, inheritance.store
            if self._workers_ask:  # this process knows of no leaders before it
                self.managing = StandaloneLeadership(self._ids)
                self.dispatching = StandaloneLeadership(self._ids)
            if RESOURCE_MANAGER not in self.network.processes:
                previous = [
                    resource_id
                    for resource_id, worker in self.workers.items()
                    if worker.on_failure is not None
                ]
                self.resource_manager = self._start_resource_manager(previous)
            self._start_dispatcher(service, inheritance)
            if self._workers_ask:
                leaders = (
                    first_leader(self.dispatching.retrieval()),
                    first_leader(self.managing.retrieval()),
                )
                SessionEndpoint(service, {}, *leaders, RestPlace(), session_id=SESSION).start()

        take_over.inheritance.add_done_callback(lead)
        take_over.start()

    def crash_masters(self, back_after_s: float, noticed: bool | None = None) -> None:
        """Crashes the Dispatcher, the ResourceManager and all JobMasters. Others take over after a
        while."""
        for name in [
            DISPATCHER,
            RESOURCE_MANAGER,
            *(f"jobmaster-{job_id}" for job_id in self.job_masters),
        ]:
            if name in self.network.processes:
                self.network.crash(name, noticed)
        self.job_masters = {
            job_id: master for job_id, master in self.job_masters.items() if master.status.has_ended
        }
        self.network.schedule(back_after_s, self._begin_term, "other masters start")

    def _start_resource_manager(
        self, previous_workers: Sequence[ResourceId] = ()
    ) -> ResourceManager:
        manager = ResourceManager(
            self.services(self.network.service(RESOURCE_MANAGER)),
            self.driver,
            election=self.managing,
            previous_workers=previous_workers,
        )
        manager.start()
        return manager

    def crash_resource_manager(self, back_after_s: float, noticed: bool | None = None) -> None:
        """Crashes the ResourceManager. Another one leads after a while, in a new term and without
        any knowledge."""

        def come_back() -> None:
            if RESOURCE_MANAGER not in self.network.processes:
                self.resource_manager = self._start_resource_manager()

        self.network.crash(RESOURCE_MANAGER, noticed)
        self.network.schedule(back_after_s, come_back, "another ResourceManager starts")

    def make_job_master(
        self, job_graph: JobGraph, on_terminal: OnTerminal, generation: int
    ) -> SimulatedJobMaster:
        """The Dispatcher learns of the job's end a little later, as if it were busy."""

        def job_ended(result: JobResult, details: JobDetails) -> None:
            self.oracle.job_ended(job_graph, result.state)
            late_s = self._told_late_s * self.network.random.random()
            self.network.schedule(
                late_s, lambda: on_terminal(result, details), f"{result.job_id} has ended"
            )

        service = self.network.service(f"jobmaster-{job_graph.job_id}")
        master = JobMaster(
            self.services(service),
            job_graph,
            self.managing.retrieval(),
            job_ended,
            store=self._store,
            generation=generation,
        )
        self.job_masters[job_graph.job_id] = master
        self.oracle.job_begins(job_graph.job_id, master)
        return SimulatedJobMaster(service, master)

    # -- workers -----------------------------------------------------------------------------------

    def start_worker(
        self,
        resource_id: ResourceId,
        slots: int,
        profile: ResourceProfile = ANY,
        on_failure: Callable[[str], None] | None = None,
        segments: int = 2048,
    ) -> SimulatedWorker:
        service = self.network.service(resource_id)
        runner: WatchedRunner
        if self._machines is not None:
            runner = self._machines.runner_of(service, self.files.store_of)
        else:
            runner = SimulatedTaskRunner(service, segments, self._is_kept, self._streams)
        leader: LeaderRetrievalService = self.managing.retrieval()
        if self._workers_ask:
            leader = LeaderFinder(
                service, f"{DISPATCHER}/session", SESSION, lambda: True, lambda: None
            )
        executor = TaskExecutor(
            self.services(service),
            resource_id,
            runner,
            [profile] * slots,
            leader,
            process=SimulatedWorkerProcess(self, resource_id),
        )
        worker = self.workers[resource_id] = SimulatedWorker(
            service, executor, runner, slots, on_failure
        )
        executor.start()
        return worker

    def _is_kept(self, resource_id: ResourceId, attempt_id: ExecutionAttemptId) -> bool:
        worker = self.workers.get(resource_id)
        return worker is not None and worker.runner.keeps(attempt_id)

    def _runs_tasks_of(self, job_id: JobId) -> bool:
        return any(
            each.job_id == job_id
            for worker in self.workers.values()
            for each in worker.runner.tasks_in_slots()
        )

    def refuse(self, resource_id: ResourceId) -> None:
        """The worker's process ends, as it is not wanted."""
        self.network.schedule(
            0.0, lambda: self.end_worker(resource_id), f"{resource_id} is not wanted"
        )

    def end_worker(self, resource_id: ResourceId) -> None:
        """Stops the worker's process normally."""
        worker = self.workers.pop(resource_id, None)
        if worker is not None:
            worker.service.stop().add_done_callback(lambda stopped: worker.runner.process_gone())

    def crash_worker(self, resource_id: ResourceId) -> SimulatedWorker:
        """Crashes the worker's process, in the middle of whatever it does."""
        worker = self.workers.pop(resource_id)
        self.network.crash(resource_id)
        worker.runner.process_gone()
        return worker

    def cut_off(self, name: str, others: Sequence[str], partition: Partition) -> None:
        """For a while, what this process and the others tell each other is lost, in the directions
        that ``partition`` says."""
        if partition.to_master:
            self.network.partition(name, others, both_ways=False)
        if partition.from_master:
            self.network.partition(others, name, both_ways=False)
        self.network.schedule(
            partition.lasts_s, lambda: self.network.heal(name, others), f"{name} is back"
        )

    # -- clients -----------------------------------------------------------------------------------

    def client(self) -> Future[DispatcherGateway]:
        return connect_to_leader(
            self.client_service, self.dispatching.retrieval(), DispatcherGateway
        )

    def result(self, future: Future[T], max_time_s: float = 3600.0) -> T:
        """Runs until the future is done."""
        return self.network.result(future, max_time_s)
