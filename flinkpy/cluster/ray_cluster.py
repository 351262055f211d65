"""Sessions on Ray: a detached, named actor that holds the JobManager, and TaskExecutor actors it starts on demand and that die with it.

    Ray cluster, namespace "flinkpy"
      actor jobmanager-<cluster.id>   Dispatcher, ResourceManager, JobMasters
      actors taskexecutor-<id>        one per worker, with the resources of its slots, gone when idle

A session outlives the program that started it: the next program finds the actor by its name and reuses it. This file and the RPC service are
the only ones of the engine that know Ray; how many slots a cluster can have is worked out in ``ray_limits``.
"""

from __future__ import annotations

import atexit
import gc
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import ray

from flinkpy import __version__
from flinkpy.actors.gateways import DispatcherGateway
from flinkpy.actors.ray_service import RayHost, RayRpcService, find_host, start_host
from flinkpy.cluster.client import ClientConfig, ClusterClient
from flinkpy.cluster.progress import make_progress
from flinkpy.cluster.ray_connection import connect_ray
from flinkpy.cluster.ray_limits import RayResources, actor_options, explain, max_slots, resources_of
from flinkpy.cluster.session import SessionConfig, SessionEndpoint, SessionGateway, SessionInfo, session_options
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.config import read
from flinkpy.core.errors import FlinkpyError, ResourceUnavailableError
from flinkpy.core.ids import IdFactory, ResourceId
from flinkpy.core.options import BIND_HOST, CLUSTER_NAME, TASK_CPUS, NetworkConfig
from flinkpy.graph.job_graph import JobGraph
from flinkpy.graph.resources import ResourceProfile

if TYPE_CHECKING:
    from flinkpy.actors.task_executor import TaskExecutor
    from flinkpy.cluster.job_manager import JobManager

NAMESPACE = "flinkpy"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
RESOURCES_AGE_S = 1.0  # for so long what Ray said of its nodes is believed

# -- in the JobManager's process ----------------------------------------------------------------------------------------------------


class RayWorkerDriver:
    """Starts TaskExecutors as actors of the JobManager's: Ray ends them when it dies."""

    def __init__(self, resource_manager_address: str, config: SessionConfig, network: NetworkConfig, bind_host: str | None) -> None:
        self._resource_manager_address, self._config = resource_manager_address, config
        self._network, self._bind_host = network, bind_host
        self._secret = secrets.token_bytes(32)  # of this session's data connections
        self._workers: dict[ResourceId, RayHost] = {}
        self._resources: tuple[float, RayResources] | None = None

    def max_slots(self, profile: ResourceProfile) -> int | None:
        return max_slots(self._cluster(), profile, self._config.slots.slots_per_executor)

    def explain_limit(self, profile: ResourceProfile, wanted: int) -> str:
        return explain(self._cluster(), profile, wanted, self._config.slots.slots_per_executor)

    def start_worker(self, resource_id: ResourceId, slots: int, profile: ResourceProfile, on_failure: Callable[[str], None]) -> None:
        setup = partial(_set_up_task_executor, resource_id, [profile] * slots, self._resource_manager_address, self._config,
                        self._network, self._bind_host, self._secret)
        host = start_host(resource_id, setup, namespace=NAMESPACE, config=self._config.rpc, options=actor_options(profile, slots))
        self._workers[resource_id] = host
        host.ready().add_done_callback(lambda done: on_failure(_first_line(done.error)) if done.error is not None else None)

    def stop_worker(self, resource_id: ResourceId) -> None:
        host = self._workers.pop(resource_id, None)
        if host is not None:
            host.kill()  # it runs nothing; a polite end takes Ray seconds, while others may wait for the CPUs

    def _cluster(self) -> RayResources:
        now = SYSTEM_CLOCK.monotonic()
        if self._resources is None or now - self._resources[0] > RESOURCES_AGE_S:
            self._resources = (now, resources_of(ray.nodes(), _is_elastic()))
        return self._resources[1]


def _is_elastic() -> bool:
    """Whether an autoscaler may add nodes. Ray has no public question for it; where the private one is gone, nothing is refused."""
    try:
        from ray._private.state import state

        config = state.get_cluster_config()
    except (ImportError, AttributeError):
        return True
    groups = config.node_group_configs if config else ()
    return any(group.max_count == -1 or group.max_count > group.min_count for group in groups)


def _set_up_job_manager(configuration: dict[str, Any], service: RayRpcService) -> JobManager:
    """Runs in the session's actor. Only there the JobManager's parts are imported: every process starts as fast as it can."""
    from flinkpy.cluster.job_manager import JobManager

    config = SessionConfig.of(configuration)
    driver = RayWorkerDriver(service.address_of("resourcemanager"), config, NetworkConfig.of(configuration), read(configuration, BIND_HOST))
    manager = JobManager(service, driver, config, on_shut_down=service.exit_process)
    manager.start()
    SessionEndpoint(service, configuration).start()
    return manager


def _set_up_task_executor(resource_id: ResourceId, slots: list[ResourceProfile], resource_manager_address: str, config: SessionConfig,
                          network: NetworkConfig, bind_host: str | None, secret: bytes, service: RayRpcService) -> TaskExecutor:
    """Runs in a worker's actor. A worker nobody wants ends itself."""
    from flinkpy.actors.task_executor import TaskExecutor
    from flinkpy.runtime.task_runner import SlotTaskRunner

    network = replace(network, bind_host=bind_host or ray.util.get_node_ip_address())
    runner = SlotTaskRunner(network, secret, resource_id, SYSTEM_CLOCK)
    executor = TaskExecutor(service, resource_id, runner, slots, resource_manager_address, slot_config=config.slots, rpc_config=config.rpc,
                            on_refused=lambda reason: service.exit_process())
    executor.start()
    gc.freeze()  # what is loaded by now stays for good: a full collection need not walk it each time, in the middle of the stream
    return executor


# -- in the client's process --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SessionKey:
    """One session of one connection of this process to Ray."""

    ray_job: str
    cluster_id: str

    @property
    def process(self) -> str:
        return f"jobmanager-{self.cluster_id}"


class RaySession:
    """A session on Ray, as one client process sees it."""

    def __init__(self, key: SessionKey, host: RayHost, configuration: Mapping[str, Any]) -> None:
        config = SessionConfig.of(configuration)
        self.key, self.host = key, host
        ids = IdFactory()
        self.service = RayRpcService(f"client-{ids.hex(8)}", namespace=NAMESPACE, config=config.rpc, ids=ids)
        self._config = ClientConfig(config.rpc.ask_timeout.total_seconds(), f"the flinkpy session {key.cluster_id!r} on Ray is gone: "
                                    "its JobManager died or the Ray cluster ended; `ray status` tells, and the next run starts anew")
        answer_s = self._config.ask_timeout_s
        self.info: SessionInfo = self.service.connect(None, f"{key.process}/session", SessionGateway).result(answer_s).describe().result(answer_s)
        self.dispatcher = self.service.connect(None, f"{key.process}/dispatcher", DispatcherGateway).result(answer_s)

    def client(self, configuration: Mapping[str, Any]) -> ClusterClient:
        return ClusterClient(self.dispatcher, self._config, make_watcher=partial(make_progress, configuration),
                             prepare=partial(with_cpus, cpus=read(configuration, TASK_CPUS)))

    def close(self) -> None:
        """The client's side only."""
        self.service.stop()


_LOCK = threading.Lock()
_sessions: dict[str, RaySession] = {}


def connect_session(configuration: Mapping[str, Any], *, start: bool) -> ClusterClient:
    """A client of the session ``cluster.id`` names. With ``start``, a Ray cluster and a session that are not there are started."""
    return _session(configuration, start).client(configuration)


def stop_session(configuration: Mapping[str, Any]) -> bool:
    """Cancels the session's jobs and ends it and its workers; False when there is none. One that does not answer is killed."""
    connect_ray(configuration, start=False)
    key = _key(configuration)
    host = find_host(key.process, NAMESPACE)
    if host is None:
        return False
    try:
        session = _session(configuration, start=False)
        session.dispatcher.shut_down_cluster().result(STOP_TIMEOUT_S)
        host.stop().result(STOP_TIMEOUT_S)
    except FlinkpyError:
        host.kill()
    with _LOCK:
        _forget(key.cluster_id)
    return True


def with_cpus(job_graph: JobGraph, cpus: float) -> JobGraph:
    """The CPUs of a slot are part of what the job asks for, so each job may ask differently of the same session."""
    return replace(job_graph, vertices=[
        vertex if vertex.resources.cpus else replace(vertex, resources=replace(vertex.resources, cpus=cpus)) for vertex in job_graph.vertices])


def _session(configuration: Mapping[str, Any], start: bool) -> RaySession:
    with _LOCK:
        connect_ray(configuration, start=start)
        key = _key(configuration)
        host = find_host(key.process, NAMESPACE)
        if host is None and not start:
            raise ResourceUnavailableError(f"there is no flinkpy session {key.cluster_id!r} on this Ray cluster, so no jobs")
        known = _sessions.get(key.cluster_id)
        if known is not None and known.key == key and host is not None:
            return known
        _forget(key.cluster_id)
        fresh = host is None
        host = host if host is not None else _start(key, configuration)
        session = _checked(_connected(key, host, configuration), configuration, fresh)
        _sessions[key.cluster_id] = session
        return session


def _key(configuration: Mapping[str, Any]) -> SessionKey:
    return SessionKey(str(ray.get_runtime_context().get_job_id()), read(configuration, CLUSTER_NAME))


def _start(key: SessionKey, configuration: Mapping[str, Any]) -> RayHost:
    """Two clients at a time get the same one."""
    options = {"num_cpus": 0, "lifetime": "detached", "get_if_exists": True}
    host = start_host(key.process, partial(_set_up_job_manager, session_options(configuration)), namespace=NAMESPACE,
                      config=SessionConfig.of(configuration).rpc, options=options)
    try:
        host.ready().result(START_TIMEOUT_S)
    except FlinkpyError as error:
        raise ResourceUnavailableError(f"the flinkpy session {key.cluster_id!r} did not start on Ray: {_first_line(error)}") from error
    return host


def _connected(key: SessionKey, host: RayHost, configuration: Mapping[str, Any]) -> RaySession:
    try:
        return RaySession(key, host, configuration)
    except FlinkpyError as error:
        raise ResourceUnavailableError(
            f"the flinkpy session {key.cluster_id!r} on Ray does not answer ({_first_line(error)}); if it was started by another version of flinkpy, "
            "or hangs, `flinkpy stop-cluster` ends it"
        ) from error


def _checked(session: RaySession, configuration: Mapping[str, Any], fresh: bool) -> RaySession:
    if session.info.version != __version__:
        session.close()
        raise ResourceUnavailableError(
            f"the flinkpy session {session.key.cluster_id!r} was started by flinkpy {session.info.version}, this is {__version__}: end it with "
            f"`flinkpy stop-cluster`, or use another one with -D {CLUSTER_NAME.key}=NAME"
        )
    differing = [f"{name}={value}" for name, value in session_options(configuration).items() if str(session.info.options.get(name)) != str(value)]
    if differing and not fresh:
        print(f"the session {session.key.cluster_id!r} runs already and keeps its own options; without effect: {', '.join(differing)} "
              "(`flinkpy stop-cluster` ends it)", file=sys.stderr)
    return session


def _forget(cluster_id: str) -> None:
    session = _sessions.pop(cluster_id, None)
    if session is not None:
        session.close()


@atexit.register
def _close_sessions() -> None:
    for cluster_id in list(_sessions):
        _forget(cluster_id)


def _first_line(error: BaseException | None) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
