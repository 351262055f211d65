"""The simulated cluster: real endpoints, simulated processes and workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from flinkpy.actors.dispatcher import Dispatcher, OnTerminal
from flinkpy.actors.gateways import DispatcherGateway, JobDetails, JobResult
from flinkpy.actors.job_master.job_master import JobMaster
from flinkpy.actors.resource_manager.resource_manager import ResourceManager
from flinkpy.actors.rpc.delivery.envelope import Message, RpcAnswer
from flinkpy.actors.rpc.leadership import StandaloneLeadership, connect_to_leader
from flinkpy.actors.rpc.simulated.event_queue import Place
from flinkpy.actors.rpc.simulated.network_port import SimulatedProcess
from flinkpy.actors.rpc.simulated.simulated_service import SimulatedHost, SimulatedRpcService
from flinkpy.actors.rpc.simulated.unreliable_network import FaultPlan, SimulatedNetwork
from flinkpy.actors.task_executor.task_executor import TaskExecutor
from flinkpy.core.errors import EngineError, RemoteError
from flinkpy.core.futures import Future
from flinkpy.core.ids import ExecutionAttemptId, FencingToken, IdFactory, JobId, ResourceId
from flinkpy.core.options.engine import RpcConfig, SlotConfig
from flinkpy.graph.job_graph import JobGraph
from flinkpy.graph.resources import ANY, ResourceProfile
from flinkpy.testing.simulation.checkpoint_oracle import CheckpointOracle
from flinkpy.testing.simulation.cluster_files import ClusterFiles
from flinkpy.testing.simulation.data_plane import DataPlane
from flinkpy.testing.simulation.simulated_task_runner import SimulatedTaskRunner
from flinkpy.testing.simulation.stream_surroundings import Streams

T = TypeVar("T")

DISPATCHER, RESOURCE_MANAGER, CLIENT = "dispatcher", "resourcemanager", "client"


class WatchedNetwork(SimulatedNetwork):
    """Remembers where the current event ran, so that only those places are checked after it."""

    def __init__(self, seed: int, faults: FaultPlan, config: RpcConfig) -> None:
        super().__init__(seed, faults, config=config)
        self.touched: dict[Place, None] = {}
        self.bugs: list[BaseException] = []
        # For tests: True loses the message
        self.swallow: Callable[[str, str, Message], bool] = lambda source, target, message: False

    def run_at(self, place: Place | None, action: Callable[[], object]) -> None:
        if place is not None:
            self.touched[place] = None
        super().run_at(place, action)

    def send(self, source: SimulatedProcess, process: str, message: Message) -> None:
        """Sends the message. Keeps an answer that reports a bug, since its receiver may not wait for it any more."""
        if isinstance(message, RpcAnswer) and isinstance(message.error, (EngineError, RemoteError)):
            self.bugs.append(message.error)
        if not self.swallow(source.process, process, message):
            super().send(source, process, message)

    def touched_hosts(self) -> list[SimulatedHost]:
        """Returns the endpoints in which the last event ran, if they still exist, and forgets them."""
        hosts = [place for place in self.touched if isinstance(place, SimulatedHost) and place.alive]
        self.touched.clear()
        return hosts


@dataclass
class SimulatedWorker:
    """One process with one TaskExecutor."""

    service: SimulatedRpcService
    executor: TaskExecutor
    runner: SimulatedTaskRunner
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
    """A WorkerDriver. Workers take a while to start, may fail to start, and their death may be noticed or not."""

    def __init__(self, cluster: SimulatedCluster, *, max_slots: int | None = None, start_s: float = 1.0, failing: float = 0.0) -> None:
        self._cluster, self._max_slots, self._start_s, self.failing = cluster, max_slots, start_s, failing
        self._starting: set[ResourceId] = set()
        self.started = 0

    def max_slots(self, profile: ResourceProfile) -> int | None:
        return self._max_slots

    def explain_limit(self, profile: ResourceProfile, wanted: int) -> str:
        return f"the job needs {wanted} slots, the simulated cluster has {self._max_slots}: lower the parallelism"

    def start_worker(self, resource_id: ResourceId, slots: int, profile: ResourceProfile, on_failure: Callable[[str], None]) -> None:
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

        network.schedule(self._start_s * network.random.random(), come_up, f"driver starts {resource_id}")

    def stop_worker(self, resource_id: ResourceId) -> None:
        self._starting.discard(resource_id)
        network = self._cluster.network
        network.schedule(0.01, lambda: self._cluster.end_worker(resource_id), f"driver stops {resource_id}")


class SimulatedCluster:
    """The Dispatcher, the ResourceManager, every JobMaster and every TaskExecutor have a process each. ``client()``
    returns a gateway to the Dispatcher from one more; ``network`` injects faults. The leaders are known from a
    service that does not fail, as in Flink."""

    def __init__(
        self, seed: int = 0, faults: FaultPlan = FaultPlan(), *, rpc_config: RpcConfig = RpcConfig(), slot_config: SlotConfig = SlotConfig(),  # noqa: B008
        max_slots: int | None = None, start_s: float = 1.0, failing: float = 0.0, told_late_s: float = 0.0,
        failing_files: float = 0.0,
    ) -> None:
        self.network = WatchedNetwork(seed, faults, rpc_config)
        self.files = ClusterFiles(self.network.random, failing_files)
        self.oracle = CheckpointOracle(self.files, self._runs_tasks_of)
        self._streams = Streams(DataPlane(self.network), self.files, self.oracle)
        self._rpc_config, self._slot_config, self._told_late_s = rpc_config, slot_config, told_late_s
        self.client_service = self.network.service(CLIENT)
        self.driver = SimulatedDriver(self, max_slots=max_slots, start_s=start_s, failing=failing)
        ids = IdFactory(self.network.random.getrandbits(64))
        self.managing, self.dispatching = StandaloneLeadership(ids), StandaloneLeadership(ids)
        self.workers: dict[ResourceId, SimulatedWorker] = {}
        self.job_masters: dict[JobId, JobMaster] = {}
        self.resource_manager = self._start_resource_manager()
        self.dispatcher = Dispatcher(
            self.network.service(DISPATCHER), self._make_job_master, self.managing.retrieval(), election=self.dispatching)
        self.dispatcher.start()

    # -- masters -----------------------------------------------------------------------------------------------------------

    def _start_resource_manager(self) -> ResourceManager:
        manager = ResourceManager(
            self.network.service(RESOURCE_MANAGER), self.driver, slot_config=self._slot_config, rpc_config=self._rpc_config,
            election=self.managing)
        manager.start()
        return manager

    def crash_resource_manager(self, back_after_s: float, noticed: bool | None = None) -> None:
        """Crashes the ResourceManager. Another one leads after a while, in a new term and without any knowledge."""
        def come_back() -> None:
            self.resource_manager = self._start_resource_manager()

        self.network.crash(RESOURCE_MANAGER, noticed)
        self.network.schedule(back_after_s, come_back, "another ResourceManager starts")

    def _make_job_master(self, job_graph: JobGraph, on_terminal: OnTerminal) -> SimulatedJobMaster:
        """The Dispatcher learns of the job's end a little later, as if it were busy."""
        def job_ended(result: JobResult, details: JobDetails) -> None:
            self.oracle.job_ended(job_graph, result.state)
            late_s = self._told_late_s * self.network.random.random()
            self.network.schedule(late_s, lambda: on_terminal(result, details), f"{result.job_id} has ended")

        service = self.network.service(f"jobmaster-{job_graph.job_id}")
        master = JobMaster(
            service, job_graph, self.managing.retrieval(), job_ended, slot_config=self._slot_config,
            rpc_config=self._rpc_config, file_stores=self.files.store_of)
        self.job_masters[job_graph.job_id] = master
        self.oracle.job_begins(job_graph.job_id, master)
        return SimulatedJobMaster(service, master)

    # -- workers -----------------------------------------------------------------------------------------------------------

    def start_worker(
        self, resource_id: ResourceId, slots: int, profile: ResourceProfile = ANY, on_failure: Callable[[str], None] | None = None,
        segments: int = 2048,
    ) -> SimulatedWorker:
        service = self.network.service(resource_id)
        runner = SimulatedTaskRunner(service, segments, self._is_kept, self._streams)
        executor = TaskExecutor(
            service, resource_id, runner, [profile] * slots, self.managing.retrieval(),
            slot_config=self._slot_config, rpc_config=self._rpc_config, on_refused=lambda reason: self._refused(resource_id))
        worker = self.workers[resource_id] = SimulatedWorker(service, executor, runner, slots, on_failure)
        executor.start()
        return worker

    def _is_kept(self, resource_id: ResourceId, attempt_id: ExecutionAttemptId) -> bool:
        worker = self.workers.get(resource_id)
        return worker is not None and worker.runner.keeps(attempt_id)

    def _runs_tasks_of(self, job_id: JobId) -> bool:
        return any(each.job_id == job_id for worker in self.workers.values() for each in worker.runner.tasks_in_slots())

    def _refused(self, resource_id: ResourceId) -> None:
        self.network.schedule(0.0, lambda: self.end_worker(resource_id), f"{resource_id} is not wanted")

    def end_worker(self, resource_id: ResourceId) -> None:
        """Stops the worker's process normally."""
        worker = self.workers.pop(resource_id, None)
        if worker is not None:
            worker.service.stop()

    def crash_worker(self, resource_id: ResourceId) -> SimulatedWorker:
        """Crashes the worker's process, in the middle of whatever it does."""
        worker = self.workers.pop(resource_id)
        self.network.crash(resource_id)
        return worker

    # -- clients -----------------------------------------------------------------------------------------------------------

    def client(self) -> Future[DispatcherGateway]:
        return connect_to_leader(self.client_service, self.dispatching.retrieval(), DispatcherGateway)

    def result(self, future: Future[T], max_time_s: float = 3600.0) -> T:
        """Runs until the future is done."""
        return self.network.result(future, max_time_s)
