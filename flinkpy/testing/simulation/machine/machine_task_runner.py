"""The real runner of a TaskExecutor on a simulated machine: real tasks, chains, operators, state,
gates, writers, credits and connections."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from flinkpy.actors.rpc.simulated.simulated_service import SimulatedRpcService
from flinkpy.core.errors import EngineError
from flinkpy.core.ids import ExecutionAttemptId, ResourceId
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.graph.deployment import TaskDeploymentDescriptor, TaskExecutionState
from flinkpy.runtime.runner_port import TaskReporter
from flinkpy.runtime.task_messages import MessageFromTask
from flinkpy.runtime.task_runner import SlotTaskRunner
from flinkpy.scheduler.execution_model import TERMINAL
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.local_backup import LocalBackup
from flinkpy.testing.simulation.machine.data_network import DataNetwork
from flinkpy.testing.simulation.machine.simulated_disk import SimulatedDisk
from flinkpy.testing.simulation.machine.simulated_machine import SimulatedLoops, simulated_machine

SECRET = b"the secret of the simulated cluster"
# causes that are no bug of the engine
OUTSIDE = (
    "OSError:",
    "FileNotFoundError:",
    "FileExistsError:",
    "StorageCrash:",
    "ConnectionResetError:",
)


@dataclass
class RealMachines:
    """Makes runners for a simulated cluster. ``on_bug`` gets each error of a task that only a bug
    explains; ``on_submit`` each task that comes; ``store_steps`` says how many steps the cluster's
    store has made; ``disk_of`` gives a process its disk. ``backups`` are all that were made."""

    data: DataNetwork
    config: NetworkConfig
    on_bug: Callable[[BaseException], None]
    on_submit: Callable[[TaskDeploymentDescriptor], None]
    store_steps: Callable[[], int]
    disk_of: Callable[[str], SimulatedDisk]
    backups: list[LocalBackup] = field(default_factory=list)

    def runner_of(
        self, process: SimulatedRpcService, stores: Callable[[str], FileStore]
    ) -> MachineTaskRunner:
        runner = MachineTaskRunner(self, process, stores)
        runner.start()
        return runner


class MachineTaskRunner(SlotTaskRunner):
    """Implements ``flinkpy.testing.simulation.watched_runner.WatchedRunner``."""

    def __init__(
        self,
        machines: RealMachines,
        process: SimulatedRpcService,
        stores: Callable[[str], FileStore],
    ) -> None:
        self._machines, self._process = machines, process
        self._loops = SimulatedLoops(process, machines.data.faults)
        self._slots: dict[ExecutionAttemptId, int] = {}
        self._disk = machines.disk_of(process.process)
        super().__init__(
            machines.config,
            SECRET,
            ResourceId(process.process),
            process.network.clock,
            machine=simulated_machine(
                process, machines.data, self._loops, stores, machines.store_steps, self._disk
            ),
        )

    def submit(
        self, slot_index: int, descriptor: TaskDeploymentDescriptor, reporter: TaskReporter
    ) -> None:
        attempt_id = descriptor.attempt_id
        if attempt_id in self._slots:
            raise EngineError(f"{attempt_id} was submitted twice")
        self._machines.on_submit(descriptor)
        self._slots[attempt_id] = slot_index
        super().submit(
            slot_index, descriptor, _Listener(reporter, self._ended, self._machines.on_bug)
        )
        backup = self._backups.of_job(attempt_id.job_id, descriptor.configuration)
        if backup is not None and backup not in self._machines.backups:
            self._machines.backups.append(backup)

    def _ended(self, attempt_id: ExecutionAttemptId) -> None:
        self._slots.pop(attempt_id, None)

    # -- inspection --------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """Does nothing: what belongs to no task is seen at the end."""

    def tasks_in_slots(self) -> dict[ExecutionAttemptId, int]:
        return dict(self._slots)

    def keeps(self, attempt_id: ExecutionAttemptId) -> bool:
        return attempt_id in self._slots

    def lost_results(self, kept: Collection[ExecutionAttemptId]) -> set[ExecutionAttemptId]:
        return set()

    def held(self) -> str | None:
        if any(loop.timers for loop in self._loops.made):
            return f"timers in {self._loops.made}"
        if self._disk.files:
            return f"local backups {sorted(self._disk.files)}"
        lonely = [
            stream
            for stream in self._machines.data.streams_of(self._process)
            if stream.peer is None or stream.peer.is_closed
        ]
        return f"connections that lead nowhere: {lonely}" if lonely else None

    def process_gone(self) -> None:
        self._machines.data.process_gone(self._process)


class _Listener:
    """A reporter that looks at what goes by."""

    def __init__(
        self,
        reporter: TaskReporter,
        on_end: Callable[[ExecutionAttemptId], None],
        on_bug: Callable[[BaseException], None],
    ) -> None:
        self._reporter = reporter
        self._on_end = on_end
        self._on_bug = on_bug

    def state_changed(self, state: TaskExecutionState) -> None:
        if state.state in TERMINAL:
            self._on_end(state.attempt_id)
        if (
            isinstance(state.error, EngineError)
            and not str(state.error).startswith(OUTSIDE)
            and "was stopped" not in str(state.error)
        ):
            self._on_bug(state.error)
        self._reporter.state_changed(state)

    def send_message(self, attempt_id: ExecutionAttemptId, message: MessageFromTask) -> None:
        self._reporter.send_message(attempt_id, message)
