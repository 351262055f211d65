"""Dispatcher: accepts jobs, runs a JobMaster for each, answers the clients, and keeps the results
of ended jobs.

A JobKeeper keeps jobs for the next Dispatcher, if there is to be one: each before its client is
answered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from flinkpy.actors.claimed_checkpoints import ClaimedCheckpoints
from flinkpy.actors.endpoint_services import EndpointServices
from flinkpy.actors.execution_graph_info import ExecutionGraphInfo
from flinkpy.actors.gateways import (
    ClusterOverview,
    DispatcherGateway,
    JobDetails,
    JobMasterGateway,
    JobMetrics,
    JobOverview,
    JobResult,
    ResourceManagerGateway,
    SavepointRequest,
    SavepointStatus,
)
from flinkpy.actors.job_keeper import JobKeeper
from flinkpy.actors.job_store import ArchivedJob, Inheritance
from flinkpy.actors.rpc.leadership import (
    NO_LEADER,
    LeaderElectionService,
    LeaderRetrievalService,
    LeadingEndpoint,
)
from flinkpy.core.errors import (
    FlinkpyError,
    ProcessEndedError,
    ProgramError,
    RecipientUnreachableError,
    RpcError,
)
from flinkpy.core.futures import Future, all_of
from flinkpy.core.ids import FencingToken, JobId
from flinkpy.core.lifecycles import JobState
from flinkpy.core.options.checkpointing import RECOVERY_PATH
from flinkpy.core.options.schema import read
from flinkpy.graph.job_graph import JobGraph
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import absolute
from flinkpy.state.checkpoints.stored_checkpoints import job_folder_of, owner_of

T = TypeVar("T")

OnTerminal: TypeAlias = Callable[[JobResult, JobDetails], None]
"""A JobMaster calls it once, in any thread, when its job has ended."""

Archive: TypeAlias = Callable[[ArchivedJob], None]
"""Keeps a job that has ended. It blocks, and clients hear of the end behind it."""


class JobMasterLike(Protocol):
    """What the Dispatcher needs of a JobMaster; everything else goes through the JobMaster's
    gateway."""

    @property
    def address(self) -> str: ...

    @property
    def token(self) -> FencingToken | None: ...

    def start(self) -> None: ...

    def stop(self) -> Future[None]: ...


class DispatcherHost:
    """The process around a Dispatcher, as the Dispatcher uses it."""

    archive: Archive | None = None

    def make_job_master(
        self, job_graph: JobGraph, on_terminal: OnTerminal, generation: int
    ) -> JobMasterLike:
        """Builds a JobMaster for the job. One of a later generation takes the job over."""
        raise NotImplementedError

    def prepare(self, job_graph: JobGraph) -> JobGraph:
        """What the cluster adds to each job that is submitted."""
        return job_graph

    def shut_down(self) -> None:
        """The last job has ended, and the cluster is to end."""


@dataclass
class RunningJob:
    name: str
    master: JobMasterLike
    gateway: Future[JobMasterGateway] | None = None


@dataclass(frozen=True)
class DispatcherStatistics:
    running: int
    archived: int
    waiting_clients: int


class Dispatcher(LeadingEndpoint):
    """Accepts jobs and answers clients while it leads.

    With an ``inheritance`` it goes on with the jobs of the Dispatchers before it. It remembers
    ``archive_size`` jobs that have ended."""

    gateway = DispatcherGateway
    CANCEL_AGAIN_S = 1.0

    def __init__(
        self,
        services: EndpointServices,
        host: DispatcherHost,
        resource_manager: LeaderRetrievalService,
        *,
        name: str = "dispatcher",
        archive_size: int = 200,
        election: LeaderElectionService | None = None,
        inheritance: Inheritance | None = None,
    ) -> None:
        super().__init__(services.rpc, name, election)
        self._host = host
        self._file_stores = services.file_stores
        self._keeper = JobKeeper(self, inheritance, services.file_stores, host.archive)
        self._resource_manager = resource_manager
        self._managing = NO_LEADER  # the ResourceManager
        self._archive_size = archive_size
        self._jobs: dict[JobId, RunningJob] = {}
        self._claims = ClaimedCheckpoints()
        self._archive: OrderedDict[JobId, ArchivedJob] = OrderedDict()
        self._waiting: dict[JobId, list[Future[JobResult | None]]] = {}
        self._shutting_down: Future[None] | None = None
        self._why_it_ends: ProcessEndedError | None = None

    # -- submitting --------------------------------------------------------------------------------

    async def submit_job(self, job_graph: JobGraph) -> JobId:
        job_id = job_graph.job_id
        # else the message was doubled, or its answer was lost
        if job_id not in self._jobs and job_id not in self._archive:
            self._check_open()
            _validate(job_graph)
            await self._check_start(job_graph)
            self._check_open()
            self._claims.check(job_graph)
            self._claims.add(job_graph)
            try:
                job_graph = self._host.prepare(job_graph)
                await self._keep(job_graph)
                if job_id not in self._jobs and job_id not in self._archive:
                    self._check_open()
                    self._start_job(job_graph)
            finally:
                if job_id not in self._jobs:
                    self._claims.remove(job_id)
        return job_id

    async def _check_start(self, job_graph: JobGraph) -> None:
        """Refuses to start from a checkpoint of a job that runs here: that deletes it when it has a
        newer one, and goes back to it until then."""
        path = read(job_graph.configuration, RECOVERY_PATH)
        if path is None:
            return
        location = absolute(path)
        owner: JobId | None = JobId(job_folder_of(location))
        if owner not in self._jobs and self._jobs:
            look = partial(_owner_of, self._file_stores, location)
            owner = await self.service.run_in_background(self, look)
        if owner in self._jobs:
            raise ProgramError(
                f"{path} belongs to job {owner}, which still runs and deletes its "
                "checkpoints: take a savepoint of the "
                "job, or stop it with one, and start from that"
            )

    async def _keep(self, job_graph: JobGraph) -> None:
        try:
            await self._keeper.add(job_graph)
        finally:
            if self._shutting_down is not None:  # it has begun meanwhile, and waits for this
                if job_graph.job_id not in self._jobs:  # unless a doubled message has started it
                    self._keeper.forget(job_graph.job_id)
                self._end_when_empty()

    def _check_open(self) -> None:
        if self._shutting_down is not None:
            raise ProgramError("the cluster is shutting down and takes no more jobs")

    def _start_job(self, job_graph: JobGraph, generation: int = 0) -> None:
        def job_ended(result: JobResult, details: JobDetails) -> None:
            if self._why_it_ends is not None and result.state is JobState.CANCELED:
                result = replace(result, error=self._why_it_ends)
            ended = ArchivedJob(result, details)
            self.run_async(
                lambda: self._keeper.archive(ended).add_done_callback(
                    lambda _: self._archive_job(ended)
                )
            )

        master = self._host.make_job_master(job_graph, job_ended, generation)
        master.start()
        self._claims.add(job_graph)
        self._jobs[job_graph.job_id] = RunningJob(job_graph.name, master)

    def _archive_job(self, ended: ArchivedJob) -> None:
        result = ended.result
        job = self._jobs.pop(result.job_id, None)
        if job is None:
            return
        self._claims.remove(result.job_id)
        self._add_to_archive(ended)
        self._keeper.cleaned(result.job_id)
        job.master.stop()
        for client in self._waiting.pop(result.job_id, ()):
            client.complete(result)
        self._end_when_empty()

    def _add_to_archive(self, job: ArchivedJob) -> None:
        self._archive[job.result.job_id] = job
        while len(self._archive) > self._archive_size:
            forgotten, _ = self._archive.popitem(last=False)
            self._keeper.forget(forgotten)

    # -- queries -----------------------------------------------------------------------------------

    async def list_jobs(self) -> list[JobOverview]:
        running = [self.spawn(self.request_job_details(job_id)) for job_id in self._jobs]
        found = [(await details).overview for details in running]
        ended = {job_id: job.details.overview for job_id, job in self._archive.items()}
        return [
            *(overview for overview in found if overview.job_id not in ended),
            *reversed(ended.values()),
        ]

    async def request_job_status(self, job_id: JobId) -> JobState:
        return await self._tell(
            job_id, lambda ended: ended.result.state, lambda master: master.request_status()
        )

    async def request_job_details(self, job_id: JobId) -> JobDetails:
        return await self._tell(
            job_id, lambda ended: ended.details, lambda master: master.request_details()
        )

    async def request_execution_graph(self, job_id: JobId) -> ExecutionGraphInfo:
        return await self._tell(
            job_id, lambda ended: ended.graph, lambda master: master.request_execution_graph()
        )

    async def request_job_metrics(self, job_id: JobId) -> JobMetrics:
        return await self._tell(
            job_id, lambda ended: ended.metrics, lambda master: master.request_metrics()
        )

    async def _tell(
        self,
        job_id: JobId,
        ended: Callable[[ArchivedJob], T],
        running: Callable[[JobMasterGateway], Future[T]],
    ) -> T:
        """What the JobMaster answers; for a job that has ended, also while its JobMaster was asked,
        what the archive answers."""
        if job_id not in self._archive:
            try:
                return await running(await self._master_of(job_id))
            except RpcError:
                if job_id not in self._archive:
                    raise
        return ended(self._archive[job_id])

    def request_job_result(self, job_id: JobId, wait_s: float) -> Future[JobResult | None]:
        archived = self._archive.get(job_id)
        if archived is not None:
            return Future.completed(archived.result)
        self._running(job_id)
        client: Future[JobResult | None] = Future()
        self._waiting.setdefault(job_id, []).append(client)

        def give_up_waiting() -> None:
            if client.complete(None):
                waiting = self._waiting[job_id]
                waiting.remove(client)
                if not waiting:
                    del self._waiting[job_id]

        self.schedule_run_async(max(0.0, wait_s), give_up_waiting)
        return client

    async def cancel_job(self, job_id: JobId) -> None:
        if job_id in self._archive:
            return
        self._running(job_id)
        await self._keeper.cancel(job_id)
        await self._tell(job_id, lambda ended: None, lambda master: master.cancel())

    async def _cancel_until_it_ends(self, job_id: JobId, is_kept: bool = False) -> None:
        """Repeats the cancellation until it succeeds or the job has ended, as no client will repeat
        it. ``is_kept``: the store has already recorded that the job is cancelled."""
        try:
            if not is_kept:
                await self._keeper.cancel(job_id)
                is_kept = True
            if job_id in self._jobs:
                await (await self._master_of(job_id)).cancel()
        except RpcError:
            if job_id in self._jobs:
                self.schedule_run_async(
                    self.CANCEL_AGAIN_S,
                    lambda: self.run_coroutine(self._cancel_until_it_ends(job_id, is_kept)),
                )

    async def request_savepoint(
        self, job_id: JobId, request: SavepointRequest, wait_s: float
    ) -> SavepointStatus:
        return await self._tell(
            job_id,
            lambda ended: ended.savepoint(request),
            lambda master: master.request_savepoint(request, wait_s),
        )

    async def request_cluster_overview(self) -> ClusterOverview:
        address, token = self._managing
        if address is None:
            raise RecipientUnreachableError("no ResourceManager leads this cluster now")
        manager = await self.connect(address, ResourceManagerGateway, token)
        overview = await manager.request_overview()
        return ClusterOverview(
            overview.task_executors, overview.slots_total, overview.slots_free, len(self._jobs)
        )

    def _master_of(self, job_id: JobId) -> Future[JobMasterGateway]:
        """Connects to the job's JobMaster, again if the last attempt failed."""
        job = self._running(job_id)
        if job.gateway is None or job.gateway.error is not None:
            job.gateway = self.connect(job.master.address, JobMasterGateway, job.master.token)
        return job.gateway

    def _running(self, job_id: JobId) -> RunningJob:
        job = self._jobs.get(job_id)
        if job is None:
            raise ProgramError(
                f"there is no job {job_id} here; `flinkpy list` shows those there are"
            )
        return job

    # -- ending ------------------------------------------------------------------------------------

    def shut_down_cluster(self) -> Future[None]:
        if self._shutting_down is None:
            self._shutting_down = Future()
            for job_id in list(self._jobs):
                self.run_coroutine(self._cancel_until_it_ends(job_id))
            self._end_when_empty()
        return self._shutting_down

    def end_because(self, reason: ProcessEndedError) -> Future[None]:
        """Ends the cluster as ``shut_down_cluster`` does; those who wait for its jobs are told the
        reason. May be called in any thread."""

        def end() -> Future[None]:
            self._why_it_ends = reason
            return self.shut_down_cluster()

        return self.call_async(end).compose(lambda ended: ended)

    def _end_when_empty(self) -> None:
        if (
            self._shutting_down is not None
            and not self._jobs
            and not self._keeper.is_adding
            and self._shutting_down.complete(None)
        ):
            self._keeper.close_for_good().add_done_callback(lambda _: self._host.shut_down())

    # -- leading -----------------------------------------------------------------------------------

    def on_leadership(self) -> None:
        ended, running = self._keeper.start()
        for job in ended:
            self._add_to_archive(job)
            self._keeper.archive(job)  # the JobManager before may have died before it could
        for recovered in running:
            self._start_job(recovered.graph, recovered.generation)
            if recovered.is_cancelled:
                self.run_coroutine(self._cancel_until_it_ends(recovered.graph.job_id, is_kept=True))
        self._resource_manager.start(
            lambda leader: self.run_async(lambda: setattr(self, "_managing", leader))
        )

    def on_stop(self) -> Future[Any]:
        super().on_stop()
        self._resource_manager.stop()
        return all_of([job.master.stop() for job in self._jobs.values()])

    def statistics(self) -> DispatcherStatistics:
        return DispatcherStatistics(
            len(self._jobs), len(self._archive), sum(map(len, self._waiting.values()))
        )


def _owner_of(file_stores: Callable[[str], FileStore], location: str) -> JobId | None:
    """In the background. Where nothing can be read, the job itself will say so."""
    try:
        return owner_of(file_stores(location), location)
    except (OSError, FlinkpyError):
        return None


def _validate(job_graph: JobGraph) -> None:
    """Refuses job graphs that no scheduler could run. The ResourceManager refuses slots that cannot
    be had."""
    if not job_graph.vertices:
        raise ProgramError(f"job {job_graph.name!r} has no operators: add a source and a sink")
    known = set()
    for vertex in job_graph.vertices:
        if vertex.parallelism < 1 or vertex.max_parallelism < vertex.parallelism:
            raise ProgramError(
                f"vertex {vertex.name!r}: parallelism {vertex.parallelism} must be at least 1 "
                f"and at most {vertex.max_parallelism}"
            )
        missing = [
            edge.data_set.producer for edge in vertex.inputs if edge.data_set.producer not in known
        ]
        if missing or vertex.id in known:
            raise ProgramError(
                f"vertex {vertex.name!r} is there twice, or reads from vertices that do not "
                f"stand before it: {missing}"
            )
        known.add(vertex.id)
