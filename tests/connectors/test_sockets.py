from __future__ import annotations

import socket
import threading

import pytest

from flinkpy.connectors.sockets.socket_sink import SocketSink
from flinkpy.connectors.sockets.socket_text import SocketTextSource
from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import RowBatch
from flinkpy.core.errors import ProgramError, RecipientUnreachableError
from flinkpy.operators.base import InputStatus
from tests.connectors.harness import ManualTimers, World, operator_context


class Server:
    """Accepts one connection after another, and says what the test wants."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(10)
        self.port: int = self.listener.getsockname()[1]

    def accept(self) -> socket.socket:
        connection, _ = self.listener.accept()
        connection.settimeout(10)
        return connection

    def close(self) -> None:
        self.listener.close()


def read_until(world: World, count: int | None) -> None:
    """Polls when woken, until there are so many records, or (None) the end."""
    operator, output = world.subtasks[0].operator, world.subtasks[0].output
    woken = threading.Event()
    operator.wake_up = woken.set
    while count is None or len(output.values) < count:
        while world.mail:
            world.mail.pop(0)()
        status = operator.emit_next()
        if status is InputStatus.END_OF_INPUT:
            return
        if status is InputStatus.NOTHING_AVAILABLE and not world.mail:
            assert woken.wait(10)
            woken.clear()


def test_lines_come_as_they_are_sent_and_end_with_the_connection() -> None:
    server = Server()
    world = World(SocketTextSource("127.0.0.1", server.port))
    answers = threading.Thread(target=lambda: _send(server, [b"one\ntwo\r\nth", b"ree\n\nlast"]))
    answers.start()
    read_until(world, None)
    answers.join()
    assert world.values == ["one", "two", "three", "", "last"]
    world.close()
    server.close()


def _send(server: Server, parts: list[bytes]) -> None:
    connection = server.accept()
    for part in parts:
        connection.sendall(part)
    connection.close()


def test_a_line_is_there_before_the_connection_ends() -> None:
    server = Server()
    world = World(SocketTextSource("127.0.0.1", server.port))
    connections: list[socket.socket] = []

    def answer() -> None:
        connections.append(server.accept())
        connections[0].sendall(b"now\nlat")

    answers = threading.Thread(target=answer)
    answers.start()
    read_until(world, 1)
    answers.join()
    assert world.values == ["now"]
    world.close()
    connections[0].close()
    server.close()


def test_another_delimiter_cuts_the_text() -> None:
    server = Server()
    world = World(SocketTextSource("127.0.0.1", server.port, delimiter="||"))
    answers = threading.Thread(target=lambda: _send(server, [b"a\nb|", b"|c"]))
    answers.start()
    read_until(world, None)
    answers.join()
    assert world.values == ["a\nb", "c"]
    world.close()
    server.close()


def test_a_lost_connection_is_tried_again() -> None:
    server = Server()
    world = World(SocketTextSource("127.0.0.1", server.port, max_retries=-1))

    def answer() -> None:
        _send(server, [b"one\n"])
        connection = server.accept()
        connection.sendall(b"two\n")
        connection.recv(1)  # until the client goes
        connection.close()

    answers = threading.Thread(target=answer)
    answers.start()
    read_until(world, 2)
    assert world.values == ["one", "two"]
    world.close()
    answers.join(10)
    server.close()


def test_a_server_that_was_never_there_is_an_error() -> None:
    server = Server()
    server.close()
    world = World(SocketTextSource("127.0.0.1", server.port))
    with pytest.raises(
        ProgramError,
        match=(
            f"nobody listens at 127.0.0.1:{server.port}.*start the server first or set max_retries"
        ),
    ):
        read_until(world, 1)
    world.close()


def test_with_many_readers_one_reads_and_the_others_end() -> None:
    server = Server()
    world = World(SocketTextSource("127.0.0.1", server.port), parallelism=3)
    answers = threading.Thread(target=lambda: _send(server, [b"one\n"]))
    answers.start()
    for subtask in world.subtasks:
        assert subtask.operator.emit_next() is InputStatus.NOTHING_AVAILABLE
    while world.mail:
        world.mail.pop(0)()
    for subtask in world.subtasks[1:]:
        assert subtask.operator.emit_next() is InputStatus.END_OF_INPUT
    read_until(world, None)
    answers.join()
    assert world.values == ["one"]
    world.close()
    server.close()


def test_a_wrong_port_is_refused() -> None:
    with pytest.raises(ProgramError, match="port 0"):
        SocketTextSource("localhost", 0)


# -- the sink --------------------------------------------------------------------------------------


def test_a_socket_sink_sends_a_line_per_record() -> None:
    server = Server()
    sink = SocketSink("127.0.0.1", server.port)
    writer = sink.create_writer(operator_context())
    connection = server.accept()
    writer.write_batch(RowBatch([1, "two", (3, 4)]))
    writer.finish()
    writer.close()
    assert connection.makefile("rb").read() == b"1\ntwo\n(3, 4)\n"
    connection.close()
    server.close()


def test_records_are_serialised_by_the_users_function() -> None:
    server = Server()
    sink = SocketSink("127.0.0.1", server.port, lambda value: bytes([value]))
    writer = sink.create_writer(operator_context())
    connection = server.accept()
    writer.write_batch(RowBatch([65, 66]))
    writer.close()
    assert connection.recv(10) == b"AB"
    connection.close()
    server.close()


def test_a_slow_server_makes_the_sink_unavailable_until_it_reads() -> None:
    server, clock = Server(), ManualClock()
    timers = ManualTimers(clock)
    sink = SocketSink("127.0.0.1", server.port)
    writer = sink.create_writer(operator_context(clock=clock, timers=timers))
    told: list[bool] = []
    writer.set_listener(lambda: told.append(writer.available))
    connection = server.accept()
    batch, written = RowBatch(["x" * 99_999]), 0
    while writer.available:
        writer.write_batch(batch)
        written += 1
    assert written < 1000
    received = 0
    while received < written * 100_000:
        received += len(connection.recv(1 << 20))
        clock.advance(0.02)
        timers.fire()
    assert told == [True]
    assert received == written * 100_000
    assert timers.next_due() is None
    writer.close()
    connection.close()
    server.close()


def test_a_server_that_goes_away_fails_the_sink() -> None:
    server = Server()
    sink = SocketSink("127.0.0.1", server.port)
    writer = sink.create_writer(operator_context())
    server.accept().close()

    def write_on() -> None:
        for _ in range(1000):
            writer.write_batch(RowBatch(["x" * 10_000]))

    with pytest.raises(
        RecipientUnreachableError, match=f"the server at 127.0.0.1:{server.port} is gone"
    ):
        write_on()
    writer.close()
    server.close()


def test_a_server_that_is_not_there_is_named() -> None:
    server = Server()
    server.close()
    with pytest.raises(RecipientUnreachableError, match="cannot be reached"):
        SocketSink("127.0.0.1", server.port).create_writer(operator_context())


def test_a_port_that_is_none_is_refused() -> None:
    for port in (0, 65536, "9000", None):
        with pytest.raises(ProgramError, match="is not a whole number between 1 and 65535"):
            SocketTextSource("127.0.0.1", port)  # type: ignore[arg-type]
