"""What must hold of checkpoints, seen from outside: what sinks have committed, what was complete,
what new attempts start from, what files stay."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from flinkpy.actors.job_master.job_master import JobMaster
from flinkpy.core.errors import EngineError
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId
from flinkpy.core.lifecycles import JobState
from flinkpy.core.options.checkpointing import CheckpointSettings
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.graph.deployment import TaskDeploymentDescriptor
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.checkpointing.completed_checkpoint_store import outlives_job
from flinkpy.state.checkpoints.locations import folder_of, join, shared_folder
from flinkpy.state.checkpoints.manifest import Manifest
from flinkpy.state.checkpoints.state_reader import own_files
from flinkpy.state.checkpoints.stored_checkpoints import METADATA
from flinkpy.testing.simulation.cluster_files import SAVEPOINTS, ClusterFiles
from flinkpy.testing.simulation.data_plane import Record
from flinkpy.testing.simulation.simulated_jobs import RECORDS_PER_SPLIT, splits_of


class CheckpointOracle:
    """One for the cluster. ``faults_last``: tasks may still fail for no reason. ``runs_tasks`` says
    whether some TaskExecutor still runs tasks of a job: one that was cut off when its job ended."""

    def __init__(self, files: ClusterFiles, runs_tasks: Callable[[JobId], bool]) -> None:
        self._files, self._runs_tasks = files, runs_tasks
        self._ended: dict[JobId, bool] = {}  # and whether some of the job's tasks ran on then
        self.faults_last = True
        self._masters: dict[JobId, JobMaster] = {}
        # Jobs whose new JobMaster has not read its checkpoints yet. It may find one that another
        # gave up, and could not delete: that is whole, too.
        self._taking_over: set[JobId] = set()
        self._complete: defaultdict[JobId, dict[int, CompletedCheckpoint]] = defaultdict(dict)
        self._commits = _Commits()
        # savepoints that the job goes back to
        self._foreign: defaultdict[JobId, set[int]] = defaultdict(set)
        self.savepoints: set[str] = set()  # that users were told of
        self._reasons: list[str] = []  # why there is none
        # by the location of a checkpoint: its files that others may have, too
        self._shared: dict[str, tuple[str, ...]] = {}
        # found where an error would be taken for one of the JobMaster
        self.problem: EngineError | None = None
        self.restored = 0  # attempts that started from a checkpoint
        self.late_files = 0  # that appeared after their job's end, and stay

    @property
    def completed(self) -> int:
        """How many checkpoints were complete."""
        return sum(map(len, self._complete.values()))

    @property
    def shared_files(self) -> int:
        """How many files complete checkpoints had that others may have, too."""
        return len({file for files in self._shared.values() for file in files})

    # -- while it runs -----------------------------------------------------------------------------

    def job_begins(self, job_id: JobId, master: JobMaster) -> None:
        if job_id in self._masters:
            self._taking_over.add(job_id)
        self._masters[job_id] = master

    def check_master(self, master: JobMaster) -> None:
        """After each of its events: what is complete is stored, is newer than all before, and never
        changes."""
        if self.problem is not None:
            raise self.problem
        seen = self._complete[master.job_id]
        latest = master.scheduler.checkpoints.completed.latest
        if (
            latest is not None
            and latest.location is not None
            and latest.location.startswith(SAVEPOINTS)
        ):
            self._foreign[master.job_id].add(latest.checkpoint_id)
        for checkpoint in master.scheduler.checkpoints.completed.own:
            known = seen.get(checkpoint.checkpoint_id)
            # the same again, when a JobMaster has taken the job over
            if known is checkpoint or known == checkpoint:
                seen[checkpoint.checkpoint_id] = checkpoint
                continue
            if known is not None:
                raise EngineError(
                    f"a checkpoint of {master.job_id} is complete twice: {known} and {checkpoint}"
                )
            if (
                seen
                and checkpoint.checkpoint_id < max(seen)
                and master.job_id not in self._taking_over
            ):
                raise EngineError(f"{checkpoint} of {master.job_id} is complete after {max(seen)}")
            self._check_stored(checkpoint)
            seen[checkpoint.checkpoint_id] = checkpoint
        if latest is not None:
            self._taking_over.discard(master.job_id)
        for checkpoint in master.scheduler.checkpoints.completed.own:
            missing = [
                file for file in self._shared_files(checkpoint) if file not in self._files.files
            ]
            if missing:
                raise EngineError(
                    f"checkpoint {checkpoint.checkpoint_id} of {master.job_id} lacks files "
                    f"that others have, too: {missing}"
                )

    def _shared_files(self, checkpoint: CompletedCheckpoint) -> tuple[str, ...]:
        location = checkpoint.location
        if location is None:
            return ()
        if location not in self._shared:
            folder = shared_folder(folder_of(location))
            self._shared[location] = tuple(
                join(folder, name) for name in sorted(checkpoint.shared_files())
            )
        return self._shared[location]

    def _check_stored(self, checkpoint: CompletedCheckpoint) -> None:
        if checkpoint.location is None:
            return
        manifest = join(checkpoint.location, METADATA)
        missing = [
            file
            for file in (manifest, *own_files(checkpoint.location, checkpoint.handles()))
            if file not in self._files.files
        ]
        if missing:
            raise EngineError(
                f"checkpoint {checkpoint.checkpoint_id} is complete without {missing}"
            )
        stored = Manifest.from_bytes(self._files.files[manifest], manifest).checkpoint
        if stored != replace(checkpoint, location=None):
            raise EngineError(f"checkpoint {checkpoint} is stored as {stored}")

    def heard_complete(self, attempt_id: ExecutionAttemptId, checkpoint_id: int) -> None:
        """A task was told."""
        master = self._masters[attempt_id.job_id]
        self.check_master(master)
        # Without those that a newer one has replaced within the same event
        seen = self._complete[attempt_id.job_id].keys() | self._foreign[attempt_id.job_id]
        if (
            checkpoint_id not in seen
            and checkpoint_id > max(seen, default=0)
            and not master.status.has_ended
        ):
            raise EngineError(
                f"{attempt_id} heard that checkpoint {checkpoint_id} is complete, and it is not"
            )

    def task_comes(self, descriptor: TaskDeploymentDescriptor) -> None:
        """An attempt that counts starts from the newest checkpoint."""
        attempt_id, restore = descriptor.attempt_id, descriptor.restore
        master = self._masters.get(attempt_id.job_id)
        if restore is not None:
            self.restored += 1
        if (
            master is None
            or master.status.has_ended
            or master.scheduler.location_of(attempt_id) is None
        ):
            return
        newest = max(
            self._complete[attempt_id.job_id].keys() | self._foreign[attempt_id.job_id],
            default=None,
        )
        if newest != (None if restore is None else restore.checkpoint_id):
            raise EngineError(
                f"{attempt_id} starts from {restore}, the newest checkpoint is {newest}"
            )
        found = self._files.newest_checkpoint(attempt_id.job_id)
        if found > (newest or 0):
            raise EngineError(
                f"{attempt_id} starts from {restore}, and whoever takes the job over would "
                f"find {found}"
            )

    def commit(self, attempt_id: ExecutionAttemptId, name: str, records: Sequence[Record]) -> None:
        """A sink commits. It may do so again: the same under the same name."""
        self._commits.add(attempt_id, name, records)

    # -- savepoints --------------------------------------------------------------------------------

    def told_of_savepoint(self, location: str) -> None:
        """A user was told: it is there, and stays."""
        self.savepoints.add(location)

    def savepoint_was_claimed(self, location: str) -> None:
        """A job that took it over has finished: it is gone."""
        self.savepoints.discard(location)

    def told_of_no_savepoint(self, reason: str) -> None:
        """A user was told why."""
        self._reasons.append(reason)

    def job_goes_on(self, stopped: JobId, next_job: JobId) -> None:
        """What the sinks of both commit together is what one undisturbed job would have
        committed."""
        self._commits.job_goes_on(stopped, next_job)

    def check_savepoints(self) -> None:
        """Those that users were told of are whole, and no others are there."""
        for location in sorted(self.savepoints):
            manifest = join(location, METADATA)
            checkpoint = Manifest.from_bytes(self._files.files[manifest], manifest).checkpoint
            missing = [
                file
                for file in own_files(location, checkpoint.handles())
                if file not in self._files.files
            ]
            if missing:
                raise EngineError(f"the savepoint {location} lacks {missing}")
        named = {
            each
            for each in self._files.savepoints_left()
            if any(each in reason for reason in self._reasons)
        }
        nameless = self._files.savepoints_left() - self.savepoints - named
        if nameless:
            raise EngineError(f"savepoints that nobody was told of: {sorted(nameless)}")

    # -- the end -----------------------------------------------------------------------------------

    def job_ended(self, graph: JobGraph, state: JobState) -> None:
        """Its JobMaster has ended, or died when the end was recorded: of its files those remain
        that are to be retained, and those that the store did not delete."""
        self._files.job_ended(graph.job_id)
        outlived = self._ended.get(graph.job_id, False)
        self._ended[graph.job_id] = outlived or self._runs_tasks(graph.job_id)
        kept = self._kept(graph, state)
        strange = [
            file
            for file in self._files.left_of(graph.job_id)
            if not any(file == each or file.startswith(f"{each}/") for each in kept)
        ]
        if strange and self.problem is None:
            self.problem = EngineError(f"job {graph.job_id} is {state.name} and leaves {strange}")

    def _kept(self, graph: JobGraph, state: JobState) -> list[str]:
        """The folders of checkpoints that outlive the job, and the files that these share."""
        settings = CheckpointSettings.of(graph.configuration)
        own = self._masters[graph.job_id].scheduler.checkpoints.completed.own
        unused = self._masters[graph.job_id].scheduler.checkpoints.completed.shared.files - {
            file for checkpoint in own for file in checkpoint.shared_files()
        }
        if unused:
            self.problem = EngineError(
                f"job {graph.job_id} has ended, and keeps files that no checkpoint uses: "
                f"{sorted(unused)}"
            )
        if not outlives_job(settings.retention, state):
            return []
        complete = self._complete[graph.job_id]
        newest = sorted(complete)[-settings.retained :]
        if newest and _is_claimed(complete[newest[-1]], graph.job_id):
            newest = []  # it stays, and is not the job's
        if [checkpoint.checkpoint_id for checkpoint in own] != newest:
            self.problem = EngineError(
                f"job {graph.job_id} retains {own}, its newest checkpoints are {newest}"
            )
        shared = [file for checkpoint in own for file in self._shared_files(checkpoint)]
        return [
            *(checkpoint.location for checkpoint in own if checkpoint.location is not None),
            *shared,
        ]

    def check_files(self, job_id: JobId) -> None:
        """No file appears after the end of a job and of all its tasks."""
        late = self._files.late_of(job_id)
        self.late_files += len(late)
        if late and not self._ended.get(job_id, False):
            raise EngineError(
                f"after the end of job {job_id} and of all its tasks, these appeared: {late}"
            )

    def check_end(self, graph: JobGraph, state: JobState) -> None:
        """What sinks have committed, when all is over."""
        if graph.job_id not in self._ended:
            self.job_ended(graph, state)
            if self.problem is not None:
                raise self.problem
        self.check_files(graph.job_id)
        self._commits.check_end(graph, state)


class _Commits:
    """What sinks have committed, by name and by sink. A job that goes on from another's savepoint
    commits for the first of them."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[Record]] = {}
        self._by_sink: defaultdict[tuple[JobId, JobVertexId], list[Record]] = defaultdict(list)
        self._first: dict[JobId, JobId] = {}

    def add(self, attempt_id: ExecutionAttemptId, name: str, records: Sequence[Record]) -> None:
        known = self._by_name.get(name)
        if known is None:
            self._by_name[name] = list(records)
            self._by_sink[self._first_of(attempt_id.job_id), attempt_id.vertex_id].extend(records)
        elif known != list(records):
            raise EngineError(f"{attempt_id} commits {records} as {name!r}, which was {known}")

    def job_goes_on(self, stopped: JobId, next_job: JobId) -> None:
        self._first[next_job] = self._first_of(stopped)

    def _first_of(self, job_id: JobId) -> JobId:
        return self._first.get(job_id, job_id)

    def check_end(self, graph: JobGraph, state: JobState) -> None:
        """Each sink has committed what an undisturbed job would have."""
        for sink in [vertex for vertex in graph.vertices if not vertex.outputs]:
            committed = self._by_sink[self._first_of(graph.job_id), sink.id]
            found = Counter(record.key for record in committed)
            expected = expected_at(graph, sink.id)
            is_whole = state is JobState.FINISHED
            wrong = (found - expected) + (expected - found if is_whole else Counter())
            if wrong:
                names = [
                    name
                    for name, each in self._by_name.items()
                    if any(record.key in wrong for record in each)
                ]
                raise EngineError(
                    f"job {graph.job_id} is {state.name}; {sink.id} has committed these "
                    "too often, or not at"
                    f" all: {wrong} ({names})"
                )
            for who, counts in _numbers(committed).items():
                if len(set(counts.values())) > 1 or (
                    is_whole and set(counts) != set(range(1, len(counts) + 1))
                ):
                    raise EngineError(f"job {graph.job_id}: {who} has counted wrongly: {counts}")


def _is_claimed(checkpoint: CompletedCheckpoint, job_id: JobId) -> bool:
    """Whether another job took the checkpoint."""
    return checkpoint.location is not None and job_id not in checkpoint.location


def _numbers(records: Sequence[Record]) -> dict[str, Counter[int]]:
    """As which of all that it has seen each subtask passed them on: how often each number is
    there."""
    found: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for record in records:
        for who, number in record.hops[:-1]:
            found[who][number] += 1
    return found


def expected_at(graph: JobGraph, sink: JobVertexId) -> Counter[str]:
    """Every record of every source, once for each way from there to the sink."""
    expected: Counter[str] = Counter()
    for vertex in graph.vertices:
        keys = [
            f"{vertex.id}/split-{number}/{record}"
            for number in range(splits_of(vertex))
            for record in range(RECORDS_PER_SPLIT)
        ]
        ways = sum(1 for _ in _ways(graph, vertex.id, sink)) if keys else 0
        expected.update({key: ways for key in keys if ways})
    return expected


def _ways(graph: JobGraph, start: JobVertexId, end: JobVertexId) -> Iterator[None]:
    if start == end:
        yield
    for vertex in graph.vertices:
        for edge in vertex.inputs:
            if edge.data_set.producer == start:
                yield from _ways(graph, vertex.id, end)
