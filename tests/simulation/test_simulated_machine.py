"""The simulated machine keeps the promises of a real one: bytes of a connection arrive once and in
order, whatever is cut or late; a lost connection, a dead process and a half-open connection end as
they do between machines; a loop of a dead process does nothing more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flinkpy.actors.rpc.simulated.simulated_service import SimulatedRpcService
from flinkpy.actors.rpc.simulated.unreliable_network import SimulatedNetwork
from flinkpy.network.wire.transport import ByteStream
from flinkpy.testing.simulation.machine.data_faults import DataFaults
from flinkpy.testing.simulation.machine.data_network import DataNetwork
from flinkpy.testing.simulation.machine.simulated_loop import SimulatedLoop
from flinkpy.testing.simulation.machine.simulated_machine import SimulatedFileThread


class Pair:
    """A connection from ``a`` to ``b``, each with a loop. ``got`` is what ``b`` has read, with the
    error or the end that came behind it."""

    def __init__(self, seed: int, faults: DataFaults) -> None:
        self.network = SimulatedNetwork(seed)
        self.data = DataNetwork(self.network, faults)
        self.a, self.b = self.network.service("a"), self.network.service("b")
        self.loops = {
            process.process: SimulatedLoop(process.process, process, faults)
            for process in (self.a, self.b)
        }
        for loop in self.loops.values():
            loop.start()
        self.got = bytearray()
        self.end: str | None = None
        self.here: ByteStream | None = None
        port = self.data.transport_of(self.b).listen("", 0, self.loops["b"], self._accepted)
        self.there = self.data.transport_of(self.a).connect(port.address)[0]
        assert self.network.run_until(lambda: self.here is not None, 10.0)

    def _accepted(self, stream: ByteStream, name: str) -> None:
        assert name == "a"
        self.here = stream
        self.loops["b"].add_reader(stream, lambda: self._readable(stream))

    def _readable(self, stream: ByteStream) -> None:
        try:
            data = stream.recv(1000)
        except OSError as error:
            data, self.end = b"", str(error)
        if not data:
            self.end = self.end or "the end"
            self.loops["b"].remove_reader(stream)
        self.got += data

    def send(self, data: bytes) -> None:
        """All of it, as room comes."""
        left = memoryview(data)

        def go_on() -> None:
            nonlocal left
            left = left[self.there.send(bytes(left)) :]
            if not left:
                self.loops["a"].remove_writer(self.there)

        self.loops["a"].add_writer(self.there, go_on)


@pytest.mark.parametrize("seed", range(20))
def test_bytes_arrive_once_and_in_order_however_they_are_cut_and_delayed(seed: int) -> None:
    pair = Pair(seed, DataFaults(cut=0.7, late=0.3, late_s=2.0, slow=0.2, in_flight=512))
    sent = bytes(range(256)) * 20
    pair.send(sent)
    pair.network.run_for(600)
    assert bytes(pair.got) == sent
    pair.there.close()
    pair.network.run_for(10)
    assert pair.end == "the end"


def test_what_is_not_read_leaves_no_room_for_more() -> None:
    pair = Pair(1, DataFaults(in_flight=600))
    pair.loops["b"].remove_reader(pair.here)  # type: ignore[arg-type]
    assert pair.there.send(b"x" * 500) == 500
    assert pair.there.send(b"x" * 500) == 100
    with pytest.raises(BlockingIOError):
        pair.there.send(b"x")


def test_a_lost_connection_is_lost_at_both_ends() -> None:
    pair = Pair(1, DataFaults(lost=1.0))
    pair.there.send(b"never seen")
    pair.network.run_for(1)
    assert (bytes(pair.got), pair.end) == (b"", "the simulated connection is lost")
    with pytest.raises(ConnectionResetError):
        pair.there.send(b"more")


@pytest.mark.parametrize("half_open", [0.0, 1.0])
def test_the_death_of_a_process_is_told_by_its_system_or_found_by_the_keepalive(
    half_open: float,
) -> None:
    pair = Pair(3, DataFaults(half_open=half_open, keepalive_s=7.0))
    pair.network.crash("a")
    pair.data.process_gone(pair.a)
    pair.network.run_for(6.0)
    found_early = pair.end is not None
    pair.network.run_for(2.0)
    assert (found_early, pair.end is not None) == (half_open == 0.0, True)


def test_nobody_listens_where_a_process_has_died() -> None:
    pair = Pair(1, DataFaults())
    pair.data.process_gone(pair.b)
    transport = pair.data.transport_of(pair.a)
    stream, is_connected = transport.connect(("b", 1))
    pair.network.run_for(1)
    assert not is_connected
    assert isinstance(transport.connect_error(stream), ConnectionRefusedError)


def work_of(
    kind: str, process: SimulatedRpcService
) -> tuple[Callable[[Callable[[], None]], object], Callable[[], object]]:
    """How to have something done there, and how to stop that."""
    if kind == "files":
        files = SimulatedFileThread(process, DataFaults(), lambda: 0)
        return files.run, files.stop
    loop = SimulatedLoop("loop", process, DataFaults())
    loop.start()
    return (
        loop.call_soon if kind == "calls" else lambda action: loop.call_later(1.0, action)
    ), loop.stop


@pytest.mark.parametrize("kind", ["files", "calls", "timers"])
def test_a_dead_process_does_nothing_more(kind: str) -> None:
    network = SimulatedNetwork(1)
    do, _ = work_of(kind, network.service("process"))
    done: list[int] = []
    do(lambda: done.append(1))
    network.run_for(2)
    do(lambda: done.append(2))
    network.crash("process")
    network.run_for(10)
    assert done == [1]


@pytest.mark.parametrize("kind", ["files", "timers"])
def test_what_was_stopped_drops_what_has_not_begun(kind: str) -> None:
    network = SimulatedNetwork(1)
    do, stop = work_of(kind, network.service("process"))
    done: list[int] = []
    do(lambda: done.append(1))
    stop()
    network.run_for(10)
    assert done == []
