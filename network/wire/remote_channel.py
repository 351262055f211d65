"""The two ends of one channel between processes. The producer's end reads a subpartition, and sends
as far as credit allows; the consumer's end feeds a gate, and grants credit."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sized
from functools import partial
from typing import Any, NamedTuple, Protocol

from flinkpy.core.elements import Batch, CheckpointBarrier, Element, EndOfPartition
from flinkpy.core.errors import (
    NetworkProtocolError,
    PartitionNotFoundError,
    ProgramError,
    RemoteError,
)
from flinkpy.core.ids import (
    ExecutionAttemptId,
    IntermediateDataSetId,
    JobId,
    JobVertexId,
    ResultPartitionId,
)
from flinkpy.graph.checkpoints import ChannelKey
from flinkpy.network.encoding.frames import (
    HEADER_SIZE,
    LAST_ELEMENT_KIND,
    Frame,
    FrameKind,
    control_frame,
    encode_header,
)
from flinkpy.network.encoding.payloads import ElementDecoder, ElementEncoder, Encoded
from flinkpy.network.flow.batch_pieces import cut
from flinkpy.network.flow.credits import ReceiverCredits, SenderCredits
from flinkpy.network.gate import InputChannel, SingleInputGate
from flinkpy.network.partition import ReadableSubpartition
from flinkpy.network.port import Traffic


class PartitionRequest(NamedTuple):
    """The subpartition that a consumer requests."""

    partition_id: ResultPartitionId
    subpartition_index: int

    @property
    def key(self) -> ChannelKey:
        """The same for every attempt."""
        return ChannelKey(
            self.partition_id.data_set_id,
            self.partition_id.producer.subtask_index,
            self.subpartition_index,
        )

    def encode(self) -> bytes:
        data_set, producer = self.partition_id
        return pickle.dumps((str(data_set), tuple(producer), self.subpartition_index), 5)

    @staticmethod
    def decode(payload: memoryview) -> PartitionRequest:
        try:
            data_set, (job, vertex, subtask, attempt), index = pickle.loads(payload)
        except (ValueError, TypeError, pickle.UnpicklingError) as error:
            raise NetworkProtocolError(f"a malformed partition request: {error}") from None
        producer = ExecutionAttemptId(JobId(job), JobVertexId(vertex), subtask, attempt)
        return PartitionRequest(ResultPartitionId(IntermediateDataSetId(data_set), producer), index)


def encode_error(cause: BaseException) -> bytes:
    """The pickled error, or its text if it cannot be pickled."""
    try:
        pickled = pickle.dumps(cause, 5)
        pickle.loads(pickled)
        return pickled
    except Exception:
        return pickle.dumps(RemoteError(f"{type(cause).__name__}: {cause}"), 5)


def decode_error(payload: memoryview) -> BaseException:
    """Undoes ``encode_error``; the error's class may not exist in this process."""
    try:
        cause = pickle.loads(payload)
        return cause if isinstance(cause, BaseException) else RemoteError(repr(cause))
    except Exception as error:
        return RemoteError(f"the producer failed; its error cannot be read here: {error}")


class Wire(Protocol):
    """The connection as a channel's end sees it."""

    @property
    def unsent(self) -> Sized:
        """The bytes of earlier sends that still wait for the socket."""
        ...

    def send(
        self, buffers: list[Any], length: int, on_sent: Callable[[], None] | None = None
    ) -> None:
        """Sends ``length`` bytes, keeping those that the socket does not take yet; calls
        ``on_sent`` when all are sent."""
        ...

    def send_later(self, sender: OutboundChannel) -> None:
        """Calls ``sender.pump(1)`` when the socket takes more, in turn with other senders."""
        ...

    def forget_outbound(self, channel_id: int) -> None: ...

    def forget_inbound(self, channel_id: int) -> None: ...


def _send_control(wire: Wire, frame: bytes) -> None:
    wire.send([frame], len(frame))


class OutboundChannel:
    """The producer's end."""

    def __init__(self, wire: Wire, channel_id: int, exclusive: int) -> None:
        self._wire, self._id = wire, channel_id
        self._credits = SenderCredits(exclusive)
        self._encoder = ElementEncoder()
        self._subpartition: ReadableSubpartition | None = None
        self._sequence = 0
        self._pumping = False
        self.waiting = False  # whether the connection will call ``pump``
        self.released = False

    def attach(self, subpartition: ReadableSubpartition) -> None:
        """Called when the requested subpartition can be read."""
        self._subpartition = subpartition
        subpartition.reader = self
        self.data_available()

    def handle_credit(self, segments: int) -> None:
        self._credits.add_credits(segments)
        self.pump()

    def producer_failed(self, cause: BaseException) -> None:
        """Sends the cause to the consumer, and ends the channel."""
        if not self.released:
            self._subpartition = None
            self.release_channel()
            _send_control(
                self._wire, control_frame(FrameKind.FAILED, self._id, payload=encode_error(cause))
            )

    def release_channel(self) -> None:
        """Called when the consumer needs no more, or its connection is gone."""
        if not self.released:
            self.released = True
            self._wire.forget_outbound(self._id)
            subpartition, self._subpartition = self._subpartition, None
            if subpartition is not None:
                subpartition.release_subpartition()

    def pump(self, frames: int | None = None) -> None:
        """Sends as many elements as data, credits and the socket allow, and at most ``frames``."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._subpartition is not None and self._subpartition.queue and frames != 0:
                if self._wire.unsent:
                    break
                element, segments = self._subpartition.queue[0]
                if segments > self._credits.credits:
                    # only batches cost segments
                    if not self._send_part(self._subpartition, element, segments):  # type: ignore[arg-type]
                        return
                else:
                    self._subpartition.queue.popleft()
                    self._send(self._subpartition, element, segments, segments)
                frames = None if frames is None else frames - 1
            if self._subpartition is not None and self._subpartition.queue and not self.waiting:
                self.waiting = True
                self._wire.send_later(self)
        finally:
            self._pumping = False

    data_available = pump  # an alias, which saves a call per batch

    def barrier_available(self, barrier: CheckpointBarrier) -> None:
        """The barrier has overtaken what was not sent, and needs no credit."""
        self.pump()

    def _send_part(self, subpartition: ReadableSubpartition, batch: Batch, segments: int) -> bool:
        """Sends as much of the first batch as credit allows; returns False if it allows nothing."""
        total = len(batch)
        records, charged = self._credits.sendable_part(segments, total)
        if not charged:
            if self._credits.must_announce(subpartition.backlog):
                _send_control(
                    self._wire,
                    control_frame(FrameKind.BACKLOG, self._id, backlog=subpartition.backlog),
                )
            return False
        if records == total:
            subpartition.queue.popleft()
        else:
            batch, rest = cut(batch, records)
            left = max(1, segments * (total - records) // total)
            subpartition.queue[0] = (rest, left)
            segments = max(0, segments - left)
        self._send(subpartition, batch, segments, charged)
        return True

    def _send(
        self, subpartition: ReadableSubpartition, element: Element, segments: int, charged: int
    ) -> None:
        try:
            encoded = self._encoder.encode(element)
        except Exception as error:
            cause = (
                error
                if isinstance(error, ProgramError)
                else ProgramError(f"records cannot be sent to another process: {error!r}")
            )
            subpartition.partition.on_error(cause)
            self.producer_failed(cause)
            subpartition.release_subpartition()
            return
        backlog = subpartition.backlog - segments
        if charged:
            self._credits.spend_credits(charged, backlog)
        for ahead in encoded[:-1]:
            self._wire.send(self._frame(ahead, 0, backlog), HEADER_SIZE + ahead.length)
        on_sent: Callable[[], None] | None = (
            partial(_release_sent, subpartition, segments) if segments else None
        )
        if type(element) is CheckpointBarrier:
            subpartition.barrier_taken(element.checkpoint_id)
        elif type(element) is EndOfPartition:
            on_sent = self.release_channel  # so that the producer may end once everything was sent
        self._wire.send(
            self._frame(encoded[-1], charged, backlog), HEADER_SIZE + encoded[-1].length, on_sent
        )

    def _frame(self, encoded: Encoded, charged: int, backlog: int) -> list[Any]:
        header = encode_header(
            encoded.kind,
            encoded.flags,
            encoded.parts,
            self._id,
            self._sequence,
            charged,
            backlog,
            encoded.length,
        )
        self._sequence += 1
        return [header, *encoded.buffers]


def _release_sent(subpartition: ReadableSubpartition, segments: int) -> None:
    """The frame was sent: releases its segments, unless the subpartition, and they with it, was
    released meanwhile."""
    if not subpartition.done:
        subpartition.release_segments(segments)


class RemoteInputChannel(InputChannel):
    """The consumer's end."""

    def __init__(
        self, gate: SingleInputGate, index: int, request: PartitionRequest, credits: ReceiverCredits
    ) -> None:
        super().__init__(gate, index, request.key)
        self._request, self._credits = request, credits
        self._decoder = ElementDecoder()
        self._wire: Wire | None = None
        self._id = 0
        self._expected = 0
        self._bytes = self._batches = 0  # that have come
        self._ended = self.released = False

    def traffic(self) -> Traffic:
        return Traffic(0, 0, self._bytes, self._batches, len(self.queue))

    def request_subpartition(self, wire: Wire, channel_id: int) -> None:
        """Called when the connection is open: requests the subpartition, and grants the first
        credits."""
        self._wire, self._id = wire, channel_id
        _send_control(
            wire,
            control_frame(
                FrameKind.REQUEST,
                channel_id,
                segments=self._credits.exclusive,
                payload=self._request.encode(),
            ),
        )
        self._credits.open_window(self.index)

    def grant_credit(self, segments: int) -> None:
        if self._wire is not None:
            _send_control(self._wire, control_frame(FrameKind.CREDIT, self._id, segments=segments))

    def handle_frame(self, frame: Frame) -> None:
        """Handles an element, a backlog announcement, or the producer's failure."""
        if frame.kind > LAST_ELEMENT_KIND:
            self._handle_notice(frame)
            return
        if frame.sequence != self._expected:
            raise NetworkProtocolError(
                f"frame {frame.sequence} came where {self._expected} was expected: one is "
                "lost or doubled"
            )
        self._expected += 1
        self._bytes += HEADER_SIZE + len(frame.payload)
        if frame.segments:
            self._batches += 1
            self._credits.frame_arrived(self.index, frame.segments, frame.backlog)
        try:
            element = self._decoder.decode(frame)
        except NetworkProtocolError:
            raise
        except Exception as error:  # unpickling runs code of the user's classes
            self.release_channel()
            self.gate.channel_lost(
                ProgramError(
                    f"records of {self._request.partition_id.data_set_id} cannot be "
                    "read in this "
                    f"process: {error!r}"
                )
            )
            return
        if element is not None:
            self.queue.append((element, frame.segments))
            if type(element) is EndOfPartition:
                self._end()
                self.gate.end_arrived(self)
            if not self.ready:
                self.gate.channel_ready(self)
            if type(element) is CheckpointBarrier:
                self.gate.barrier_arrived(element)

    def _handle_notice(self, frame: Frame) -> None:
        if frame.kind == FrameKind.BACKLOG:
            self._credits.backlog_announced(self.index, frame.backlog)
        else:
            cause = decode_error(frame.payload)
            self._end()
            self.gate.channel_lost(cause)

    def connection_lost(self, cause: BaseException) -> None:
        self._wire = None
        self.gate.channel_lost(cause)

    def batch_consumed(self, segments: int) -> None:
        self._credits.batch_consumed(self.index, segments)

    def end_reached(self) -> None:
        """Does nothing: the producer has sent the end, and has released the channel."""

    def release_channel(self) -> None:
        if not self.released:
            self.released = True
            self.queue.clear()
            wire = self._wire
            if wire is not None and not self._ended:
                self._end()
                _send_control(wire, control_frame(FrameKind.CANCEL, self._id))
            self._credits.close_window(self.index)

    def _end(self) -> None:
        self._ended = True
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.forget_inbound(self._id)
            self._credits.sender_ended(self.index)


def not_found(request: PartitionRequest) -> PartitionNotFoundError:
    data_set, producer = request.partition_id
    return PartitionNotFoundError(
        f"no partition {data_set} of subtask {producer.subtask_index} (attempt "
        f"{producer.attempt}) of vertex {producer.vertex_id} appeared in time; "
        "its task was not deployed, or has gone (see taskmanager.network.partition-request-timeout)"
    )
