"""What must hold of checkpoints, seen from outside: what sinks have committed, what was complete, what new attempts start
from, what files stay."""

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
from flinkpy.state.checkpoints.locations import join
from flinkpy.state.checkpoints.manifest import Manifest
from flinkpy.state.checkpoints.state_reader import own_files
from flinkpy.state.checkpoints.stored_checkpoints import METADATA
from flinkpy.testing.simulation.cluster_files import ClusterFiles
from flinkpy.testing.simulation.data_plane import Record
from flinkpy.testing.simulation.simulated_jobs import RECORDS_PER_SPLIT, splits_of


class CheckpointOracle:
    """One for the cluster. ``faults_last``: tasks may still fail for no reason. ``runs_tasks`` says whether some TaskExecutor
    still runs tasks of a job: one that was cut off when its job ended."""

    def __init__(self, files: ClusterFiles, runs_tasks: Callable[[JobId], bool]) -> None:
        self._files, self._runs_tasks = files, runs_tasks
        self._outlived: set[JobId] = set()  # jobs that had ended before all of their tasks had
        self.faults_last = True
        self._masters: dict[JobId, JobMaster] = {}
        self._complete: defaultdict[JobId, dict[int, CompletedCheckpoint]] = defaultdict(dict)
        self._committed: dict[str, list[Record]] = {}
        self._by_sink: defaultdict[tuple[JobId, JobVertexId], list[Record]] = defaultdict(list)
        self.problem: EngineError | None = None  # found where an error would be taken for one of the JobMaster
        self.restored = 0  # attempts that started from a checkpoint
        self.late_files = 0  # that appeared after their job's end, and stay

    @property
    def completed(self) -> int:
        """How many checkpoints were complete."""
        return sum(map(len, self._complete.values()))

    # -- while it runs -----------------------------------------------------------------------------------------------

    def job_begins(self, job_id: JobId, master: JobMaster) -> None:
        self._masters[job_id] = master

    def check_master(self, master: JobMaster) -> None:
        """After each of its events: what is complete is stored, is newer than all before, and never changes."""
        if self.problem is not None:
            raise self.problem
        seen = self._complete[master.job_id]
        for checkpoint in master.scheduler.checkpoints.completed.own:
            known = seen.get(checkpoint.checkpoint_id)
            if known is checkpoint:
                continue
            if known is not None:
                raise EngineError(f"a checkpoint of {master.job_id} is complete twice: {known} and {checkpoint}")
            if seen and checkpoint.checkpoint_id < max(seen):
                raise EngineError(f"{checkpoint} of {master.job_id} is complete after {max(seen)}")
            self._check_stored(checkpoint)
            seen[checkpoint.checkpoint_id] = checkpoint

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
            raise EngineError(f"checkpoint {checkpoint.checkpoint_id} is complete without {missing}")
        stored = Manifest.from_bytes(self._files.files[manifest], manifest).checkpoint
        if stored != replace(checkpoint, location=None):
            raise EngineError(f"checkpoint {checkpoint} is stored as {stored}")

    def heard_complete(self, attempt_id: ExecutionAttemptId, checkpoint_id: int) -> None:
        """A task was told."""
        master = self._masters[attempt_id.job_id]
        self.check_master(master)
        seen = self._complete[attempt_id.job_id]  # without those that a newer one has replaced within the same event
        if checkpoint_id not in seen and checkpoint_id > max(seen, default=0) and not master.status.has_ended:
            raise EngineError(f"{attempt_id} heard that checkpoint {checkpoint_id} is complete, and it is not")

    def task_comes(self, descriptor: TaskDeploymentDescriptor) -> None:
        """An attempt that counts starts from the newest checkpoint."""
        attempt_id, restore = descriptor.attempt_id, descriptor.restore
        master = self._masters.get(attempt_id.job_id)
        if restore is not None:
            self.restored += 1
        if master is None or master.status.has_ended or master.scheduler.location_of(attempt_id) is None:
            return
        newest = max(self._complete[attempt_id.job_id], default=None)
        if newest != (None if restore is None else restore.checkpoint_id):
            raise EngineError(f"{attempt_id} starts from {restore}, the newest checkpoint is {newest}")

    def commit(self, attempt_id: ExecutionAttemptId, name: str, records: Sequence[Record]) -> None:
        """A sink commits. It may do so again: the same under the same name."""
        known = self._committed.get(name)
        if known is None:
            self._committed[name] = list(records)
            self._by_sink[attempt_id.job_id, attempt_id.vertex_id].extend(records)
        elif known != list(records):
            raise EngineError(f"{attempt_id} commits {records} as {name!r}, which was {known}")

    # -- the end -----------------------------------------------------------------------------------------------------

    def job_ended(self, graph: JobGraph, state: JobState) -> None:
        """Its JobMaster has ended: of its files those remain that are to be retained, and those that the store did not
        delete."""
        self._files.job_ended(graph.job_id)
        if self._runs_tasks(graph.job_id):
            self._outlived.add(graph.job_id)
        kept = self._kept(graph, state)
        strange = [
            file
            for file in self._files.left_of(graph.job_id)
            if not any(file.startswith(f"{folder}/") for folder in kept)
        ]
        if strange and self.problem is None:
            self.problem = EngineError(f"job {graph.job_id} is {state.name} and leaves {strange}")

    def _kept(self, graph: JobGraph, state: JobState) -> list[str]:
        """The folders of checkpoints that outlive the job."""
        settings = CheckpointSettings.of(graph.configuration)
        own = self._masters[graph.job_id].scheduler.checkpoints.completed.own
        if not outlives_job(settings.retention, state):
            return []
        newest = sorted(self._complete[graph.job_id])[-settings.retained :]
        if [checkpoint.checkpoint_id for checkpoint in own] != newest:
            self.problem = EngineError(f"job {graph.job_id} retains {own}, its newest checkpoints are {newest}")
        return [checkpoint.location for checkpoint in own if checkpoint.location is not None]

    def check_end(self, graph: JobGraph, state: JobState) -> None:
        """What sinks have committed, when all is over."""
        late = self._files.late_of(graph.job_id)
        self.late_files += len(late)
        if late and graph.job_id not in self._outlived:
            raise EngineError(f"after the end of job {graph.job_id} and of all its tasks, these appeared: {late}")
        for sink in [vertex for vertex in graph.vertices if not vertex.outputs]:
            committed = self._by_sink[graph.job_id, sink.id]
            found, expected = Counter(record.key for record in committed), expected_at(graph, sink.id)
            is_whole = state is JobState.FINISHED
            wrong = (found - expected) + (expected - found if is_whole else Counter())
            if wrong:
                names = [name for name, each in self._committed.items() if any(record.key in wrong for record in each)]
                raise EngineError(
                    f"job {graph.job_id} is {state.name}; {sink.id} has committed these too often, or not at"
                    f" all: {wrong} ({names})"
                )
            for who, counts in _numbers(committed).items():
                if len(set(counts.values())) > 1 or (is_whole and set(counts) != set(range(1, len(counts) + 1))):
                    raise EngineError(f"job {graph.job_id}: {who} has counted wrongly: {counts}")


def _numbers(records: Sequence[Record]) -> dict[str, Counter[int]]:
    """As which of all that it has seen each subtask passed them on: how often each number is there."""
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
