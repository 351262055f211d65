"""The embedded session: Dispatcher, ResourceManager, JobMasters and TaskExecutors in this process,
each endpoint on a thread of its own.

It starts with the first job, serves all that follow, and ends with the process. One TaskExecutor
holds a whole job: its slots share one loop, and batches pass between its tasks by reference. With
``taskmanager.numberOfTaskSlots`` set there are as many TaskExecutors as the job then needs, each
with a loop of its own, and batches travel over sockets, as between processes.

Python cannot end a function that does not return. If such a function's job was cancelled, later
jobs get another session. A function that runs a job of its own blocks the loop that calls it, so
that job gets another session too. A forked child has none of its parent's threads, and starts
without a session."""

from __future__ import annotations

import atexit
import os
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from flinkpy.actors.endpoint_services import EndpointServices
from flinkpy.actors.gateways import DispatcherGateway
from flinkpy.actors.inspector.process_inspector import ProcessInspector
from flinkpy.actors.rpc.leadership import StandaloneLeadership, connect_to_leader
from flinkpy.actors.rpc.local_service import LocalRpcService
from flinkpy.actors.rpc.process_end import ended_by
from flinkpy.actors.task_executor.task_executor import TaskExecutor
from flinkpy.actors.task_executor.worker_process import WorkerProcess
from flinkpy.actors.task_executor_info import ProcessDescription, managed_memory, memory_here
from flinkpy.cluster.client import ClientConfig, ClientSession, ClusterClient
from flinkpy.cluster.display.display_choice import make_progress
from flinkpy.cluster.display.watcher import Watcher
from flinkpy.cluster.files.job_files import snapshot, with_cached_files
from flinkpy.cluster.job_manager import JobManager
from flinkpy.cluster.session import SessionConfig, session_options
from flinkpy.cluster.session_folders import check_session_folders
from flinkpy.common.process_logs import set_up_embedded_logs
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import ConfigurationError, ProcessEndedError, ResourceUnavailableError
from flinkpy.core.ids import ResourceId
from flinkpy.core.options.engine import TASK_SLOTS, NetworkConfig
from flinkpy.core.options.high_availability import HA_TYPE, is_highly_available
from flinkpy.core.options.metrics import PROMETHEUS_PORT
from flinkpy.core.options.rest import REST_BIND_PORT, REST_PORT
from flinkpy.core.options.schema import SCHEMA, read
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.job_graph import JobGraph
from flinkpy.graph.resources import ANY, ResourceProfile
from flinkpy.runtime.memory.slots_memory import WorkerSlots
from flinkpy.runtime.task_runner import SlotTaskRunner
from flinkpy.state.rocksdb.shared_memory import manage_memory

LOG = engine_logger(__name__)

# of the one TaskExecutor: an unused slot costs nothing, and the next job may need more
MIN_SLOTS = 64
STOP_TIMEOUT_S = 5.0
STUCK_AFTER_S = 5.0
WHO_HOLDS_SLOTS = "other jobs of this program hold them"

_WITHIN = "within a function of a job"  # in a session's key, once for each level
_STUCK = "stuck"
_LOCK = threading.Lock()
_has_told = False
# the options that a session began with, and what tells it from others that began with the same
_Key = frozenset[tuple[str, str]]
_sessions: dict[_Key, EmbeddedCluster] = {}


class _EmbeddedWorker(WorkerProcess):
    """A worker of the program's own process, which cannot end: the worker is left behind."""

    def __init__(
        self, description: ProcessDescription, leave_behind: Callable[[str], None]
    ) -> None:
        super().__init__(description)
        self._leave_behind = leave_behind

    def stuck(self, reason: str) -> None:
        self._leave_behind(reason)


class LocalWorkerDriver:
    """Starts TaskExecutors in this process, any number of them."""

    def __init__(
        self,
        service: LocalRpcService,
        leadership: StandaloneLeadership,
        config: SessionConfig,
        network: NetworkConfig,
    ) -> None:
        self._service, self._leadership = service, leadership  # of the ResourceManager
        self._config, self._network = config, network
        self._secret = secrets.token_bytes(32)
        self._workers: dict[ResourceId, LocalRpcService] = {}
        self._runners: dict[ResourceId, SlotTaskRunner] = {}

    def max_slots(self, profile: ResourceProfile) -> int | None:
        return None

    def explain_limit(self, profile: ResourceProfile, wanted: int) -> str:
        return f"{wanted} slots are more than slotmanager.number-of-slots.max allows"

    def start_worker(
        self,
        resource_id: ResourceId,
        slots: int,
        profile: ResourceProfile,
        on_failure: Callable[[str], None],
    ) -> None:
        options = self._config.options
        manage_memory()
        runner = SlotTaskRunner(
            self._network,
            self._secret,
            resource_id,
            SYSTEM_CLOCK,
            slots=WorkerSlots(
                slots,
                managed_memory(options, slots),
                self._config.memory.of_kinds,
                memory_by_job=read(options, TASK_SLOTS) is None,
            ),
        )
        try:
            runner.start()
        except ResourceUnavailableError as error:
            on_failure(str(error))
            return
        service = self._service.sibling(resource_id)
        inspector = ProcessInspector(service, runner)
        inspector.start()
        executor = TaskExecutor(
            EndpointServices(service, self._config.rpc, self._config.slots),
            resource_id,
            runner,
            [profile] * slots,
            self._leadership.retrieval(),
            process=_EmbeddedWorker(
                ProcessDescription.of_this_process(inspector.address, memory_here(options, slots)),
                partial(self._leave_behind, resource_id, on_failure),
            ),
        )
        self._workers[resource_id], self._runners[resource_id] = service, runner
        executor.start()

    def stop_worker(self, resource_id: ResourceId) -> None:
        service = self._workers.pop(resource_id, None)
        self._runners.pop(resource_id, None)
        if service is not None:
            service.stop()

    def stop_workers(self) -> None:
        for resource_id in list(self._workers):
            self.stop_worker(resource_id)

    def _leave_behind(
        self, resource_id: ResourceId, on_failure: Callable[[str], None], reason: str
    ) -> None:
        """Removes the TaskExecutor. A thread cannot be ended, so the function keeps running; the
        job ends without it, and the next job gets another TaskExecutor."""
        if resource_id in self._workers:
            LOG.error("%s: its job ends without it (task.cancellation.timeout)", reason)
            self.stop_worker(resource_id)
            on_failure(reason)

    def is_stuck(self) -> bool:
        """Whether a function of a cancelled job does not return."""
        return any(runner.stuck_for_s() > STUCK_AFTER_S for runner in list(self._runners.values()))

    def is_calling(self) -> bool:
        """Whether the caller is a function of a job that runs here."""
        return any(runner.is_calling() for runner in list(self._runners.values()))


def _check_certificates(network: NetworkConfig) -> None:
    """Before a worker fails by them, which would be started again while the job waits. Raises
    ConfigurationError."""
    from flinkpy.network.wire.tls_transport import check_certificates

    check_certificates(network.tls)


class EmbeddedCluster:
    """A session in this process. ``configuration`` is that of the first job, which needs at least
    ``slots`` slots. With ``free_ports`` it listens at others than those that it names."""

    def __init__(
        self, configuration: Mapping[str, Any], slots: int = 1, free_ports: bool = False
    ) -> None:
        config = SessionConfig.of(configuration, default_slots=max(slots, MIN_SLOTS))
        if free_ports:
            config = config.with_free_ports()
        check_session_folders(config)
        network = NetworkConfig.of(configuration)
        if network.tls is not None:
            _check_certificates(network)
        set_up_embedded_logs(config.logs)
        # an error of the engine: no job goes on here, and none begins
        self.failed: ProcessEndedError | None = None
        self.service = LocalRpcService(config=config.rpc, on_fatal=self._fail)
        leadership = StandaloneLeadership(self.service.ids)
        self.driver = LocalWorkerDriver(self.service, leadership, config, network)
        self.job_manager = JobManager(
            self.service, self.driver, config, resource_manager_leadership=leadership
        )
        self.job_manager.start()
        self._dispatcher = connect_to_leader(
            self.service, self.job_manager.dispatching.retrieval(), DispatcherGateway
        ).result(STOP_TIMEOUT_S)
        if self.job_manager.rest.told and sys.stderr is not None:
            print(f"in the browser: {self.job_manager.rest.told}", file=sys.stderr, flush=True)
        self._ask_timeout_s = config.rpc.ask_timeout.total_seconds()

    def client(self, configuration: Mapping[str, Any]) -> ClusterClient:
        """Returns a client of this session, with the progress display that the configuration
        chooses."""
        config = ClientConfig(
            self._ask_timeout_s, "the embedded session has ended", ends_with_program=True
        )
        return ClusterClient(self._dispatcher, config, session=_EmbeddedSession(configuration))

    def _fail(self, address: str, error: BaseException) -> None:
        """An error of the engine has escaped from an endpoint: its state cannot be trusted any
        more, so jobs fail with the error."""
        if self.failed is None:
            self.failed = ended_by(address, error)
            self.service.refuse_all(self.failed)
            threading.Thread(target=self.stop, name="end of a failed session", daemon=True).start()

    def stop(self) -> None:
        """Ends jobs, workers and threads; returns when they have ended, or after a few seconds."""
        self.job_manager.stop_rest()
        self.job_manager.stop_webhook()
        self.service.stop().result(STOP_TIMEOUT_S)
        self.driver.stop_workers()  # those that a ResourceManager has left which ended by an error

    def __repr__(self) -> str:
        return f"<EmbeddedCluster {self.service!r}>"


class _EmbeddedSession(ClientSession):
    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self._configuration = configuration

    def prepare(self, job_graph: JobGraph) -> JobGraph:
        return prepared(job_graph)

    def watcher(self) -> Watcher | None:
        return make_progress(self._configuration, WHO_HOLDS_SLOTS)


def prepared(job_graph: JobGraph) -> JobGraph:
    """The job as this process runs it."""
    return with_cached_files(without_resources(job_graph), snapshot)


def without_resources(job_graph: JobGraph) -> JobGraph:
    """Removes the demands of slot sharing groups: they apply to clusters, one process cannot choose
    its resources."""
    return replace(
        job_graph, vertices=[replace(vertex, resources=ANY) for vertex in job_graph.vertices]
    )


def embedded_client(configuration: Mapping[str, Any], slots: int) -> ClusterClient:
    """Returns a client of this process's session, which starts now if it has not yet.

    A session keeps the options it started with, so a job with other options for workers and calls
    gets a session of its own."""
    _tell_what_has_no_effect(configuration)
    key = _key(configuration)
    with _LOCK:
        for failed in [session for session, each in _sessions.items() if each.failed is not None]:
            del _sessions[failed]
        callers = [session for session, each in _sessions.items() if each.driver.is_calling()]
        if callers:
            depth = sum(name == _WITHIN for name, _ in callers[0]) + 1
            key |= {(_WITHIN, str(level)) for level in range(depth)}
        if key in _sessions and _sessions[key].driver.is_stuck():
            LOG.warning(
                "a function of a job that was cancelled does not return; this job runs beside it"
            )
            _sessions[key | {(_STUCK, str(len(_sessions)))}] = _sessions.pop(key)
        if not _sessions:
            atexit.register(stop_embedded)
        if key not in _sessions:
            _sessions[key] = _new_session(key, configuration, slots)
        return _sessions[key].client(configuration)


def _key(configuration: Mapping[str, Any]) -> _Key:
    return frozenset(
        (name, str(SCHEMA.get(name).parse(value)))
        for name, value in session_options(configuration).items()
    )


def _new_session(key: _Key, configuration: Mapping[str, Any], slots: int) -> EmbeddedCluster:
    """Where a session of the same options is there already, it has their ports, and this one takes
    free ones."""
    is_beside = any(_key(configuration) <= other for other in _sessions)
    try:
        return EmbeddedCluster(configuration, slots, free_ports=is_beside)
    except ConfigurationError as error:
        for other in _sessions:
            shared = {name for name, _ in key & other} & {
                REST_PORT.key,
                REST_BIND_PORT.key,
                PROMETHEUS_PORT.key,
            }
            if any(name in str(error) for name in shared):
                names = ", ".join(sorted({name for name, _ in key ^ other}))
                raise ConfigurationError(
                    f"{error}: another cluster of this program has it. A cluster keeps the "
                    "options that it began with; the jobs "
                    f"before had others ({names}). Give them the "
                    "same, or another port"
                ) from None
        raise


def _tell_what_has_no_effect(configuration: Mapping[str, Any]) -> None:
    """Once in a program."""
    global _has_told
    if not _has_told and is_highly_available(configuration) and sys.stderr is not None:
        _has_told = True
        print(
            (
                f"{HA_TYPE.key} has no effect here: the JobManager is a part of this program, and "
                "ends with it; on Ray (-t ray) it comes back"
            ),
            file=sys.stderr,
            flush=True,
        )


def stop_embedded() -> None:
    """Ends this process's sessions, if there are any; the next job starts another."""
    with _LOCK:
        sessions = list(_sessions.values())
        _sessions.clear()
    atexit.unregister(stop_embedded)
    for session in sessions:
        session.stop()


def _forget_sessions() -> None:
    """In a forked child: the threads and the lock are its parent's."""
    global _LOCK
    _LOCK = threading.Lock()
    _sessions.clear()
    atexit.unregister(stop_embedded)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_sessions)
