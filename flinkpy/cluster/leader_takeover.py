"""TakeOver: the first thing a highly available JobManager does. It begins a term of its own, and
finds the jobs of the terms before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flinkpy.actors.job_store import Inheritance, JobStore
from flinkpy.actors.rpc.endpoint import NoGateway, RpcEndpoint
from flinkpy.actors.rpc.service import RpcService
from flinkpy.core.errors import FencingError
from flinkpy.core.futures import Future
from flinkpy.core.ids import ResourceId
from flinkpy.core.options.checkpointing import (
    CHECKPOINT_DIRECTORY,
    CHECKPOINT_STORAGE,
    takes_checkpoints,
)
from flinkpy.core.options.high_availability import HighAvailability
from flinkpy.core.options.schema import read
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.job_graph import JobGraph
from flinkpy.state.checkpoints.fenced_store import FencedStore
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import join
from flinkpy.state.checkpoints.stores_of_locations import private_file_store_of

if TYPE_CHECKING:
    from flinkpy.web.rest_server import RestServer

log = engine_logger(__name__)


class TakeOver(RpcEndpoint):
    """Repeats until the store answers; then ``inheritance`` is complete. ``on_deposed`` is called,
    in any thread, when another JobManager leads."""

    gateway = NoGateway
    RETRY_S = 1.0
    UNREADABLE_RETRY_S = 30.0  # until somebody has mended the store

    def __init__(
        self,
        service: RpcService,
        config: HighAvailability,
        on_deposed: Callable[[], None],
        file_stores: Callable[[str], FileStore] = private_file_store_of,
    ) -> None:
        super().__init__(service, "takeover")
        self._config = config
        self._on_deposed = on_deposed
        self._file_stores = file_stores
        self.inheritance: Future[Inheritance] = Future()

    def on_start(self) -> None:
        self.service.run_in_background(self, self._take_over).add_done_callback(self._taken)

    def _take_over(self) -> Inheritance:
        folder = join(self._config.storage_dir, self._config.cluster_id)
        store = FencedStore(self._file_stores(folder), folder)
        term = store.take_term(self.service.ids.fencing_token())
        found = JobStore(store, term, self._deposed, self.service.ids).recover()
        store.forget_earlier_terms()
        return found

    def _taken(self, done: Future[Inheritance]) -> None:
        if done.error is None:
            found = done.result(timeout=0)
            log.info(
                "term %d begins with %d jobs that run and %d that have ended",
                found.term.number,
                len(found.running),
                len(found.ended),
            )
            self.inheritance.complete(found)
        elif isinstance(done.error, OSError):
            log.warning("the jobs of the JobManager before are not found yet: %s", done.error)
            self.schedule_run_async(self.RETRY_S, self.on_start)
        else:  # Ray would start this process anew, which would read the same, again and again
            log.error(
                "the jobs of the JobManager before cannot be read; trying again every %g s",
                self.UNREADABLE_RETRY_S,
                exc_info=done.error,
            )
            self.schedule_run_async(self.UNREADABLE_RETRY_S, self.on_start)

    def _deposed(self, error: FencingError) -> None:
        log.critical(
            (
                "%s; this one ends. If both are wanted, give each its own "
                "high-availability.cluster-id"
            ),
            error,
        )
        self._on_deposed()


@dataclass(frozen=True)
class Succession:
    """What a highly available JobManager goes on with: the jobs of those before it, the workers
    that they have left, and the REST endpoint that its process has begun."""

    high_availability: HighAvailability
    inheritance: Inheritance
    workers: Sequence[ResourceId]
    rest: RestServer | None

    def prepare(self, job_graph: JobGraph) -> JobGraph:
        return with_checkpoint_folder(self.high_availability, job_graph)


def with_checkpoint_folder(config: HighAvailability | None, job_graph: JobGraph) -> JobGraph:
    """The job, with a folder for its checkpoints if it takes some and names none: those in memory
    would die with the JobManager."""
    values = job_graph.configuration
    if (
        config is None
        or not takes_checkpoints(values)
        or read(values, CHECKPOINT_DIRECTORY) is not None
    ):
        return job_graph
    if str(read(values, CHECKPOINT_STORAGE) or "").lower() == "jobmanager":
        log.warning(
            (
                "job %r keeps its checkpoints in the JobManager's memory: if that dies, the job "
                "begins anew"
            ),
            job_graph.name,
        )
        return job_graph
    return replace(
        job_graph,
        configuration={**values, CHECKPOINT_DIRECTORY.key: join(config.storage_dir, "checkpoints")},
    )
