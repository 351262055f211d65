"""Connections between TaskExecutors: one authenticated socket carries the channels of both
directions.

``connection_manager`` makes the streams. All I/O here is non-blocking, in the slot loop's thread. A
frame is sent at once, from the writer's flush. Bytes that the stream does not take wait until it is
writable, and meanwhile no channel encodes more (``unsent``). Received frames are decoded and put
into the gates in the same round of the loop."""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from flinkpy.core.errors import EngineError, NetworkProtocolError, TaskExecutorLostError
from flinkpy.core.lifecycles import CONNECTION, ConnectionState, StateMachine
from flinkpy.core.reactor import Reactor
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.network.encoding.frames import LAST_ELEMENT_KIND, Frame, FrameDecoder, FrameKind
from flinkpy.network.wire.remote_channel import (
    OutboundChannel,
    PartitionRequest,
    RemoteInputChannel,
)
from flinkpy.network.wire.transport import ByteStream, KeepsReceived

log = engine_logger(__name__)

READS_PER_ROUND = 8  # limited, so that a busy connection does not hold up the tasks
READ_BYTES_PER_ROUND = 2 << 20
BUFFERS_PER_SEND = 512  # below the system's limit of 1024
# up to this size it is faster to join the buffers and send one, including the copy
JOINED_BYTES = 4096


class ConnectionOwner(Protocol):
    """Owns the connections of one TaskExecutor (``flinkpy.network.wire.peer_connections``)."""

    def connection_closed(self, connection: Connection) -> None: ...

    def partition_requested(self, request: PartitionRequest, channel: OutboundChannel) -> None: ...


class _Channels:
    """The channels of one connection. Those that this side reads (``inbound``) it numbers itself;
    the peer numbers those that this side writes (``outbound``), upwards. ``waiting`` are to be
    requested when the connection is open."""

    def __init__(self) -> None:
        self.inbound: dict[int, RemoteInputChannel] = {}
        self.outbound: dict[int, OutboundChannel] = {}
        self.waiting: list[RemoteInputChannel] = []
        self.next_inbound = 1
        self.highest_outbound = 0

    def add_inbound(self, channel: RemoteInputChannel) -> int:
        """Its number."""
        channel_id = self.next_inbound
        self.next_inbound += 1
        self.inbound[channel_id] = channel
        return channel_id

    def take_waiting(self) -> list[RemoteInputChannel]:
        taken, self.waiting = self.waiting, []
        return taken


class Connection:
    """One connection to the TaskExecutor ``peer``. Channels may be opened before it has its stream
    (``use_stream``); they wait."""

    _stream: ByteStream  # set by use_stream()
    _keeps: KeepsReceived | None = None

    def __init__(self, peer: str, owner: ConnectionOwner, reactor: Reactor, max_frame: int) -> None:
        self.peer = peer
        self._owner = owner
        self._reactor = reactor
        self._machine = StateMachine(CONNECTION, f"connection to {peer}")
        self._decoder = FrameDecoder(max_frame)
        self.unsent: deque[memoryview] = deque()
        self._on_sent: list[Callable[[], None]] = []
        self._senders: deque[OutboundChannel] = deque()
        self._writing = False
        self._channels = _Channels()
        self.bytes_sent = self.bytes_received = 0

    @property
    def state(self) -> ConnectionState:
        return self._machine.state

    # -- opening -----------------------------------------------------------------------------------

    def use_stream(self, stream: ByteStream, rest: bytes = b"") -> None:
        """Called when the connection is made and both sides have proved who they are. ``rest`` are
        bytes already read from the stream."""
        if self.state is ConnectionState.CLOSED:
            stream.close()
            return
        self._machine.move(ConnectionState.OPEN)
        self._stream = stream
        self._keeps = stream if isinstance(stream, KeepsReceived) else None
        self._reactor.add_reader(stream, self._readable)
        for channel in self._channels.take_waiting():
            self._open_now(channel)
        try:
            self._decoder.buffer[: len(rest)] = rest
            self._decoder.feed(len(rest), self._dispatch)
        except Exception as error:
            self._handle_error(error)
        self._read_kept()

    def connecting_failed(self, error: Exception) -> None:
        """Called when the connection could not be made."""
        self._fail(error)

    def open_channel(self, channel: RemoteInputChannel) -> None:
        """Requests the channel's subpartition from the peer, once the connection is open."""
        if self.state is ConnectionState.OPEN:
            self._open_now(channel)
        else:
            self._channels.waiting.append(channel)

    def _open_now(self, channel: RemoteInputChannel) -> None:
        if not channel.released:
            channel.request_subpartition(self, self._channels.add_inbound(channel))

    # -- sending -----------------------------------------------------------------------------------

    def send(
        self, buffers: list[Any], length: int, on_sent: Callable[[], None] | None = None
    ) -> None:
        if self._machine.state is ConnectionState.OPEN:
            self._write(buffers, length)
        if on_sent is not None:
            if self.unsent:
                self._on_sent.append(on_sent)
            else:
                self._reactor.maybe_yield()
                on_sent()

    def send_later(self, sender: OutboundChannel) -> None:
        self._senders.append(sender)
        self._want_write(True)

    def _write(self, buffers: list[Any], length: int) -> None:
        """Tries the stream at once if no bytes wait; keeps the bytes that it does not take."""
        sent = 0
        if not self.unsent:
            try:
                if length <= JOINED_BYTES:
                    sent = self._stream.send(b"".join(buffers))
                else:
                    sent = self._stream.sendmsg(
                        buffers if len(buffers) <= BUFFERS_PER_SEND else buffers[:BUFFERS_PER_SEND]
                    )
            except BlockingIOError:
                pass
            except OSError as error:
                self._fail_soon(error)
                return
            self.bytes_sent += sent
            if sent == length:
                return
        for buffer in buffers:
            size = len(buffer)
            if sent >= size:
                sent -= size
            else:
                self.unsent.append(memoryview(buffer)[sent:])
                sent = 0
        self._want_write(bool(self.unsent))

    def _writable(self) -> None:
        while self.unsent:
            if not self._send_some():
                return
        for on_sent in self._take_on_sent():
            on_sent()
        while self._senders and not self.unsent:
            sender = self._senders.popleft()
            sender.waiting = False
            sender.pump(1)
        if not self.unsent and not self._senders:
            self._want_write(False)

    def _send_some(self) -> bool:
        unsent = self.unsent
        buffers = (
            list(unsent)
            if len(unsent) <= BUFFERS_PER_SEND
            else [unsent[i] for i in range(BUFFERS_PER_SEND)]
        )
        try:
            sent = self._stream.sendmsg(buffers)
        except BlockingIOError:
            return False
        except OSError as error:
            self._fail(error)
            return False
        self.bytes_sent += sent
        while unsent and sent >= len(unsent[0]):
            sent -= len(unsent.popleft())
        if sent:
            unsent[0] = unsent[0][sent:]
        return not sent

    def _take_on_sent(self) -> list[Callable[[], None]]:
        taken, self._on_sent = self._on_sent, []
        return taken

    def _want_write(self, wanted: bool) -> None:
        if wanted != self._writing and self.state is not ConnectionState.CLOSED:
            self._writing = wanted
            if wanted:
                self._reactor.add_writer(self._stream, self._writable)
            else:
                self._reactor.remove_writer(self._stream)

    # -- receiving ---------------------------------------------------------------------------------

    def _readable(self) -> None:
        try:
            machine = self._machine
            budget = READ_BYTES_PER_ROUND
            for _ in range(READS_PER_ROUND):
                buffer = self._decoder.buffer
                count = self._stream.recv_into(buffer)
                if not count:
                    raise self._end_of_stream()
                self.bytes_received += count
                self._decoder.feed(count, self._dispatch)
                budget -= count
                if machine.state is not ConnectionState.OPEN:
                    return
                if budget <= 0:
                    break
                if count < len(buffer) and self._decoder.own is None:
                    # Otherwise the rest of a payload follows soon, and another try is cheaper than
                    # a round of the selector
                    return
            self._read_kept()
        except BlockingIOError:
            return
        except Exception as error:
            self._handle_error(error)

    def _read_kept(self) -> None:
        """Reads on in the loop's next round if the stream holds bytes that it has received: the
        selector does not know of these."""
        if self._keeps is not None and self._keeps.pending():
            self._reactor.call_soon(self._read_on)

    def _read_on(self) -> None:
        if self.state is ConnectionState.OPEN:
            self._readable()

    def _handle_error(self, error: Exception) -> None:
        """Ends the connection only: a fault of one connection must not end the loop that runs all
        tasks."""
        if isinstance(error, (NetworkProtocolError, OSError)):
            self._fail(error)
        else:
            log.error("data connection with %s", self.peer, exc_info=error)
            self._fail(EngineError(f"{type(error).__name__}: {error}"))

    def _end_of_stream(self) -> Exception:
        return (
            NetworkProtocolError("the connection ended inside a frame")
            if self._decoder.mid_frame
            else ConnectionResetError("closed by the peer")
        )

    def _dispatch(self, frame: Frame) -> bool:
        """Handles a frame; returns whether the connection is still open."""
        kind, channel_id = frame.kind, frame.channel
        if kind <= LAST_ELEMENT_KIND or kind in (FrameKind.BACKLOG, FrameKind.FAILED):
            inbound = self._channels.inbound.get(channel_id)
            if inbound is not None:
                inbound.handle_frame(frame)
            elif channel_id >= self._channels.next_inbound:
                raise NetworkProtocolError(
                    f"a frame for channel {channel_id}, which was never asked for"
                )
            # else the channel has been released: frames in transit are dropped
        elif kind == FrameKind.REQUEST:
            self._handle_request(frame)
        else:
            self._handle_answer(kind, channel_id, frame.segments)
        return self._machine.state is ConnectionState.OPEN

    def _handle_answer(self, kind: int, channel_id: int, segments: int) -> None:
        """Handles a channel's CREDIT or CANCEL, which its consumer sends."""
        outbound = self._channels.outbound.get(channel_id)
        if outbound is None:
            if channel_id > self._channels.highest_outbound:
                raise NetworkProtocolError(f"channel {channel_id} was never requested")
        elif kind == FrameKind.CREDIT:
            outbound.handle_credit(segments)
        else:
            outbound.release_channel()

    def _handle_request(self, frame: Frame) -> None:
        if frame.channel <= self._channels.highest_outbound:
            raise NetworkProtocolError(f"channel {frame.channel} was requested twice")
        if frame.segments < 1:
            raise NetworkProtocolError("a channel needs at least one exclusive segment")
        request = PartitionRequest.decode(frame.payload)
        self._channels.highest_outbound = frame.channel
        channel = self._channels.outbound[frame.channel] = OutboundChannel(
            self, frame.channel, frame.segments
        )
        self._owner.partition_requested(request, channel)

    def forget_outbound(self, channel_id: int) -> None:
        self._channels.outbound.pop(channel_id, None)

    def forget_inbound(self, channel_id: int) -> None:
        self._channels.inbound.pop(channel_id, None)

    # -- closing -----------------------------------------------------------------------------------

    def _fail_soon(self, error: OSError) -> None:
        """Called inside a send: handles the failure later, so that the sender's channel does not go
        away during the call."""
        self._reactor.call_soon(lambda: self._fail(error))

    def _fail(self, error: Exception) -> None:
        if self.state is ConnectionState.CLOSED:
            return
        # A lost connection is no warning: the tasks that needed it fail and say so. When a session
        # ends, its workers lose each other.
        level = logging.WARNING if isinstance(error, NetworkProtocolError) else logging.INFO
        log.log(level, "data connection with %s closed: %s", self.peer, error)
        if isinstance(error, NetworkProtocolError):
            self.close_connection(
                NetworkProtocolError(
                    f"data connection with TaskExecutor {self.peer} closed: {error}"
                )
            )
        else:
            self.close_connection(
                TaskExecutorLostError(
                    f"lost the data connection with TaskExecutor {self.peer}: {error}"
                )
            )

    def close_connection(self, cause: BaseException) -> None:
        """Ends the connection and reports ``cause`` to all its channels. May be called more than
        once."""
        if self.state is ConnectionState.CLOSED:
            return
        if self.state is ConnectionState.OPEN:
            self._want_write(False)
            self._reactor.remove_reader(self._stream)
            with contextlib.suppress(OSError):
                self._stream.close()
        self._machine.move(ConnectionState.CLOSED)
        self.unsent.clear()
        self._senders.clear()
        for on_sent in self._take_on_sent():
            on_sent()
        self._owner.connection_closed(self)
        for outbound in list(self._channels.outbound.values()):
            outbound.release_channel()
        lost = [*self._channels.inbound.values(), *self._channels.take_waiting()]
        self._channels.inbound = {}
        for channel in lost:
            channel.connection_lost(cause)

    def __repr__(self) -> str:
        channels = f"{len(self._channels.inbound)} channels in, {len(self._channels.outbound)} out"
        return (
            f"Connection({self.peer}, {self.state.name}, {channels}, {len(self.unsent)} "
            "buffers unsent)"
        )
