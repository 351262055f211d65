"""The leading part of every session, wherever it runs: a Dispatcher and a ResourceManager on one RpcService, and a JobMaster for each job."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.actors.dispatcher import Dispatcher, OnTerminal
from flinkpy.actors.gateways import WorkerDriver
from flinkpy.actors.job_master import JobMaster
from flinkpy.actors.resource_manager import ResourceManager
from flinkpy.actors.service import RpcService
from flinkpy.actors.slot_actions import StartWorker
from flinkpy.cluster.session import SessionConfig
from flinkpy.graph.job_graph import JobGraph


class JobManager:
    """The leading part of a session. ``on_shut_down`` ends what it lives in, after the last job has ended;
    ``first_worker`` is being started already."""

    def __init__(self, service: RpcService, driver: WorkerDriver, config: SessionConfig, on_shut_down: Callable[[], None] = lambda: None,
                 first_worker: StartWorker | None = None) -> None:
        self._service, self._config = service, config
        self.resource_manager = ResourceManager(service, driver, slot_config=config.slots, rpc_config=config.rpc,
                                                first_worker=first_worker)
        self.dispatcher = Dispatcher(service, self._make_job_master, self.resource_manager.address, on_shut_down=on_shut_down)

    def start(self) -> None:
        self.resource_manager.start()
        self.dispatcher.start()

    def _make_job_master(self, job_graph: JobGraph, on_terminal: OnTerminal) -> JobMaster:
        return JobMaster(self._service, job_graph, self.resource_manager.address, on_terminal,
                         slot_config=self._config.slots, rpc_config=self._config.rpc)
