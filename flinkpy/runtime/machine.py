"""What a TaskExecutor's runner takes from its machine: loops, threads for files, connections, and
places that keep files.

The machine is real (``Machine()``), or simulated: then loops and threads are events in virtual
time, and the rest fails as a seed decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flinkpy.core.clock import Clock
from flinkpy.network.wire.data_port import Sockets
from flinkpy.network.wire.transport import Transport
from flinkpy.runtime.checkpointing.state_io import FileThreads, StateIO
from flinkpy.runtime.loop.loop_port import Loop
from flinkpy.runtime.loop.slot_loop import SlotLoop
from flinkpy.runtime.memory.memory_watch import measure_memory
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.local_backup import BackupFolder
from flinkpy.state.checkpoints.stores_of_locations import file_store_of


@dataclass(frozen=True)
class Machine:
    """``make_loop`` gives a loop of that name, ``make_file_threads`` the threads for files of a
    TaskExecutor with so many slots, ``file_stores`` the store that a location is in,
    ``backup_folder`` a new folder of this machine for the local backups of a job with this
    configuration. ``has_task_threads``: tasks may have threads of their own. ``measure_memory``
    gives the bytes that the process has."""

    make_loop: Callable[[str, Clock], Loop] = SlotLoop
    make_file_threads: Callable[[str, int], FileThreads] = StateIO.for_slots
    transport: Transport = field(default_factory=Sockets)
    file_stores: Callable[[str], FileStore] = file_store_of
    backup_folder: Callable[[Mapping[str, Any]], BackupFolder] = BackupFolder.on_disk
    has_task_threads: bool = True
    measure_memory: Callable[[], int] = measure_memory
