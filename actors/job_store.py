"""JobStore: the jobs of a cluster, kept where the next JobManager finds them: each as it was
submitted, until it has ended; then its result.

::

    jobs/<job>/graph-<term>-<random>     a line of JSON (name) and the pickled job; kept until
                                         the job's files are gone
    jobs/<job>/cancelled-<term>-<random> nothing: somebody has cancelled the job
    jobs/<job>/stopping-<term>-<random>  a line of JSON (request, kind, target): the job stops with
                                         this savepoint, if its manifest is there
    jobs/<job>/taken-<term>-<random>     a line of JSON (checkpoint, first): the one from which
                                         the job went on in this term, 0 for none, and the number
                                         of the first one that it took in this term
    jobs/<job>/ended-<term>-<random>     a line of JSON (name, state, run time), the pickled
                                         result and details

A job's checkpoints are not named here. A checkpoint is there when its manifest is, in the job's own
folder, unless it came there too late: a JobManager that has not noticed yet that another one leads,
or a write that was under way when its process died. A savepoint is elsewhere, so that with which a
job stops is named before its manifest is written."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo
from flinkpy.actors.gateways import (
    JobDetails,
    JobMetrics,
    JobOverview,
    JobResult,
    SavepointRequest,
    SavepointStatus,
)
from flinkpy.actors.rpc.delivery.portable_errors import portable
from flinkpy.core.elements import CheckpointOptions, SnapshotType
from flinkpy.core.errors import FencingError, FlinkpyError, ProgramError, SavepointError
from flinkpy.core.ids import IdFactory, JobId
from flinkpy.core.lifecycles import JobState
from flinkpy.core.program.program_pickler import dumps_any
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.protocol import SnapshotRequested
from flinkpy.state.checkpoints.fenced_store import FencedStore, Term

LOG = engine_logger(__name__)

_FILE = re.compile(r"(graph|cancelled|stopping|taken|ended)-([0-9]{10})-[0-9a-f]+")


@dataclass(frozen=True)
class ArchivedJob:
    """A job that has ended."""

    result: JobResult
    details: JobDetails

    @property
    def metrics(self) -> JobMetrics:
        return replace(self.details.metrics or JobMetrics(), accumulators=self.result.accumulators)

    @property
    def graph(self) -> ExecutionGraphInfo:
        """All there is to tell. Raises ProgramError for a job that an older flinkpy has stored."""
        if self.details.graph is None:
            raise ProgramError(
                f"job {self.result.name!r} ended in an older flinkpy: only its state is known"
            )
        return self.details.graph

    def savepoint(self, request: SavepointRequest) -> SavepointStatus:
        """How the savepoint has gone that was asked for while the job ran. Raises SavepointError if
        none was."""
        found = next(
            (each for each in self.details.savepoints if each.trigger_id == request.trigger_id),
            None,
        )
        if found is None:
            why = "" if self.result.error is None else f": {self.result.error}"
            raise SavepointError(
                f"job {self.result.name!r} has ended: it is {self.result.state.name}{why}"
            )
        return found


@dataclass(frozen=True)
class RecoveredJob:
    """A job of an earlier term that has not ended. ``generation`` is greater for a JobMaster in a
    later term."""

    graph: JobGraph
    generation: int
    is_cancelled: bool = False


@dataclass(frozen=True)
class Inheritance:
    """What a new JobManager has of the ones before it. ``unclean`` are ended jobs whose files may
    not all be deleted."""

    store: JobStore
    term: Term
    running: tuple[RecoveredJob, ...] = ()
    ended: tuple[ArchivedJob, ...] = ()
    unclean: tuple[tuple[JobGraph, JobState], ...] = ()


class JobStore:
    """All calls block. They raise OSError when the store fails, and FencingError when another
    JobManager leads: then ``on_deposed(error)`` was called first, in the caller's thread."""

    def __init__(
        self,
        store: FencedStore,
        term: Term,
        on_deposed: Callable[[FencingError], None] = lambda error: None,
        ids: IdFactory | None = None,
    ) -> None:
        self._store = store
        self._term = term
        self._on_deposed = on_deposed
        self._ids = ids or IdFactory()

    def confirm(self) -> None:
        """Returns if this JobManager still leads: what was written before counts."""
        self._fenced(self._store.confirm_term)

    def add(self, job_graph: JobGraph) -> None:
        """Keeps the job. If this fails, the next JobManager may find the job all the same."""
        name = self._new_file(job_graph.job_id, "graph")
        data = _with_head(dumps_any(job_graph), name=job_graph.name)
        try:
            self._fenced(lambda: self._store.write(name, data))
        except OSError:
            self._store.delete(name)
            raise

    def cancel(self, job_id: JobId) -> None:
        """The job is cancelled: if it goes on in a later term, then only to its end."""
        self._fenced(lambda: self._store.write(self._new_file(job_id, "cancelled"), b""))

    def stop(self, job_id: JobId, request: SnapshotRequested) -> None:
        """The job stops with the savepoint in the target of this request, as soon as its manifest
        is there."""
        options = request.options
        data = _with_head(
            b"", request=request.request_id, kind=options.snapshot_type.name, target=options.target
        )
        self._fenced(lambda: self._store.write(self._new_file(job_id, "stopping"), data))

    def stopping(self, job_id: JobId) -> SnapshotRequested | None:
        """With which savepoint the job stops, if that is complete."""
        found = (self._store.read(name) for name in reversed(self._files(job_id, "stopping")))
        head = next((_head(data) for data in found if data is not None), None)
        return (
            None
            if head is None
            else SnapshotRequested(
                head["request"], CheckpointOptions(SnapshotType[head["kind"]], head["target"])
            )
        )

    def go_on(self, job_id: JobId) -> None:
        """There is no such savepoint, and never will be: the job does not stop."""
        for name in self._files(job_id, "stopping"):
            self._store.delete(name)

    def take(self, job_id: JobId, checkpoint_id: int, first: int) -> None:
        """In this term the job goes on from this checkpoint, or anew (0), and gives its own numbers
        from ``first`` on. What appears between the two from now on counts for nobody."""
        data = _with_head(b"", checkpoint=checkpoint_id, first=first)
        self._fenced(lambda: self._store.write(self._new_file(job_id, "taken"), data))

    def counting(
        self, job_id: JobId, found: Iterable[CompletedCheckpoint]
    ) -> tuple[CompletedCheckpoint, ...]:
        """Those of a job's checkpoints that did not come too late."""
        heads = [
            _head(data)
            for name in self._files(job_id, "taken")
            if (data := self._store.read(name)) is not None
        ]
        late = [range(head["checkpoint"] + 1, head["first"]) for head in heads]
        return tuple(
            checkpoint
            for checkpoint in found
            if not any(checkpoint.checkpoint_id in numbers for numbers in late)
        )

    def end(self, job: ArchivedJob) -> None:
        """The job has ended, and never runs again. Its files are deleted after this."""
        result = job.result
        head = {"name": result.name, "state": result.state.name, "runtime_ms": result.runtime_ms}
        data = _with_head(_pickled(job), **head)
        self._fenced(lambda: self._store.write(self._new_file(result.job_id, "ended"), data))

    def cleaned(self, job_id: JobId) -> None:
        """All files of the ended job that had to be deleted are deleted."""
        for name in self._files(job_id, "graph"):
            self._store.delete(name)

    def forget(self, job_id: JobId) -> None:
        """Nobody will ask for this job any more."""
        self._store.delete_folder(f"jobs/{job_id}")

    def close_for_good(self) -> None:
        """The cluster has ended: leaves nothing behind."""
        self._fenced(self._store.confirm_term)
        self._store.delete_all()

    def recover(self) -> Inheritance:
        """The jobs that were submitted in earlier terms: those that have not ended, and the
        others."""
        running, ended, unclean = [], [], []
        for job_id in map(JobId, self._store.names("jobs")):
            graphs = {
                name: data
                for name in self._files(job_id, "graph")
                if (data := self._store.read(name)) is not None
            }
            data = next(iter(graphs.values()), None)
            graph = None if data is None else _unpickled(job_id, data)
            result = self._read_end(job_id)
            if result is not None:
                ended.append(result)
                if isinstance(graph, JobGraph):
                    unclean.append((graph, result.result.state))
            elif isinstance(graph, JobGraph):
                cancelled = bool(self._files(job_id, "cancelled"))
                running.append(
                    RecoveredJob(graph, self._term.number - min(map(_term_of, graphs)), cancelled)
                )
            elif graph is not None:
                ended.append(graph)
            # else it was being submitted when the JobManager died, and nobody was told that it runs
        return Inheritance(self, self._term, tuple(running), tuple(ended), tuple(unclean))

    def _read_end(self, job_id: JobId) -> ArchivedJob | None:
        found = (self._store.read(name) for name in self._files(job_id, "ended"))
        return next((_ended_job(job_id, data) for data in found if data is not None), None)

    # -- files -------------------------------------------------------------------------------------

    def _fenced(self, action: Callable[[], None]) -> None:
        try:
            action()
        except FencingError as error:
            self._on_deposed(error)
            raise

    def _new_file(self, job_id: JobId, kind: str) -> str:
        return f"jobs/{job_id}/{kind}-{self._term.number:010}-{self._ids.hex(8)}"

    def _files(self, job_id: JobId, kind: str) -> list[str]:
        matches = map(_FILE.fullmatch, self._store.names(f"jobs/{job_id}"))
        return [f"jobs/{job_id}/{match[0]}" for match in matches if match and match[1] == kind]

    def __repr__(self) -> str:
        return f"<JobStore of {self._store!r}>"


def _term_of(file: str) -> int:
    match = _FILE.fullmatch(file.rpartition("/")[2])
    assert match is not None
    return int(match[2])


def _pickled(job: ArchivedJob) -> bytes:
    """An error or an accumulator of the user's may not pickle: then its text stands for it, and
    accumulators are left out."""
    try:
        return dumps_any(job)
    except Exception:  # whatever a foreign __reduce__ raises
        error = None if job.result.error is None else portable(job.result.error)
        result = replace(job.result, error=error, accumulators={})
        return dumps_any(ArchivedJob(result, replace(job.details, error=error)))


def _with_head(body: bytes, **head: Any) -> bytes:
    return json.dumps(head).encode() + b"\n" + body


def _head(data: bytes) -> dict[str, Any]:
    head: dict[str, Any] = json.loads(data.partition(b"\n")[0])
    return head


def _readable_head(data: bytes) -> dict[str, Any]:
    """The same, for a file of which nothing is known; nothing if it has none."""
    try:
        return dict(_head(data))
    except (ValueError, TypeError):
        return {}


def _body(data: bytes) -> bytes:
    return data.partition(b"\n")[2]


def _unpickled(job_id: JobId, data: bytes) -> JobGraph | ArchivedJob:
    """The job; or, if it cannot be read again, that it has failed."""
    try:
        graph = pickle.loads(_body(data))
        assert isinstance(graph, JobGraph)
        return graph
    except Exception as error:  # whatever a foreign class raises
        LOG.error("job %s cannot be read again", job_id, exc_info=error)
        reason = ProgramError(
            f"the new JobManager cannot read the job again ({type(error).__name__}: {error}); "
            "submit it once more"
        )
        name = str(_readable_head(data).get("name", job_id))
        return _archived(JobResult(job_id, name, JobState.FAILED, 0, reason))


def _ended_job(job_id: JobId, data: bytes) -> ArchivedJob:
    try:
        job = pickle.loads(_body(data))
        assert isinstance(job, ArchivedJob)
        return job
    except Exception as error:
        LOG.error("the result of job %s cannot be read again", job_id, exc_info=error)
        head = _readable_head(data)
        state = JobState.__members__.get(str(head.get("state")), JobState.FAILED)
        lost = (
            FlinkpyError(f"the job's error cannot be read again ({type(error).__name__}: {error})")
            if state is JobState.FAILED
            else None
        )
        name, runtime_ms = str(head.get("name", job_id)), int(head.get("runtime_ms", 0))
        return _archived(JobResult(job_id, name, state, runtime_ms, lost))


def _archived(result: JobResult) -> ArchivedJob:
    overview = JobOverview(result.job_id, result.name, result.state, 0, result.runtime_ms)
    return ArchivedJob(result, JobDetails(overview, (), result.error))
