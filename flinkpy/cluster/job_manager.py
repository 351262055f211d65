"""The leading part of every session, wherever it runs: a Dispatcher and a ResourceManager on one
RpcService, and a JobMaster for each job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from flinkpy.actors.dispatcher import Dispatcher, DispatcherHost, OnTerminal
from flinkpy.actors.endpoint_services import EndpointServices
from flinkpy.actors.gateways import DispatcherGateway, ResourceManagerGateway, WorkerDriver
from flinkpy.actors.inspector.process_inspector import ProcessInspector
from flinkpy.actors.job_events import EventStream
from flinkpy.actors.job_master.job_master import JobMaster
from flinkpy.actors.job_store import ArchivedJob
from flinkpy.actors.resource_manager.resource_manager import ResourceManager
from flinkpy.actors.resource_manager.slot_actions import StartWorker
from flinkpy.actors.rpc.leadership import StandaloneLeadership, connect_to_leader
from flinkpy.actors.rpc.service import RpcService
from flinkpy.cluster.leader_takeover import Succession
from flinkpy.cluster.session import RestPlace, SessionConfig
from flinkpy.core.clock import Clock
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.events import WebhookConfig
from flinkpy.graph.job_graph import JobGraph
from flinkpy.state.checkpoints.locations import absolute
from flinkpy.state.checkpoints.stores_of_locations import private_file_store_of

if TYPE_CHECKING:
    from flinkpy.web.metric_reporters import MetricReporters
    from flinkpy.web.rest_server import RestServer
    from flinkpy.web.webhook import Webhook


class JobManager(DispatcherHost):
    """The leading part of a session. ``on_shut_down`` ends its process, after the last job has
    ended. ``first_worker`` is starting already; then ``resource_manager_leadership`` has the token
    that this worker was given. ``dispatching`` and ``managing`` are the leaderships of Dispatcher
    and ResourceManager. With a ``succession`` it goes on with what the JobManagers before it have
    left.

    Raises ConfigurationError if the REST endpoint or Prometheus cannot have their ports.
    """

    def __init__(
        self,
        service: RpcService,
        driver: WorkerDriver,
        config: SessionConfig,
        on_shut_down: Callable[[], None] = lambda: None,
        first_worker: StartWorker | None = None,
        resource_manager_leadership: StandaloneLeadership | None = None,
        succession: Succession | None = None,
    ) -> None:
        self._config = config
        self._succession = succession
        inheritance = None if succession is None else succession.inheritance
        self._on_shut_down, self._webhook = on_shut_down, _webhook(config.webhook)
        self._events = EventStream([] if self._webhook is None else [self._webhook.publish])
        self.reporters: MetricReporters | None = None
        self._rest = rest_server(config, service.clock) if succession is None else succession.rest
        try:
            self.reporters = _metric_reporters(config, service.clock)
        except ConfigurationError:
            self.stop_rest()
            raise
        self.archive = _archive_to(config.archive_folder, config.options)
        self._services = EndpointServices(service, config.rpc, config.slots)
        term = None if inheritance is None else inheritance.term.token
        self.inspector = ProcessInspector(service)
        self.managing = resource_manager_leadership or StandaloneLeadership(service.ids, term)
        self.dispatching = StandaloneLeadership(service.ids, term)
        self.resource_manager = ResourceManager(
            self._services,
            driver,
            first_worker=first_worker,
            election=self.managing,
            previous_workers=() if succession is None else succession.workers,
        )
        self.dispatcher = Dispatcher(
            self._services,
            self,
            self.managing.retrieval(),
            election=self.dispatching,
            inheritance=inheritance,
        )

    def start(self) -> None:
        self.resource_manager.start()
        self.dispatcher.start()
        self.inspector.start()
        if self._rest is not None or self.reporters is not None:
            self._serve()

    def _serve(self) -> None:
        from flinkpy.web.inspector_calls import InspectorCalls
        from flinkpy.web.metric_fetcher import LatestReading

        dispatcher = connect_to_leader(
            self._services.rpc, self.dispatching.retrieval(), DispatcherGateway
        )
        manager = connect_to_leader(
            self._services.rpc, self.managing.retrieval(), ResourceManagerGateway
        )

        def serve(jobs: DispatcherGateway, workers: ResourceManagerGateway) -> None:
            latest = LatestReading()
            # Each has an event loop, and so calls of its own
            if self._rest is not None:
                self._rest.serve(
                    jobs, InspectorCalls(self._services.rpc, workers), self._config.options, latest
                )
            if self.reporters is not None:
                self.reporters.serve(jobs, InspectorCalls(self._services.rpc, workers), latest)

        dispatcher.then(lambda jobs: manager.then(lambda workers: serve(jobs, workers)))

    @property
    def rest(self) -> RestPlace:
        """Where the REST endpoint is."""
        return place_of(self._rest)

    def prepare(self, job_graph: JobGraph) -> JobGraph:
        return job_graph if self._succession is None else self._succession.prepare(job_graph)

    def shut_down(self) -> None:
        self.stop_webhook()
        self._on_shut_down()

    def stop_webhook(self) -> None:
        """Sends the events that are still waiting to the webhook, if it takes them within
        seconds."""
        if self._webhook is not None:
            self._webhook.close()

    def stop_rest(self) -> None:
        """Ends the REST endpoint, and what reports metrics."""
        for each in (self._rest, self.reporters):
            if each is not None:
                each.stop()

    def make_job_master(
        self, job_graph: JobGraph, on_terminal: OnTerminal, generation: int
    ) -> JobMaster:
        store = None if self._succession is None else self._succession.inheritance.store
        return JobMaster(
            self._services,
            job_graph,
            self.managing.retrieval(),
            on_terminal,
            store=store,
            generation=generation,
            publish=self._events.publish,
        )


def _archive_to(
    folder: str | None, options: Mapping[str, Any]
) -> Callable[[ArchivedJob], None] | None:
    if folder is None:
        return None
    location = absolute(folder)

    def archive_job(job: ArchivedJob) -> None:
        from flinkpy.web.history.archiving import archive  # it loads the web server

        archive(private_file_store_of(location), location, job, options)

    return archive_job


def _webhook(config: WebhookConfig | None) -> Webhook | None:
    if config is None:
        return None
    from flinkpy.web.webhook import Webhook  # for those who want it

    return Webhook(config)


def rest_server(config: SessionConfig, clock: Clock) -> RestServer | None:
    """The REST endpoint, if there is to be one: it has its port, and answers when the JobManager
    has started."""
    if not config.rest.enabled:
        return None
    from flinkpy.web.rest_server import RestServer  # a quarter of a second, for those who want it

    return RestServer(config.rest, clock, config.metrics)


def place_of(server: RestServer | None) -> RestPlace:
    """Where the REST endpoint is."""
    return RestPlace() if server is None else RestPlace(server.url, server.told)


def _metric_reporters(config: SessionConfig, clock: Clock) -> MetricReporters | None:
    if not config.metrics.needs_server:
        return None
    from flinkpy.web.metric_reporters import MetricReporters

    return MetricReporters(config.metrics, config.rest.address, clock)
