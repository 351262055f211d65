"""What runs inside the actors of a cluster on Ray: the JobManager with its driver, which starts
TaskExecutors on demand, and the TaskExecutors.

    Ray cluster, namespace "flinkpy"
      actor jobmanager-<cluster.id>   Dispatcher, ResourceManager, JobMasters
      actors taskexecutor-<id>        one per worker, with its slots' resources

``slot_limits`` computes how many slots a cluster can have.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayError

from flinkpy.actors.resource_manager.slot_actions import StartWorker
from flinkpy.actors.rpc.leadership import (
    FixedLeader,
    LeaderInformation,
    LeaderRetrievalService,
    StandaloneLeadership,
    first_leader,
)
from flinkpy.actors.rpc.ray_service import (
    NAMESPACE,
    RayHost,
    RayRpcService,
    TaskExecutorProcess,
    find_host,
    living_hosts,
    start_host,
)
from flinkpy.actors.task_executor.worker_process import WorkerProcess
from flinkpy.cluster.leader_finder import LeaderFinder
from flinkpy.cluster.ray.runtime_environment import PIN_S, keep_packages, options_of, packages_of
from flinkpy.cluster.ray.slot_limits import (
    RayResources,
    actor_options,
    explain,
    max_slots,
    resources_of,
)
from flinkpy.cluster.session import SessionConfig, SessionEndpoint
from flinkpy.cluster.session_folders import check_session_folders
from flinkpy.common.process_logs import set_up_logs
from flinkpy.connectors.ray.block_keeper import TAKE_BLOCK
from flinkpy.connectors.ray.object_store import take_block
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.futures import Future
from flinkpy.core.ids import IdFactory, ResourceId
from flinkpy.core.options.engine import BIND_HOST, NetworkConfig
from flinkpy.core.options.high_availability import HighAvailability
from flinkpy.core.options.memory_sizes import REST_TIMEOUT
from flinkpy.core.options.schema import read
from flinkpy.core.program.garbage import collect_rarely
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.resources import ResourceProfile

if TYPE_CHECKING:
    from flinkpy.actors.job_store import Inheritance
    from flinkpy.actors.task_executor.task_executor import TaskExecutor
    from flinkpy.actors.task_executor_info import ProcessDescription
    from flinkpy.cluster.job_manager import JobManager

LOG = engine_logger(__name__)

RESOURCES_AGE_S = 1.0  # how long Ray's answer about its nodes is cached
KEEP_INTERVAL_S = PIN_S / 5
# clients ask again within that time, and are told why the JobManager ends, if no other follows
LAST_ANSWERS_S = 2.0

SWITCH_INTERVAL_S = 100e-6
"""How long another thread of a worker (for calls, for heartbeats) waits for the interpreter lock
before the slots' loop must release it. This is shorter than the time between two looks of the loop
at its sockets, since at each look the other threads begin to wait anew (see
``flinkpy.runtime.loop.slot_loop``)."""


class RayWorkerDriver:
    """Starts TaskExecutors as child actors of the JobManager: Ray ends them when it dies. Those of
    a highly available JobManager outlive it, and end when it is gone for good; it gives no
    ``resource_manager``, and its workers ask its process who leads. ``secret`` is that of the
    session's data connections, ``session_id`` tells it from others of its name."""

    def __init__(
        self,
        service: RayRpcService,
        resource_manager: LeaderRetrievalService | None,
        config: SessionConfig,
        network: NetworkConfig,
        bind_host: str | None,
        secret: bytes,
        session_id: str,
    ) -> None:
        self._service = service
        self._resource_manager = resource_manager
        self._config = config
        self._network = network
        self._bind_host = bind_host
        self._secret = secret
        self._session_id = session_id
        self._workers: dict[ResourceId, RayHost] = {}
        self._environments: dict[ResourceId, str] = {}  # of workers that need packages
        self._keeping = False
        self._resources: tuple[float, RayResources] | None = None

    def max_slots(self, profile: ResourceProfile) -> int | None:
        slots = self._config.slots.slots_per_executor
        return max_slots(self._cluster(), self._sized(profile, slots), slots)

    def explain_limit(self, profile: ResourceProfile, wanted: int) -> str:
        slots = self._config.slots.slots_per_executor
        return explain(self._cluster(), self._sized(profile, slots), wanted, slots)

    def _sized(self, profile: ResourceProfile, slots: int) -> ResourceProfile:
        """What each of a worker's slots asks of Ray: together, the size of the process where an
        option says it."""
        memory = self._config.memory.worker
        return profile if memory is None else replace(profile, memory=memory.process // slots)

    def start_worker(
        self,
        resource_id: ResourceId,
        slots: int,
        profile: ResourceProfile,
        on_failure: Callable[[str], None],
    ) -> None:
        """A worker may also die between its start and its registration, when nobody else watches
        it."""
        try:
            host = self._workers.get(resource_id) or self._start_host(resource_id, slots, profile)
        except RayError as error:  # its head is out of reach, say
            on_failure(first_line(error))
            return

        def is_ready(done: Future[None]) -> None:
            if done.error is not None:
                on_failure(first_line(done.error))
            else:
                host.watch(self._service, on_failure)

        host.ready().add_done_callback(is_ready)

    def start_ahead(self, profile: ResourceProfile) -> StartWorker | None:
        """Starts the first worker, with slots of that profile, before there is a ResourceManager.
        Returns None when the cluster has no room for it."""
        most = self.max_slots(profile)
        slots = (
            self._config.slots.slots_per_executor
            if most is None
            else min(self._config.slots.slots_per_executor, most)
        )
        if slots <= 0:
            return None
        worker = StartWorker(self._service.ids.resource_id("taskexecutor"), slots, profile)
        self._start_host(worker.resource_id, slots, profile)
        return worker

    def _start_host(self, resource_id: ResourceId, slots: int, profile: ResourceProfile) -> RayHost:
        leader = self._resource_manager or self._service.process
        setup = partial(
            _set_up_task_executor,
            resource_id,
            [profile] * slots,
            leader,
            self._config,
            self._network,
            self._bind_host,
            self._secret,
            self._session_id,
        )
        asked = actor_options(self._sized(profile, slots), slots)
        options = {**asked, **options_of(profile.environment)}
        if self._resource_manager is None:
            options["lifetime"] = "detached"
        host = start_host(
            resource_id,
            setup,
            namespace=NAMESPACE,
            config=self._config.rpc,
            options=options,
            kind=TaskExecutorProcess,
        )
        self._workers[resource_id] = host
        if packages_of(profile.environment):
            self._environments[resource_id] = profile.environment
            if not self._keeping:
                self._keeping = True
                self._service.schedule(KEEP_INTERVAL_S, self._keep)
        return host

    def stop_worker(self, resource_id: ResourceId) -> None:
        self._environments.pop(resource_id, None)
        try:
            # one that an earlier JobManager has started
            host = self._workers.pop(resource_id, None) or find_host(resource_id)
            if host is not None:
                # it runs nothing; an orderly end takes Ray seconds, while others may wait for the
                # CPUs
                host.kill()
        except RayError as error:
            LOG.warning("%s may not have ended: %s", resource_id, first_line(error))

    def _keep(self) -> None:
        """Runs periodically in a timer's thread: keeps the packages that the next worker needs."""
        try:
            keep_packages(set(self._environments.copy().values()))
        # Ray is in trouble, or this is another version of Ray; running workers do not need the
        # packages
        except Exception as error:
            LOG.warning("packages of runtime environments may be dropped by Ray: %s", error)
        self._service.schedule(KEEP_INTERVAL_S, self._keep)

    def _cluster(self) -> RayResources:
        now = SYSTEM_CLOCK.monotonic()
        if self._resources is None or now - self._resources[0] > RESOURCES_AGE_S:
            try:
                self._resources = (now, resources_of(ray.nodes(), _is_elastic()))
            except RayError as error:
                if self._resources is None:
                    raise
                LOG.warning(
                    "Ray does not tell its nodes, the last ones known count: %s", first_line(error)
                )
        return self._resources[1]


def _is_elastic() -> bool:
    """Whether an autoscaler may add nodes. Ray has no public call for it; without the private one,
    no slots are refused."""
    try:
        from ray._private.state import state

        config = state.get_cluster_config()
    except (ImportError, AttributeError):
        return True
    groups = config.node_group_configs if config else ()
    return any(group.max_count == -1 or group.max_count > group.min_count for group in groups)


@dataclass(frozen=True)
class JobManagerSetup:
    """What a JobManager's actor is started with, and started anew with."""

    cluster_id: str
    configuration: dict[str, Any]
    is_application: bool
    first_slot: ResourceProfile | None  # of the job that the cluster is started for
    high_availability: HighAvailability | None
    secret: bytes
    session_id: str

    def __call__(self, service: RayRpcService) -> object:
        """Runs in the actor. The JobManager's modules are imported only here, so that every process
        starts fast. If the profile of the first slot is known, the first worker starts
        meanwhile."""
        config = SessionConfig.of(self.configuration)
        set_up_logs(config.logs, logging.INFO)
        if not ray.get_runtime_context().was_current_actor_reconstructed:
            check_session_folders(config, self.high_availability)
        return (
            self._begin(service)
            if self.high_availability is None
            else self._take_over(service, self.high_availability)
        )

    def _begin(self, service: RayRpcService) -> JobManager:
        config = SessionConfig.of(self.configuration)
        # Of the ResourceManager; the first worker gets it before there is a ResourceManager
        term = service.ids.fencing_token()
        driver = self._driver(
            service, config, FixedLeader(service.address_of("resourcemanager"), term)
        )
        first_worker = driver.start_ahead(self.first_slot) if self.first_slot is not None else None

        from flinkpy.cluster.job_manager import JobManager

        manager = JobManager(
            service,
            driver,
            config,
            on_shut_down=service.exit_process,
            first_worker=first_worker,
            resource_manager_leadership=StandaloneLeadership(service.ids, term),
        )
        service.end.wind_up = lambda reason: (
            Future.completed(None) if reason.is_bug else manager.dispatcher.end_because(reason)
        )
        service.end.linger_s = LAST_ANSWERS_S
        manager.start()
        service.page = manager.rest.page
        SessionEndpoint(
            service,
            self.configuration,
            first_leader(manager.dispatching.retrieval()),
            first_leader(manager.managing.retrieval()),
            manager.rest,
            self.is_application,
            self.session_id,
        ).start()
        return manager

    def _take_over(self, service: RayRpcService, high_availability: HighAvailability) -> object:
        """The first JobManager of the cluster takes over from nobody."""
        config = SessionConfig.of(self.configuration)
        dispatcher = Future[LeaderInformation]()
        resource_manager = Future[LeaderInformation]()
        session = f"{self.cluster_id}-{self.session_id}"
        service.ids = _NamedWorkers(session)
        driver = self._driver(service, config, None)
        is_first = not ray.get_runtime_context().was_current_actor_reconstructed
        first_worker = (
            driver.start_ahead(self.first_slot)
            if self.first_slot is not None and is_first
            else None
        )
        previous = () if is_first else _workers_of(session)

        from flinkpy.cluster.job_manager import JobManager, place_of, rest_server
        from flinkpy.cluster.leader_takeover import Succession, TakeOver

        # now, as Ray asks for its address when the set-up is done
        rest = rest_server(config, service.clock)
        service.page = place_of(rest).page

        def lead(done: Future[Inheritance]) -> None:
            manager = JobManager(
                service,
                driver,
                config,
                on_shut_down=service.exit_process,
                first_worker=first_worker,
                succession=Succession(high_availability, done.result(timeout=0), previous, rest),
            )
            first_leader(manager.dispatching.retrieval()).forward_to(dispatcher)
            first_leader(manager.managing.retrieval()).forward_to(resource_manager)
            manager.start()

        take_over = TakeOver(service, high_availability, on_deposed=service.exit_process)
        take_over.inheritance.add_done_callback(lead)
        SessionEndpoint(
            service,
            self.configuration,
            dispatcher,
            resource_manager,
            place_of(rest),
            self.is_application,
            self.session_id,
        ).start()
        take_over.start()
        return take_over

    def _driver(
        self,
        service: RayRpcService,
        config: SessionConfig,
        resource_manager: LeaderRetrievalService | None,
    ) -> RayWorkerDriver:
        network = NetworkConfig.of(self.configuration)
        bind_host = read(self.configuration, BIND_HOST)
        return RayWorkerDriver(
            service, resource_manager, config, network, bind_host, self.secret, self.session_id
        )


class _NamedWorkers(IdFactory):
    """Names workers after their session, so that its next JobManager finds them."""

    def __init__(self, session: str) -> None:
        super().__init__()
        self._session = session

    def resource_id(self, prefix: str) -> ResourceId:
        return ResourceId(f"{prefix}-{self._session}-{self.hex(8)}")


def _workers_of(session: str) -> tuple[ResourceId, ...]:
    """The workers that live, which earlier JobManagers of the session have started."""
    name = re.compile(rf"taskexecutor-{re.escape(session)}-[0-9a-f]{{8}}")
    return tuple(ResourceId(host) for host in living_hosts() if name.fullmatch(host))


def _set_up_task_executor(
    resource_id: ResourceId,
    slots: list[ResourceProfile],
    leader: LeaderRetrievalService | str,
    config: SessionConfig,
    network: NetworkConfig,
    bind_host: str | None,
    secret: bytes,
    session_id: str,
    service: RayRpcService,
) -> TaskExecutor:
    """Runs in a worker's actor. ``leader`` is the ResourceManager, or the name of a process which
    has it and may come back. A worker that the ResourceManager refuses ends itself."""
    from flinkpy.actors.endpoint_services import EndpointServices
    from flinkpy.actors.inspector.process_inspector import ProcessInspector
    from flinkpy.actors.task_executor.task_executor import TaskExecutor
    from flinkpy.actors.task_executor_info import ProcessDescription, managed_memory, memory_here
    from flinkpy.runtime.memory.machine_memory import container_limit
    from flinkpy.runtime.memory.slots_memory import ProcessLimit, WorkerSlots
    from flinkpy.runtime.task_runner import SlotTaskRunner
    from flinkpy.state.rocksdb.shared_memory import manage_memory

    _close_input()
    service.add_handler(TAKE_BLOCK, take_block)
    memory = config.memory.worker
    manage_memory()
    network = replace(network, bind_host=bind_host or ray.util.get_node_ip_address())
    managed = managed_memory(config.options, len(slots))
    runner = SlotTaskRunner(
        network,
        secret,
        resource_id,
        SYSTEM_CLOCK,
        slots=WorkerSlots(
            len(slots),
            managed,
            config.memory.of_kinds,
            limit=ProcessLimit.least(None if memory is None else memory.process, container_limit()),
            rest_s=read(config.options, REST_TIMEOUT).total_seconds(),
        ),
        show_output=True,
    )
    set_up_logs(config.logs, logging.WARNING)  # its log is shown to programs, too
    runner.start()
    resource_manager = (
        leader
        if isinstance(leader, LeaderRetrievalService)
        else LeaderFinder(
            service,
            f"{leader}/session",
            session_id,
            lambda: find_host(leader) is not None,
            service.exit_process,
        )
    )
    inspector = ProcessInspector(service, runner)
    inspector.start()
    executor = TaskExecutor(
        EndpointServices(service, config.rpc, config.slots),
        resource_id,
        runner,
        slots,
        resource_manager,
        process=_RayWorker(
            service,
            ProcessDescription.of_this_process(
                inspector.address, memory_here(config.options, len(slots))
            ),
        ),
    )
    service.end.wind_up = lambda reason: executor.leave(str(reason))
    executor.start()
    gc.freeze()  # whatever is loaded now stays: full collections need not look at it
    collect_rarely()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    return executor


class _RayWorker(WorkerProcess):
    """A process of one worker."""

    def __init__(self, service: RayRpcService, description: ProcessDescription) -> None:
        super().__init__(description)
        self._service = service

    def refused(self, reason: str) -> None:
        self._service.exit_process()

    def stuck(self, reason: str) -> None:
        """Ends the process: there is no other way to end a thread. Its watchers are notified at
        once."""
        LOG.critical("%s: this worker ends (task.cancellation.timeout)", reason)
        logging.shutdown()
        os._exit(1)

    def idle(self) -> None:
        """Collects the garbage of the last job, which has many cycles; with these thresholds it
        would otherwise stay for minutes."""
        gc.collect()


def _close_input() -> None:
    """Closes standard input. A worker inherits that of Ray's processes, perhaps a terminal: a
    function that reads from it would wait for ever."""
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)


def first_line(error: BaseException | None) -> str:
    """Returns the first line of an error's text."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def why_not_started(error: BaseException) -> str:
    """What Ray tells of an actor that did not start, in a word: the option at fault, if the actor
    named one at the end of its traceback.

    >>> last = "flinkpy.core.errors.ConfigurationError: option rest.port: 80 is taken"
    >>> why_not_started(Exception(f"The actor died\\n...\\n{last}"))
    'option rest.port: 80 is taken'
    """
    sign = f"{ConfigurationError.__name__}: "
    named = [line.partition(sign)[2] for line in str(error).splitlines() if sign in line]
    return named[-1] if named else first_line(error)
