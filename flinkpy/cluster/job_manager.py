"""The leading part of every session, wherever it runs: a Dispatcher and a ResourceManager on one RpcService, and a JobMaster for each job."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.actors.dispatcher import Dispatcher, OnTerminal
from flinkpy.actors.gateways import WorkerDriver
from flinkpy.actors.job_master.job_master import JobMaster
from flinkpy.actors.resource_manager.resource_manager import ResourceManager
from flinkpy.actors.resource_manager.slot_actions import StartWorker
from flinkpy.actors.rpc.leadership import StandaloneLeadership
from flinkpy.actors.rpc.service import RpcService
from flinkpy.cluster.session import SessionConfig
from flinkpy.graph.job_graph import JobGraph


class JobManager:
    """The leading part of a session. ``on_shut_down`` ends its process, after the last job has ended.
    ``first_worker`` is starting already; then ``resource_manager_leadership`` has the token that this worker was
    given. ``dispatching`` is the leadership of the Dispatcher."""

    def __init__(self, service: RpcService, driver: WorkerDriver, config: SessionConfig, on_shut_down: Callable[[], None] = lambda: None,
                 first_worker: StartWorker | None = None, resource_manager_leadership: StandaloneLeadership | None = None) -> None:
        self._service, self._config = service, config
        self._managing = resource_manager_leadership or StandaloneLeadership(service.ids)
        self.dispatching = StandaloneLeadership(service.ids)
        self.resource_manager = ResourceManager(service, driver, slot_config=config.slots, rpc_config=config.rpc,
                                                first_worker=first_worker, election=self._managing)
        self.dispatcher = Dispatcher(service, self._make_job_master, self._managing.retrieval(), on_shut_down=on_shut_down,
                                     election=self.dispatching)

    def start(self) -> None:
        self.resource_manager.start()
        self.dispatcher.start()

    def _make_job_master(self, job_graph: JobGraph, on_terminal: OnTerminal) -> JobMaster:
        return JobMaster(self._service, job_graph, self._managing.retrieval(), on_terminal,
                         slot_config=self._config.slots, rpc_config=self._config.rpc)
