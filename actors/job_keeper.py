"""JobKeeper: has a JobStore do what a Dispatcher wants kept, off the Dispatcher's thread."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from flinkpy.actors.job_store import ArchivedJob, Inheritance, JobStore, RecoveredJob
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.core.errors import RpcError
from flinkpy.core.futures import Future
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import JobState
from flinkpy.core.options.checkpointing import CheckpointSettings
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.checkpointing.completed_checkpoint_store import outlives_job
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.stores_of_locations import file_store_of

LOG = engine_logger(__name__)


class JobKeeper:
    """All calls come from the endpoint's main thread. Without an ``inheritance`` nothing is kept.
    ``archive`` blocks."""

    # how long another leader may go unnoticed while nothing is written
    CONFIRM_EVERY = timedelta(seconds=10)

    def __init__(
        self,
        endpoint: RpcEndpoint,
        inheritance: Inheritance | None,
        file_stores: Callable[[str], FileStore] = file_store_of,
        archive: Callable[[ArchivedJob], None] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._inheritance = inheritance
        self._file_stores = file_stores
        self._store = None if inheritance is None else inheritance.store
        self._archive = archive
        self._adding: dict[JobId, Future[None]] = {}

    # -- leading -----------------------------------------------------------------------------------

    def start(self) -> tuple[list[ArchivedJob], list[RecoveredJob]]:
        """Returns the jobs of earlier Dispatchers: those that have ended, in this order, and the
        others."""
        if self._inheritance is None:
            return [], []
        for job_graph, state in self._inheritance.unclean:
            self._in_background(
                partial(_clean_up, job_graph, state, self._inheritance.store, self._file_stores)
            )
        self._confirm_later()
        ended = sorted(self._inheritance.ended, key=lambda each: each.details.overview.end_ms or 0)
        return ended, list(self._inheritance.running)

    def _confirm_later(self) -> None:
        """If another JobManager leads, the store tells who must know."""

        def confirm() -> None:
            assert self._store is not None
            self._confirm_later()
            self._in_background(self._store.confirm)

        self._endpoint.schedule_run_async(self.CONFIRM_EVERY.total_seconds(), confirm)

    def close_for_good(self) -> Future[None]:
        """The cluster ends. Fails if something could not be deleted."""
        return (
            Future.completed(None)
            if self._store is None
            else self._in_background(self._store.close_for_good)
        )

    # -- jobs --------------------------------------------------------------------------------------

    def add(self, job_graph: JobGraph) -> Future[None]:
        """Completes when the job is kept. Fails with an RpcError if it cannot be."""
        if self._store is None:
            return Future.completed(None)
        job_id = job_graph.job_id
        adding = self._adding.get(job_id)
        if adding is None:
            adding = self._adding[job_id] = self._in_background(
                partial(_add, job_graph, self._store)
            )
            adding.add_done_callback(lambda _: self._adding.__delitem__(job_id))
        return adding

    @property
    def is_adding(self) -> bool:
        """Whether a job is being written into the store."""
        return bool(self._adding)

    def cancel(self, job_id: JobId) -> Future[None]:
        """Completes when it is kept that the job is cancelled. Fails with an RpcError if it cannot
        be."""
        return (
            Future.completed(None)
            if self._store is None
            else self._in_background(partial(_cancel, job_id, self._store))
        )

    def archive(self, job: ArchivedJob) -> Future[None]:
        """Completes when the ended job is archived, or cannot be, or is not to be."""
        archive = self._archive
        return (
            Future.completed(None)
            if archive is None
            else self._in_background(lambda: _archive_or_warn(archive, job))
        )

    def cleaned(self, job_id: JobId) -> None:
        """The job has ended, and its files are gone."""
        if self._store is not None:
            self._in_background(partial(self._store.cleaned, job_id))

    def forget(self, job_id: JobId) -> None:
        """Nobody will ask for this job any more."""
        if self._store is not None:
            self._in_background(partial(self._store.forget, job_id))

    def _in_background(self, action: Callable[[], None]) -> Future[None]:
        return self._endpoint.service.run_in_background(self._endpoint, action)

    def __repr__(self) -> str:
        return f"<JobKeeper of {self._store!r}>"


# -- in the background -----------------------------------------------------------------------------


def _add(job_graph: JobGraph, store: JobStore) -> None:
    try:
        store.add(job_graph)
    except OSError as error:
        raise RpcError(
            f"job {job_graph.name!r} was not accepted: it cannot be kept for the case that "
            f"the JobManager dies ({error})"
        ) from error


def _archive_or_warn(archive: Callable[[ArchivedJob], None], job: ArchivedJob) -> None:
    try:
        archive(job)
    except (
        Exception
    ) as error:  # what a store or an answer raises: the job's end does not hang on its archive
        LOG.warning(
            "job %s (%s) is not archived: %s: %s",
            job.result.name,
            job.result.job_id,
            type(error).__name__,
            error,
        )


def _cancel(job_id: JobId, store: JobStore) -> None:
    try:
        store.cancel(job_id)
    except OSError as error:
        raise RpcError(
            f"job {job_id} was not cancelled: that cannot be kept for the case that the "
            f"JobManager dies ({error})"
        ) from error


def _clean_up(
    job_graph: JobGraph, state: JobState, store: JobStore, file_stores: Callable[[str], FileStore]
) -> None:
    """Deletes what a job has left that ended in this state, as its JobMaster died before it could.
    What fails here stays for the next term."""
    settings = CheckpointSettings.of(job_graph.configuration)
    storage = CheckpointStorage.of(job_graph.configuration, job_graph.job_id, file_stores)
    kept = (
        store.counting(job_graph.job_id, storage.complete())[-settings.retained :]
        if outlives_job(settings.retention, state)
        else ()
    )
    shared = frozenset[str]().union(*(checkpoint.shared_files() for checkpoint in kept))
    storage.discard_others([checkpoint.checkpoint_id for checkpoint in kept], shared)
    store.cleaned(job_graph.job_id)
