"""A blocking result partition. It is first written to its end, and then read any number of times,
until the JobMaster releases it.

Each subpartition is a list of wire frames. They are kept in memory within the TaskExecutor's
allowance, and beyond it in one file of the partition. So waiting records share no objects with
their producer, and can be read again after a failure. A reader decodes one batch at a time; decoded
batches travel as usual (by reference within a process, by credit between processes)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from flinkpy.core.elements import CheckpointBarrier, Element, EndOfPartition
from flinkpy.core.errors import EngineError, FlinkpyError, PartitionNotFoundError, ProgramError
from flinkpy.core.files.spill_file import SpillFile
from flinkpy.core.ids import ResultPartitionId
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.reactor import Reactor
from flinkpy.network.encoding.frames import Frame, encode_header, stored_frame
from flinkpy.network.encoding.payloads import ElementDecoder, ElementEncoder
from flinkpy.network.partition import SubpartitionReader
from flinkpy.network.partitioning.partitioners import ChannelSelector
from flinkpy.network.writer import PartitionWriter

StoredFrame = bytes | tuple[int, int]  # in memory, or (offset, length) in the file


class BatchShuffleMemory:
    """The allowance of one TaskExecutor: ``limit`` bytes of frames in memory. Beyond it, the
    partition with the most bytes spills to disk. ``lock`` is that of the data plane."""

    def __init__(
        self, limit: int, folders: Sequence[str] = (), lock: threading.RLock | None = None
    ) -> None:
        self.lock = lock or threading.RLock()
        self.limit, self.folders = limit, tuple(folders)
        self.used = 0
        self._holders: dict[BlockingPartition, int] = {}

    def charge_bytes(self, partition: BlockingPartition, count: int) -> None:
        """Counts ``count`` more bytes for the partition. Raises ResourceUnavailableError if there
        is no folder to spill to."""
        holders = self._holders
        holders[partition] = holders.get(partition, 0) + count
        self.used += count
        while self.used > self.limit and holders:
            max(holders, key=holders.__getitem__).spill_frames()

    def discharge_partition(self, partition: BlockingPartition) -> None:
        """Notes that the partition holds no bytes in memory any more."""
        self.used -= self._holders.pop(partition, 0)


class SubpartitionView:
    """One pass over one subpartition, from its beginning; a
    ``flinkpy.network.partition.ReadableSubpartition``."""

    __slots__ = (
        "_decoder",
        "_position",
        "backlog",
        "done",
        "index",
        "partition",
        "queue",
        "reader",
    )

    def __init__(self, partition: BlockingPartition, index: int) -> None:
        self.partition, self.index = partition, index
        self.queue: deque[tuple[Element, int]] = deque()
        self.backlog = 0
        self.reader: SubpartitionReader | None = None
        self.done = False
        self._decoder, self._position = ElementDecoder(), 0
        self._load()

    def release_segments(self, segments: int) -> None:
        """Called when the reader has taken a batch that held ``segments``: the next batch is
        decoded when none is left."""
        self.backlog -= segments
        if self.backlog > 0 or self.done:
            return
        reader = self.reader
        try:
            self._load()
        except FlinkpyError as error:
            self.release_subpartition()
            if reader is not None:
                reader.producer_failed(
                    error if isinstance(error, ProgramError) else lost(self.partition, error)
                )
            return
        if reader is not None:
            reader.data_available()

    def barrier_taken(self, checkpoint_id: int) -> None:
        """Does nothing, because there are no barriers."""

    def release_subpartition(self) -> None:
        """Called when the reader needs no more; the result stays."""
        self.done, self.reader = True, None
        self.queue.clear()
        self.partition.views.pop(self, None)

    def fail_view(self, cause: BaseException) -> None:
        """Called when the result was released or cannot be read."""
        reader = self.reader
        self.release_subpartition()
        if reader is not None:
            reader.producer_failed(cause)

    def _load(self) -> None:
        """Decodes frames until there is a batch, or until the end."""
        partition, frames = self.partition, self.partition.frames[self.index]
        while not self.backlog and self._position < len(frames):
            frame = partition.read_frame(frames[self._position])
            self._position += 1
            try:
                element = self._decoder.decode(frame)
            except Exception as error:  # unpickling runs code of the user's classes
                raise ProgramError(
                    f"records of {partition.partition_id.data_set_id} cannot be read in this "
                    f"process: {error!r}"
                ) from None
            if element is not None:
                self.queue.append((element, frame.segments))
                self.backlog += frame.segments

    def __repr__(self) -> str:
        return f"<view of subpartition {self.index} of {self.partition} at frame {self._position}>"


class BlockingPartition:
    """One output of one attempt in a blocking exchange. ``on_finished`` is called once, when the
    output is written to its end."""

    def __init__(
        self,
        partition_id: ResultPartitionId,
        subpartitions: int,
        memory: BatchShuffleMemory,
        on_finished: Callable[[BlockingPartition], None],
        on_error: Callable[[BaseException], None],
    ) -> None:
        self.partition_id = partition_id
        self.frames: list[list[StoredFrame]] = [[] for _ in range(subpartitions)]
        self.views: dict[SubpartitionView, None] = {}  # in the order in which they were opened
        self.bytes_to, self.batches_to = [0] * subpartitions, [0] * subpartitions
        self.released = False
        self.on_error = on_error
        self._on_finished = on_finished
        self._memory, self.lock = memory, memory.lock
        self._encoders = [ElementEncoder() for _ in range(subpartitions)]
        self._unfinished = subpartitions
        self._file: SpillFile | None = None

    # -- writing -----------------------------------------------------------------------------------

    def add_element(self, channel: int, element: Element, segments: int) -> None:
        """Stores the element for one consumer; there is always room. Raises ProgramError for
        records that cannot be pickled, and ResourceUnavailableError if the disk fails."""
        with self.lock:
            self._store(channel, element, segments)

    def _store(self, channel: int, element: Element, segments: int) -> None:
        if self.released:
            return
        frames, size = self.frames[channel], 0
        encoded = self._encoders[channel].encode(element)
        for number, part in enumerate(encoded, 1):
            cost = segments if number == len(encoded) else 0
            header = encode_header(part.kind, part.flags, part.parts, 0, 0, cost, 0, part.length)
            data = b"".join((header, *part.buffers))
            frames.append(data)
            size += len(data)
        self._memory.charge_bytes(self, size)
        if type(element) is EndOfPartition:
            self._unfinished -= 1
            if not self._unfinished:
                self._encoders.clear()
                self._on_finished(self)

    @property
    def has_room(self) -> bool:
        return True

    def held(self) -> tuple[int, int, int]:
        """Nothing: what is stored waits for nobody."""
        return 0, 0, 0

    def drop_waiting(self) -> None:
        """Does nothing, because nothing waits."""

    def add_barrier(self, barrier: CheckpointBarrier) -> None:
        raise EngineError(
            f"{self} takes no barriers: a job with blocking results has no checkpoints"
        )

    def overtake(self, checkpoint_id: int) -> list[list[Element]]:
        """Nothing is overtaken, because there are no barriers."""
        return []

    def holds_barrier(self, checkpoint_id: int) -> bool:
        return False

    @property
    def holds_ends(self) -> bool:
        return False

    def set_barrier_listener(self, on_barrier_left: Callable[[int], None]) -> None:
        """Does nothing, because there are no barriers."""

    def set_room_listener(self, on_room: Callable[[], None]) -> None:
        """Does nothing, because there is always room."""

    @property
    def done(self) -> bool:
        """Whether the output is written to its end, so that the producer's task may end."""
        return self._unfinished == 0

    def spill_frames(self) -> None:
        """Moves the frames in memory to the file."""
        if self._file is None:
            self._file = SpillFile(self._memory.folders)
        for frames in self.frames:
            start = len(frames)
            while start and type(frames[start - 1]) is bytes:
                start -= 1
            held = [frame for frame in frames[start:] if type(frame) is bytes]
            at = self._file.append(held)
            for position, frame in enumerate(held, start):
                frames[position] = at, len(frame)
                at += len(frame)
        self._memory.discharge_partition(self)

    @property
    def spilled(self) -> int:
        """The number of bytes in the file."""
        return self._file.size if self._file is not None else 0

    # -- reading -----------------------------------------------------------------------------------

    @property
    def subpartition_count(self) -> int:
        return len(self.frames)

    def open_view(self, index: int) -> SubpartitionView:
        """A new pass from the beginning. Raises PartitionNotFoundError if the file cannot be
        read."""
        try:
            found = SubpartitionView(self, index)
        except ProgramError:
            raise
        except FlinkpyError as error:
            raise lost(self, error) from None
        self.views[found] = None
        return found

    def read_frame(self, stored: StoredFrame) -> Frame:
        data = stored
        if isinstance(data, tuple):
            assert self._file is not None
            data = self._file.read(*data)
        return stored_frame(data)

    # -- the end -----------------------------------------------------------------------------------

    def release_partition(self, cause: BaseException | None = None) -> None:
        """Drops everything, the file too, and reports ``cause`` to current readers. May be called
        again."""
        if self.released:
            return
        self.released = True
        for view in list(self.views):
            view.fail_view(
                cause
                or PartitionNotFoundError(f"{self} was released before it was read to the end")
            )
        self.frames = [[] for _ in self.frames]
        self._memory.discharge_partition(self)
        if self._file is not None:
            self._file.close()

    def __repr__(self) -> str:
        producer = self.partition_id.producer
        return (
            f"blocking partition {self.partition_id.data_set_id:.8} of "
            f"{producer.vertex_id:.8} subtask {producer.subtask_index} attempt "
            f"{producer.attempt} ({'written' if self.done else 'being written'}, "
            f"{self.spilled} bytes on disk)"
        )


def lost(partition: BlockingPartition, error: BaseException) -> PartitionNotFoundError:
    """The error for consumers if the result cannot be read; its producer has to run again."""
    return PartitionNotFoundError(f"{partition} cannot be read: {error}")


class BlockingWriter(PartitionWriter):
    """Gathers full batches, because no consumer is waiting for a partial one."""

    def __init__(
        self,
        partition: BlockingPartition,
        selector: ChannelSelector,
        config: NetworkConfig,
        reactor: Reactor,
    ) -> None:
        super().__init__(partition, selector, -1, config, reactor)

    def flush(self) -> None:
        """Does nothing: gathered records wait for more, or for the end."""
