"""The data connections of a simulated cluster. Bytes of one connection keep their order; those of
different connections overtake each other.

A connection may be lost, with all bytes on their way. When a process dies, the system ends its
connections; or, with a machine that lost its power, nobody tells the other side, until the
keepalive of its system does."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

from flinkpy.actors.rpc.simulated.network_port import ProcessNetwork
from flinkpy.actors.rpc.simulated.simulated_service import SimulatedRpcService
from flinkpy.core.errors import EngineError
from flinkpy.core.reactor import Reactor
from flinkpy.network.wire.transport import ByteStream
from flinkpy.testing.simulation.machine.data_faults import DataFaults
from flinkpy.testing.simulation.machine.simulated_stream import SimulatedStream

Address = tuple[str, int]


class SimulatedPort:
    """A data port of one process."""

    def __init__(
        self,
        network: DataNetwork,
        address: Address,
        process: SimulatedRpcService,
        reactor: Reactor,
        on_accepted: Callable[[ByteStream, str], None],
    ) -> None:
        self.address, self.process = address, process
        self._network = network
        self._reactor = reactor
        self._on_accepted = on_accepted

    def accept(self, stream: SimulatedStream, name: str) -> None:
        self._reactor.call_soon_threadsafe(partial(self._on_accepted, stream, name))

    def close(self) -> None:
        self._network.close_port(self)


class DataNetwork:
    """All ports and connections. One for the cluster."""

    def __init__(self, network: ProcessNetwork, faults: DataFaults) -> None:
        self.network, self.faults = network, faults
        self._numbers = itertools.count(1)
        self._ports: dict[Address, SimulatedPort] = {}
        self._streams: dict[SimulatedStream, None] = {}

    @property
    def in_flight(self) -> int:
        return self.faults.in_flight

    # -- processes ---------------------------------------------------------------------------------

    def transport_of(self, process: SimulatedRpcService) -> SimulatedTransport:
        return SimulatedTransport(self, process)

    def process_gone(self, process: SimulatedRpcService) -> None:
        """It has ended or crashed."""
        for port in [port for port in self._ports.values() if port.process is process]:
            self.close_port(port)
        is_told = not self._strikes(self.faults.half_open)
        for stream in self.streams_of(process):
            self._streams.pop(stream)
            if not stream.is_closed:
                late_s = 0.0 if is_told else self.faults.keepalive_s
                reset = not is_told or self.network.random.random() < 0.5
                self._tell_end(
                    stream,
                    ConnectionResetError(f"{process.process} is gone") if reset else None,
                    late_s,
                )

    def streams_of(self, process: SimulatedRpcService) -> list[SimulatedStream]:
        """Its ends of connections that it has not closed."""
        return [stream for stream in self._streams if stream.process is process]

    # -- ports and connections ---------------------------------------------------------------------

    def listen(
        self,
        process: SimulatedRpcService,
        reactor: Reactor,
        on_accepted: Callable[[ByteStream, str], None],
    ) -> SimulatedPort:
        address = process.process, next(self._numbers)
        port = self._ports[address] = SimulatedPort(self, address, process, reactor, on_accepted)
        return port

    def close_port(self, port: SimulatedPort) -> None:
        self._ports.pop(port.address, None)

    def connect(self, process: SimulatedRpcService, address: Address) -> SimulatedStream:
        stream = self._make(process)
        self.network.schedule(
            self._delay(),
            partial(self._connected, stream, address),
            f"{process.process}>{address[0]} connects",
        )
        return stream

    def _connected(self, stream: SimulatedStream, address: Address) -> None:
        port = self._ports.get(address)
        if not stream.process.alive or stream.is_closed:
            return
        if port is None or self._strikes(self.faults.refused):
            stream.end(ConnectionRefusedError(f"nobody listens at {address[0]}:{address[1]}"))
            return
        accepted = self._make(port.process)
        accepted.connected_to(stream)
        stream.connected_to(accepted)
        port.accept(accepted, stream.process.process)

    def _make(self, process: SimulatedRpcService) -> SimulatedStream:
        stream = SimulatedStream(next(self._numbers), process, self)
        self._streams[stream] = None
        return stream

    # -- bytes -------------------------------------------------------------------------------------

    def share_of(self, count: int) -> int:
        return (
            self.network.random.randint(1, count)
            if count > 1 and self._strikes(self.faults.cut)
            else count
        )

    def carry(self, source: SimulatedStream, data: bytes) -> None:
        if source.is_torn:
            return
        if self._strikes(self.faults.lost):
            self._lose(source)
            return
        first = self.share_of(len(data))
        for piece in (data[:first], data[first:]):
            if piece:
                self._schedule(source, lambda peer, piece=piece: peer.arrive(piece), "data")  # type: ignore[misc]

    def carry_end(self, source: SimulatedStream, error: OSError | None) -> None:
        self._streams.pop(source, None)
        self._tell_end(source, error)

    def _tell_end(
        self, source: SimulatedStream, error: OSError | None, late_s: float = 0.0
    ) -> None:
        if source.is_torn and error is None:
            return  # the other end hears of an error
        self._schedule(source, lambda peer: peer.end(error), "ends", late_s, in_order=error is None)

    def _lose(self, stream: SimulatedStream) -> None:
        """Both ends find out, one before the other. Until then nothing more arrives: a connection
        never leaves out bytes in the middle."""
        stream.is_torn = True
        for end in (stream, stream.peer):
            if end is not None:
                error = ConnectionResetError("the simulated connection is lost")
                self.network.schedule(
                    self._delay() + self.faults.delay_s * self.network.random.random(),
                    partial(end.end, error),
                    f"{end.process.process} loses a connection",
                    end.process,
                )

    def _schedule(
        self,
        source: SimulatedStream,
        action: Callable[[SimulatedStream], None],
        label: str,
        late_s: float = 0.0,
        in_order: bool = True,
    ) -> None:
        peer = source.peer
        if peer is None:
            return
        due = self.network.now + self._delay() + late_s
        if in_order:
            due = source.last_arrival = max(due, source.last_arrival)
        self.network.schedule_at(
            due,
            partial(action, peer),
            f"{source.process.process}>{peer.process.process} {label}",
            peer.process,
        )

    def _delay(self) -> float:
        faults, chance = self.faults, self.network.random.random
        return (faults.late_s if self._strikes(faults.late) else faults.delay_s) * chance()

    def _strikes(self, probability: float) -> bool:
        return probability > 0.0 and self.faults.strike(
            probability, self.network.random.random(), self.network.now
        )

    def __repr__(self) -> str:
        return f"<DataNetwork: {len(self._ports)} ports, {len(self._streams)} ends>"


class SimulatedTransport:
    """Implements ``flinkpy.network.wire.transport.Transport`` for one process."""

    def __init__(self, network: DataNetwork, process: SimulatedRpcService) -> None:
        self._network, self._process = network, process

    def listen(
        self, host: str, port: int, reactor: Reactor, on_accepted: Callable[[ByteStream, str], None]
    ) -> SimulatedPort:
        return self._network.listen(self._process, reactor, on_accepted)

    def connect(self, address: Address) -> tuple[ByteStream, bool]:
        return self._network.connect(self._process, address), False

    def connect_error(self, stream: ByteStream) -> OSError | None:
        if not isinstance(stream, SimulatedStream):
            raise EngineError(f"{stream!r} is not of the simulation")
        return stream.error
