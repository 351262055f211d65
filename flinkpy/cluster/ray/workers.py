"""What runs inside the actors of a cluster on Ray: the JobManager with its driver, which starts TaskExecutors on
demand, and the TaskExecutors.

    Ray cluster, namespace "flinkpy"
      actor jobmanager-<cluster.id>   Dispatcher, ResourceManager, JobMasters
      actors taskexecutor-<id>        one per worker, with the resources of its slots and its jobs' runtime environment, gone when idle

``slot_limits`` computes how many slots a cluster can have.
"""

from __future__ import annotations

import gc
import logging
import os
import secrets
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import ray

from flinkpy.actors.resource_manager.slot_actions import StartWorker
from flinkpy.actors.rpc.leadership import FixedLeader, LeaderRetrievalService, StandaloneLeadership, first_leader
from flinkpy.actors.rpc.ray_service import NAMESPACE, RayHost, RayRpcService, start_host
from flinkpy.cluster.ray.runtime_environment import PIN_S, keep_packages, options_of, packages_of
from flinkpy.cluster.ray.slot_limits import RayResources, actor_options, explain, max_slots, resources_of
from flinkpy.cluster.session import SessionConfig, SessionEndpoint
from flinkpy.connectors.ray.block_keeper import TAKE_BLOCK
from flinkpy.connectors.ray.object_store import take_block
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.ids import ResourceId
from flinkpy.core.options.engine import BIND_HOST, NetworkConfig
from flinkpy.core.options.schema import read
from flinkpy.graph.resources import ResourceProfile

if TYPE_CHECKING:
    from flinkpy.actors.task_executor.task_executor import TaskExecutor
    from flinkpy.cluster.job_manager import JobManager

LOG = logging.getLogger(__name__)

RESOURCES_AGE_S = 1.0  # how long Ray's answer about its nodes is cached
KEEP_INTERVAL_S = PIN_S / 5

SWITCH_INTERVAL_S = 100e-6
"""How long another thread of a worker (for calls, for heartbeats) waits for the interpreter lock before the slots'
loop must release it. This is shorter than the time between two looks of the loop at its sockets, since at each look
the other threads begin to wait anew (see ``flinkpy.runtime.loop.slot_loop``)."""

COLLECTOR = (50_000, 20, 20)
"""The thresholds of a worker's garbage collector: it runs after 50,000 new objects, Python's default after 700. A
batch has thousands of tuples, none of which is garbage before the batch is done; with the default, collections took a
tenth of a worker's time."""


class RayWorkerDriver:
    """Starts TaskExecutors as child actors of the JobManager: Ray ends them when it dies."""

    def __init__(self, service: RayRpcService, resource_manager: LeaderRetrievalService, config: SessionConfig, network: NetworkConfig,
                 bind_host: str | None) -> None:
        self._service, self._resource_manager, self._config = service, resource_manager, config
        self._network, self._bind_host = network, bind_host
        self._secret = secrets.token_bytes(32)  # of this session's data connections
        self._workers: dict[ResourceId, RayHost] = {}
        self._environments: dict[ResourceId, str] = {}  # of workers that need packages
        self._keeping = False
        self._resources: tuple[float, RayResources] | None = None

    def max_slots(self, profile: ResourceProfile) -> int | None:
        return max_slots(self._cluster(), profile, self._config.slots.slots_per_executor)

    def explain_limit(self, profile: ResourceProfile, wanted: int) -> str:
        return explain(self._cluster(), profile, wanted, self._config.slots.slots_per_executor)

    def start_worker(self, resource_id: ResourceId, slots: int, profile: ResourceProfile, on_failure: Callable[[str], None]) -> None:
        host = self._workers.get(resource_id) or self._start_host(resource_id, slots, profile)
        host.ready().add_done_callback(lambda done: on_failure(first_line(done.error)) if done.error is not None else None)

    def start_ahead(self, profile: ResourceProfile) -> StartWorker | None:
        """Starts the first worker, with slots of that profile, before there is a ResourceManager. Returns None when
        the cluster has no room for it."""
        most = self.max_slots(profile)
        slots = self._config.slots.slots_per_executor if most is None else min(self._config.slots.slots_per_executor, most)
        if slots <= 0:
            return None
        worker = StartWorker(self._service.ids.resource_id("taskexecutor"), slots, profile)
        self._start_host(worker.resource_id, slots, profile)
        return worker

    def _start_host(self, resource_id: ResourceId, slots: int, profile: ResourceProfile) -> RayHost:
        setup = partial(_set_up_task_executor, resource_id, [profile] * slots, self._resource_manager, self._config,
                        self._network, self._bind_host, self._secret)
        options = {**actor_options(profile, slots), **options_of(profile.environment)}
        host = start_host(resource_id, setup, namespace=NAMESPACE, config=self._config.rpc, options=options)
        self._workers[resource_id] = host
        if packages_of(profile.environment):
            self._environments[resource_id] = profile.environment
            if not self._keeping:
                self._keeping = True
                self._service.schedule(KEEP_INTERVAL_S, self._keep)
        return host

    def stop_worker(self, resource_id: ResourceId) -> None:
        self._environments.pop(resource_id, None)
        host = self._workers.pop(resource_id, None)
        if host is not None:
            host.kill()  # it runs nothing; an orderly end takes Ray seconds, while others may wait for the CPUs

    def _keep(self) -> None:
        """Runs periodically in a timer's thread: keeps the packages that the next worker needs."""
        try:
            keep_packages(set(self._environments.copy().values()))
        # Ray is in trouble, or this is another version of Ray; running workers do not need the packages
        except Exception as error:
            LOG.warning("packages of runtime environments may be dropped by Ray: %s", error)
        self._service.schedule(KEEP_INTERVAL_S, self._keep)

    def _cluster(self) -> RayResources:
        now = SYSTEM_CLOCK.monotonic()
        if self._resources is None or now - self._resources[0] > RESOURCES_AGE_S:
            self._resources = (now, resources_of(ray.nodes(), _is_elastic()))
        return self._resources[1]


def _is_elastic() -> bool:
    """Whether an autoscaler may add nodes. Ray has no public call for it; without the private one, no slots are
    refused."""
    try:
        from ray._private.state import state

        config = state.get_cluster_config()
    except (ImportError, AttributeError):
        return True
    groups = config.node_group_configs if config else ()
    return any(group.max_count == -1 or group.max_count > group.min_count for group in groups)


def set_up_job_manager(configuration: dict[str, Any], is_application: bool, first_slot: ResourceProfile | None, service: RayRpcService) -> JobManager:
    """Runs in the JobManager's actor. The JobManager's modules are imported only here, so that every process starts
    fast. If the profile of the first slot is known, the first worker starts meanwhile."""
    config = SessionConfig.of(configuration)
    # Of the ResourceManager; the first worker gets it before there is a ResourceManager
    term = service.ids.fencing_token()
    resource_manager = FixedLeader(service.address_of("resourcemanager"), term)
    driver = RayWorkerDriver(service, resource_manager, config, NetworkConfig.of(configuration), read(configuration, BIND_HOST))
    first_worker = driver.start_ahead(first_slot) if first_slot is not None else None

    from flinkpy.cluster.job_manager import JobManager

    manager = JobManager(service, driver, config, on_shut_down=service.exit_process, first_worker=first_worker,
                         resource_manager_leadership=StandaloneLeadership(service.ids, term))
    manager.start()
    SessionEndpoint(service, configuration, first_leader(manager.dispatching.retrieval()), is_application).start()
    return manager


def _set_up_task_executor(resource_id: ResourceId, slots: list[ResourceProfile], resource_manager: LeaderRetrievalService, config: SessionConfig,
                          network: NetworkConfig, bind_host: str | None, secret: bytes, service: RayRpcService) -> TaskExecutor:
    """Runs in a worker's actor. A worker that the ResourceManager refuses ends itself."""
    from flinkpy.actors.task_executor.task_executor import TaskExecutor
    from flinkpy.runtime.task_runner import SlotTaskRunner

    _close_input()
    service.add_handler(TAKE_BLOCK, take_block)
    network = replace(network, bind_host=bind_host or ray.util.get_node_ip_address())
    runner = SlotTaskRunner(network, secret, resource_id, SYSTEM_CLOCK, show_output=True)
    runner.start()
    executor = TaskExecutor(service, resource_id, runner, slots, resource_manager, slot_config=config.slots, rpc_config=config.rpc,
                            on_refused=lambda reason: service.exit_process(), on_stuck=_end_at_once,
                            on_idle=_collect)
    executor.start()
    gc.freeze()  # whatever is loaded now stays: full collections need not look at it
    gc.set_threshold(*COLLECTOR)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    return executor


def _collect() -> None:
    """Collects the garbage of the last job, which has many cycles; with these thresholds it would otherwise stay for minutes."""
    gc.collect()


def _end_at_once(reason: str) -> None:
    """Ends the process: there is no other way to end a thread. Its watchers are notified at once."""
    LOG.critical("%s: this worker ends (task.cancellation.timeout)", reason)
    logging.shutdown()
    os._exit(1)


def _close_input() -> None:
    """Closes standard input. A worker inherits that of Ray's processes, perhaps a terminal: a function that reads
    from it would wait for ever."""
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)


def first_line(error: BaseException | None) -> str:
    """Returns the first line of an error's text."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
