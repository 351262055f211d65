"""The machine of one simulated process, and its thread for files: a single lane, so that a seed
decides in what order they are written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from flinkpy.actors.rpc.simulated.simulated_service import SimulatedRpcService
from flinkpy.core.clock import Clock
from flinkpy.runtime.checkpointing.state_io import FileLane
from flinkpy.runtime.loop.loop_port import Loop
from flinkpy.runtime.machine import Machine
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.testing.simulation.machine.data_faults import DataFaults
from flinkpy.testing.simulation.machine.data_network import DataNetwork
from flinkpy.testing.simulation.machine.simulated_disk import SimulatedDisk
from flinkpy.testing.simulation.machine.simulated_loop import SimulatedLoop


class SimulatedFileThread:
    """Implements ``flinkpy.runtime.checkpointing.state_io.FileThreads`` with one lane for all: each
    action is an event, which may come late. One that used files keeps the thread busy for a while;
    ``steps`` says how many steps the store has made."""

    def __init__(
        self, process: SimulatedRpcService, faults: DataFaults, steps: Callable[[], int]
    ) -> None:
        self._process = process
        self._network = process.network
        self._faults = faults
        self._steps = steps
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_busy = self._stopped = False

    def lane(self) -> FileLane:
        return self

    def run(self, action: Callable[[], None]) -> None:
        if not self._stopped:
            self._waiting.append(action)
            self._go_on()

    def _go_on(self) -> None:
        if self._waiting and not self._is_busy:
            self._is_busy = True
            hangs = self._faults.strike(
                self._faults.hangs, self._network.random.random(), self._network.now
            )
            self._later(self._faults.hang_s if hangs else self._faults.turn_s, self._act)

    def _act(self) -> None:
        if self._stopped:
            return
        before = self._steps()
        self._waiting.popleft()()
        self._later(self._faults.file_s if self._steps() != before else 0.0, self._acted)

    def _acted(self) -> None:
        self._is_busy = False
        self._go_on()

    def _later(self, at_most_s: float, action: Callable[[], None]) -> None:
        self._network.schedule(
            at_most_s * self._network.random.random(),
            action,
            f"{self._process.process} files",
            self._process,
        )

    def stop(self, last: Callable[[], None] = lambda: None) -> None:
        self._stopped = True
        self._waiting.clear()
        last()


class SimulatedLoops:
    """The loops of one process."""

    def __init__(self, process: SimulatedRpcService, faults: DataFaults) -> None:
        self._process, self._faults = process, faults
        self.made: list[SimulatedLoop] = []

    def make(self, name: str, clock: Clock) -> Loop:
        loop = SimulatedLoop(name, self._process, self._faults)
        self.made.append(loop)
        return loop


def simulated_machine(
    process: SimulatedRpcService,
    data: DataNetwork,
    loops: SimulatedLoops,
    stores: Callable[[str], FileStore],
    steps: Callable[[], int],
    disk: SimulatedDisk,
) -> Machine:
    """A machine for the TaskExecutor of that process."""
    return Machine(
        loops.make,
        lambda name, slots: SimulatedFileThread(process, data.faults, steps),
        data.transport_of(process),
        stores,
        disk.backup_folder,
        has_task_threads=False,
        measure_memory=_nothing_measured,
    )


def _nothing_measured() -> int:
    """All simulated processes are one."""
    return 0
