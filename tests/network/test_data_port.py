from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator

import pytest

from flinkpy.core.reactor import Reactor
from flinkpy.network.wire import data_port
from flinkpy.network.wire.data_port import DataPort, Sockets, reach
from flinkpy.network.wire.transport import ByteStream
from flinkpy.testing.manual_reactor import ManualReactor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract names")


@contextlib.contextmanager
def listening(reactor: Reactor, accepted: list[tuple[ByteStream, str]]) -> Iterator[DataPort]:
    port = DataPort("127.0.0.1", 0, reactor, lambda sock, peer: accepted.append((sock, peer)))
    try:
        yield port
    finally:
        port.close()
        for sock, _ in accepted:
            sock.close()


def family_of(stream: ByteStream) -> int:
    assert isinstance(stream, socket.socket)
    return stream.family


def test_a_port_of_this_host_is_reached_over_a_unix_socket() -> None:
    accepted: list[tuple[ByteStream, str]] = []
    with ManualReactor() as reactor, listening(reactor, accepted) as port:
        sock, is_connected = reach(port.address)
        with sock:
            reactor.run_until(lambda: bool(accepted))
            assert is_connected
            assert sock.family == family_of(accepted[0][0]) == socket.AF_UNIX
            assert accepted[0][1] == "this host"


def test_a_port_that_is_not_of_this_host_is_to_be_reached_over_tcp() -> None:
    sock, is_connected = reach(("192.0.2.1", 4321))
    with sock:
        assert not is_connected
        assert sock.family == socket.AF_INET


def test_a_port_of_another_node_is_reached_over_tcp_also_if_it_is_on_this_machine() -> None:
    with ManualReactor() as reactor, listening(reactor, []) as port:
        here = Sockets()
        with contextlib.closing(here.listen("127.0.0.2", 0, reactor, lambda sock, peer: None)):
            stream, _ = here.connect(port.address)
            with contextlib.closing(stream):
                assert family_of(stream) == socket.AF_INET


def test_of_a_port_that_was_closed_nothing_is_left() -> None:
    with ManualReactor() as reactor:
        with listening(reactor, []) as port:
            address = port.address
        sock, is_connected = reach(address)
        with sock:
            assert not is_connected
        with contextlib.closing(DataPort(*address, reactor, lambda sock, peer: None)):
            assert reactor.sockets == 2


def test_where_the_unix_name_is_taken_tcp_is_left() -> None:
    with (
        ManualReactor() as reactor,
        socket.socket(socket.AF_UNIX) as other,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(data_port, "near_name", lambda address: f"\0flinkpy-test/{other.fileno()}")
        other.bind(f"\0flinkpy-test/{other.fileno()}")
        accepted: list[tuple[ByteStream, str]] = []
        with listening(reactor, accepted) as port, socket.create_connection(port.address):
            reactor.run_until(lambda: bool(accepted))
            assert family_of(accepted[0][0]) == socket.AF_INET


def test_a_port_that_is_taken_says_so() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        ManualReactor() as reactor,
        pytest.raises(OSError, match="in use"),
    ):
        DataPort("127.0.0.1", taken.getsockname()[1], reactor, lambda sock, peer: None)


@pytest.mark.finding("faults 4")
def test_a_unix_socket_of_another_user_in_the_data_ports_place_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = ("127.0.0.1", 1)
    near = data_port.near_name(address)
    assert near is not None
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(near)
        listening.listen()
        own, is_connected = reach(address)
        own.close()
        assert is_connected
        monkeypatch.setattr("os.getuid", lambda: 12345)
        other, is_connected = reach(address)
        assert (other.family, is_connected) == (socket.AF_INET, False)
        other.close()
