from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from secrets import token_bytes as draw
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import (
    Batch,
    CheckpointBarrier,
    ColumnBatch,
    Element,
    EndOfData,
    EndOfPartition,
    RowBatch,
    Watermark,
)
from flinkpy.core.errors import (
    ConfigurationError,
    EngineError,
    NetworkProtocolError,
    PartitionNotFoundError,
    ProgramError,
    TaskExecutorLostError,
)
from flinkpy.core.options.tls.tls_files import TlsFiles
from flinkpy.graph.deployment import TaskManagerLocation
from flinkpy.graph.partitioning import REBALANCE
from flinkpy.network import shuffle
from flinkpy.network.encoding.frames import FrameKind, encode_header
from flinkpy.network.port import InputGate
from flinkpy.network.wire import data_port
from flinkpy.network.wire.data_port import reach
from flinkpy.network.wire.handshake import Handshake
from flinkpy.network.wire.remote_channel import PartitionRequest
from flinkpy.network.wire.tls_transport import TlsTransport
from tests.network.helpers import (
    SECRET,
    SMALL,
    Cluster,
    attempt,
    cluster,
    has_room,
    partition_id,
    poll_all,
    records,
)
from tests.web.certificates import Authority

SOURCE, SINK = attempt("source"), attempt("sink")


@pytest.fixture(
    scope="module",
    autouse=True,
    params=["unix", "tcp", pytest.param("tls", marks=pytest.mark.wide)],
)
def between_processes_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """One host, where the sides meet at a Unix socket, or two; and with certificates."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "tcp":
            patch.setattr(data_port, "near_name", lambda address: None)
        if request.param == "tls":
            authority = Authority(tmp_path_factory.mktemp("tls"), "authority")
            signed = authority.sign("worker")
            files = TlsFiles(
                "security.ssl.internal",
                str(signed.certificate),
                str(signed.key),
                truststore=str(authority.certificate),
            )
            patch.setattr(shuffle, "Sockets", lambda: TlsTransport(data_port.Sockets(), files))
        yield


def end_reached(made: Cluster, gate: InputGate) -> list[Element]:
    got: list[Element] = []

    def finished() -> bool:
        made.held_up.step()
        got.extend(element for _, element in poll_all(gate))
        return gate.finished or bool(made.errors)

    made.reactor.run_until(finished, what="the end of the gate")
    assert made.errors == []
    return got


@pytest.mark.parametrize("consumer_at", ["a", "b"])
@pytest.mark.parametrize("consumer_first", [True, False])
def test_everything_arrives_in_order_and_all_is_given_back(
    consumer_at: str, consumer_first: bool
) -> None:
    with cluster("a", "b") as made:
        gate = made.gate(consumer_at, SINK, [("a", SOURCE)]) if consumer_first else None
        if consumer_first:
            made.reactor.settle()
        writer = made.writer("a", SOURCE)
        batch = RowBatch(list(range(10)), list(range(10)))
        writer.emit(batch)
        writer.emit_control(Watermark(9))
        writer.emit_control(CheckpointBarrier(1, 2))
        writer.emit(RowBatch(["x", (1, 2)]))
        writer.flush()
        writer.emit_control(EndOfData())
        made.services["a"].finish_partitions(SOURCE)
        made.services["a"].release(SOURCE)
        gate = gate or made.gate(consumer_at, SINK, [("a", SOURCE)])
        assert end_reached(made, gate) == [
            batch,
            Watermark(9),
            CheckpointBarrier(1, 2),
            RowBatch(["x", (1, 2)]),
            EndOfData(),
            EndOfPartition(),
        ]
        made.services[consumer_at].release(SINK)
        made.services[consumer_at].release(SINK)
        made.reactor.settle()
        assert made.in_use() == {"a": 0, "b": 0}
        assert all(
            (each.partitions, each.gates) == (0, 0)
            for each in (service.statistics() for service in made.services.values())
        )


def test_one_connection_carries_all_channels_of_a_pair_in_both_directions() -> None:
    with cluster("a", "b") as made:
        there, back = [attempt("there", i) for i in range(3)], attempt("back")
        gate = made.gate("b", SINK, [("a", producer) for producer in there])
        made.reactor.settle()
        other = made.gate("a", attempt("other"), [("b", back)])
        writers = [made.writer("a", producer) for producer in there]
        returning = made.writer("b", back)
        for i, writer in enumerate([*writers, returning]):
            writer.emit(RowBatch([i] * 20))
            writer.emit_control(EndOfPartition())
        assert sorted(records(end_reached(made, gate))) == [0] * 20 + [1] * 20 + [2] * 20
        assert records(end_reached(made, other)) == [3] * 20
        assert [service.statistics().connections for service in made.services.values()] == [1, 1]
        made.reactor.settle()
        assert (
            made.services["a"].statistics().bytes_sent
            == made.services["b"].statistics().bytes_received
            > 0
        )


def rows(count: int) -> list[Batch]:
    return [RowBatch([(i, f"value {i}")] * 50) for i in range(count)]


def columns(count: int) -> list[Batch]:
    return [
        ColumnBatch(pa.record_batch({"i": np.full(300, i), "s": [f"value {i}"] * 300}))
        for i in range(count)
    ]


@pytest.mark.parametrize("consumer_at", ["a", "b"])
@pytest.mark.parametrize("make", [rows, columns])
def test_a_stalled_consumer_bounds_what_is_in_flight_and_resumes_without_loss(
    make: Callable[[int], list[Batch]], consumer_at: str
) -> None:
    batches = make(100)
    with cluster("a", "b", config=replace(SMALL, total_segments=64)) as made:
        gate, writer = made.gate(consumer_at, SINK, [("a", SOURCE)]), made.writer("a", SOURCE)
        sent = 0
        for _ in range(50):
            while writer.available and sent < len(batches):
                writer.emit(batches[sent])
                sent += 1
            made.reactor.settle(1)
            assert all(used <= 64 for used in made.in_use().values())
        assert not has_room(writer)
        assert sent < len(batches)
        stalled_at = sent
        told: list[int] = []
        writer.set_listener(lambda: told.append(1))
        got: list[Element] = []

        def all_arrived() -> bool:
            nonlocal sent
            got.extend(element for _, element in poll_all(gate))
            while writer.available and sent < len(batches):
                writer.emit(batches[sent])
                sent += 1
            writer.flush()
            return sum(map(len, got)) == sum(map(len, batches))  # type: ignore[arg-type]

        made.reactor.run_until(all_arrived)
        assert told
        assert stalled_at < sent == len(batches)
        assert records(got) == records(batches)


def test_a_record_larger_than_all_credits_passes() -> None:
    with cluster("a", "b", config=replace(SMALL, total_segments=16)) as made:
        gate, writer = made.gate("b", SINK, [("a", SOURCE)]), made.writer("a", SOURCE)
        big = ["x" * 500_000, "y", "z" * 100_000]
        for value in big:
            writer.emit(RowBatch([value]))
        writer.emit_control(EndOfPartition())
        assert records(end_reached(made, gate)) == big


traffics = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 200)), min_size=1, max_size=25)


@given(traffics, st.integers(24, 80), st.lists(st.booleans(), max_size=10))
@settings(deadline=None, max_examples=25)
def test_any_traffic_through_small_pools_arrives_in_order(
    traffic: list[tuple[int, int]], segments: int, reads: list[bool]
) -> None:
    with cluster("a", "b", config=replace(SMALL, total_segments=segments)) as made:
        sources = [attempt("source", i) for i in range(3)]
        gate = made.gate("b", SINK, [("a", source) for source in sources])
        writers = [made.writer("a", source) for source in sources]
        sent: list[list[Any]] = [[], [], []]
        got: list[list[Any]] = [[], [], []]

        def read() -> None:
            for channel, element in poll_all(gate):
                got[channel] += records([element])

        for at, (channel, count) in enumerate(traffic):
            values = [(channel, at, i) for i in range(count)]
            writers[channel].emit(RowBatch(values))
            sent[channel] += values
            if reads and reads[at % len(reads)]:
                made.reactor.step()
                read()
        for writer in writers:
            writer.emit_control(EndOfPartition())

        def finished() -> bool:
            read()
            assert all(used <= segments for used in made.in_use().values())
            return gate.finished

        made.reactor.run_until(finished)
        assert got == sent


def test_while_a_channel_is_blocked_the_others_go_on() -> None:
    with cluster("a", "b", config=replace(SMALL, total_segments=32)) as made:
        sources = [attempt("source", i) for i in range(2)]
        gate = made.gate("b", SINK, [("a", source) for source in sources])
        first, second = [made.writer("a", source) for source in sources]
        gate.block(0)
        while first.available:
            first.emit(RowBatch(["blocked" * 100] * 20))
            made.reactor.settle(1)
        expected = [f"{i}" * 1500 for i in range(60)]
        for value in expected:
            second.emit(RowBatch([value]))
        second.emit_control(EndOfPartition())
        got: list[Any] = []

        def arrived() -> bool:
            for channel, element in poll_all(gate):
                assert channel == 1
                got.extend(records([element]))
            return len(got) == len(expected)

        made.reactor.run_until(arrived)
        assert got == expected


@pytest.mark.parametrize("side", ["a", "b"])
def test_release_in_mid_stream_gives_back_every_segment_on_both_sides(side: str) -> None:
    with cluster("a", "b") as made:
        told: list[BaseException] = []
        gate, writer = made.gate("b", SINK, [("a", SOURCE)], errors=told), made.writer("a", SOURCE)
        while has_room(writer):
            writer.emit(RowBatch(list(range(64))))
            made.reactor.settle()
        assert gate.poll() is not None
        assert all(made.in_use().values())
        cause = ProgramError("the user's function failed")
        made.services[side].release(SOURCE if side == "a" else SINK, cause)
        made.reactor.settle()
        if side == "a":
            assert [(type(error), str(error)) for error in told] == [
                (ProgramError, "the user's function failed")
            ]
            made.services["b"].release(SINK)
        else:
            assert told == []
            writer.emit(RowBatch(list(range(640))))  # nobody wants it any more
            assert has_room(writer)
            made.services["a"].release(SOURCE)
        made.reactor.settle()
        assert made.in_use() == {"a": 0, "b": 0}


@pytest.mark.parametrize("consumer_at", ["a", "b"])
def test_a_partition_that_never_appears_is_reported_after_the_timeout(consumer_at: str) -> None:
    clock = ManualClock()
    with cluster(
        "a", "b", config=replace(SMALL, partition_request_timeout=timedelta(seconds=3)), clock=clock
    ) as made:
        made.gate(consumer_at, SINK, [("a", SOURCE)])
        made.reactor.settle()
        for _ in range(10):
            assert made.errors == []
            clock.advance(0.301)
            made.reactor.settle()
        assert [type(error) for error in made.errors] == [PartitionNotFoundError]
        assert "subtask 0 (attempt 0) of vertex source" in str(made.errors[0])


@pytest.mark.finding("mechanisms F1")
@pytest.mark.parametrize("consumer_at", ["a", "b"])
def test_a_loop_that_was_held_up_still_waits_for_the_partition(consumer_at: str) -> None:
    clock = ManualClock()
    with cluster(
        "a", "b", config=replace(SMALL, partition_request_timeout=timedelta(seconds=3)), clock=clock
    ) as made:
        gate = made.gate(consumer_at, SINK, [("a", SOURCE)])
        for _ in range(5):
            made.reactor.settle()
            clock.advance(12)  # in one go: a function did not return for so long
        made.reactor.settle()
        writer = made.writer("a", SOURCE)
        writer.emit(RowBatch([1] * 20))
        writer.emit_control(EndOfPartition())
        assert records(end_reached(made, gate)) == [1] * 20


def test_a_lost_connection_is_told_to_every_gate_on_it_and_names_the_peer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with cluster("a", "b") as made, caplog.at_level(logging.WARNING):
        errors: list[list[BaseException]] = [[], []]
        for i, told in enumerate(errors):
            made.gate("b", attempt("sink", i), [("a", attempt("source", i))], errors=told)
        made.reactor.settle()
        made.services["a"].stop()
        made.reactor.settle()
        for told in errors:
            assert [type(error) for error in told] == [TaskExecutorLostError]
            assert "TaskExecutor a (127.0.0.1:" in str(told[0])
        assert made.services["b"].statistics().connections == 0
        assert not caplog.text  # the gates' tasks tell it


def test_a_producer_nobody_listens_at_is_lost() -> None:
    with cluster("b") as made:
        with socket.create_server(("127.0.0.1", 0)) as taken:  # while b has its own port
            port = taken.getsockname()[1]
        from flinkpy.core.ids import IntermediateDataSetId, ResourceId
        from flinkpy.graph.deployment import InputGateDescriptor, ShuffleDescriptor

        nowhere = ShuffleDescriptor(
            partition_id(SOURCE), TaskManagerLocation(ResourceId("gone"), "", "127.0.0.1", port)
        )
        made.services["b"].create_gates(
            SINK,
            [InputGateDescriptor(IntermediateDataSetId("data"), 0, 0, (nowhere,))],
            made.errors.append,
        )
        made.reactor.run_until(lambda: bool(made.errors))
        assert isinstance(made.errors[0], TaskExecutorLostError)
        assert "gone (127.0.0.1" in str(made.errors[0])


def test_records_that_cannot_travel_fail_the_producer_and_its_consumer() -> None:
    with cluster("a", "b") as made:
        producer_told: list[BaseException] = []
        consumer_told: list[BaseException] = []
        made.gate("b", SINK, [("a", SOURCE)], errors=consumer_told)
        made.reactor.settle()
        writer = made.writer("a", SOURCE, errors=producer_told)
        writer.emit(RowBatch([(i for i in range(3))]))
        writer.flush()
        made.reactor.settle()
        assert [type(error) for error in producer_told + consumer_told] == [
            ProgramError,
            ProgramError,
        ]


class Unreadable:
    def __reduce__(self) -> tuple[Any, ...]:
        return (int, ("not a number",))


def test_records_that_cannot_be_read_fail_their_gate_only() -> None:
    with cluster("a", "b") as made:
        other = attempt("other")
        bad: list[BaseException] = []
        made.gate("b", SINK, [("a", SOURCE)], errors=bad)
        gate = made.gate("b", attempt("sink", 1), [("a", other)])
        bad_writer, writer = made.writer("a", SOURCE), made.writer("a", other)
        bad_writer.emit(RowBatch([Unreadable()]))
        bad_writer.flush()
        writer.emit(RowBatch([1] * 20))
        writer.emit_control(EndOfPartition())
        assert records(end_reached(made, gate)) == [1] * 20
        made.reactor.settle()
        assert [type(error) for error in bad] == [ProgramError]
        assert "not a number" in str(bad[0])


def test_tasks_fit_as_long_as_what_each_must_have_is_half_of_the_memory() -> None:
    """Gates that come first take more than they must have, and still leave enough for those that
    come last."""
    with cluster("a", "b", config=replace(SMALL, total_segments=512)) as made:
        # each needs two segments for each of two channels, and two for its partition: 240 in all
        for subtask in range(40):
            consumer = attempt("consumer", subtask)
            made.gate("b", consumer, [("a", attempt("source", producer)) for producer in range(2)])
        for subtask in range(40):
            made.writer("b", attempt("consumer", subtask), channels=2)
        assert (
            made.services["b"].statistics().gates
            == made.services["b"].statistics().partitions
            == 40
        )


def test_too_little_memory_is_refused_with_the_option_to_change() -> None:
    with cluster("a", "b", config=replace(SMALL, total_segments=5)) as made:
        with pytest.raises(
            ConfigurationError,
            match=r"needs at least 8 segments, 5 of 5.*taskmanager\.memory\.network\.size",
        ):
            made.gate("b", SINK, [("a", attempt("source", i)) for i in range(4)])
        assert made.services["b"].statistics().gates == 0
        assert made.in_use() == {"a": 0, "b": 0}


def test_asking_for_a_subpartition_that_is_not_there_or_twice_is_a_bug() -> None:
    with cluster("a", "b") as made:
        made.writer("a", SOURCE)
        made.gate("b", SINK, [("a", SOURCE)])
        made.gate("b", attempt("sink", 1), [("a", SOURCE)])
        made.gate("b", attempt("sink", 2), [("a", SOURCE)], index=7)
        made.reactor.settle()
        assert [type(error) for error in made.errors] == [EngineError, EngineError]


def test_a_shuffle_over_many_channels_delivers_everything_once() -> None:
    # the gates are read one after the other here
    with cluster("a", "b", "c", config=replace(SMALL, max_buffers_per_channel=20)) as made:
        sources = [
            ("a", attempt("source", 0)),
            ("b", attempt("source", 1)),
            ("c", attempt("source", 2)),
        ]
        sinks = [made.gate("abc"[i], attempt("sink", i), sources, index=i) for i in range(3)]
        writers = [made.writer(where, source, 3, REBALANCE) for where, source in sources]
        for i, writer in enumerate(writers):
            for j in range(20):
                writer.emit(RowBatch([(i, j, k) for k in range(30)]))
            writer.emit_control(EndOfPartition())
        got = [value for gate in sinks for value in records(end_reached(made, gate))]
        assert sorted(got) == [(i, j, k) for i in range(3) for j in range(20) for k in range(30)]


# -- bad peers -------------------------------------------------------------------------------------


def without_tls() -> None:
    """For tests of what others say on the wire: with certificates, they say it in TLS."""
    if vars(shuffle)["Sockets"] is not data_port.Sockets:
        pytest.skip("it speaks no TLS")


def stranger(made: Cluster, name: str = "a") -> socket.socket:
    without_tls()
    address = made.services[name].data_address
    sock, is_connected = reach(address)
    if not is_connected:
        sock.settimeout(None)
        sock.connect(address)
        sock.settimeout(0)
    return sock


def says(sock: socket.socket, data: bytes) -> Callable[[Cluster], None]:
    def act(made: Cluster) -> None:
        made.reactor.settle()
        sock.send(data)
        made.reactor.settle()

    return act


def authenticated(made: Cluster, sock: socket.socket, name: str = "peer") -> None:
    shake = Handshake(SECRET, name, False, draw)
    made.reactor.settle()
    sock.send(shake.greeting() + shake.receive(sock.recv(1024)))
    made.reactor.settle()
    shake.receive(sock.recv(1024))
    assert shake.peer_id == "a"


def frame(
    kind: int,
    payload: bytes = b"",
    *,
    channel: int = 1,
    sequence: int = 0,
    segments: int = 0,
    length: int | None = None,
) -> bytes:
    return (
        encode_header(
            kind, 0, 1, channel, sequence, segments, 0, len(payload) if length is None else length
        )
        + payload
    )


REQUEST = frame(FrameKind.REQUEST, PartitionRequest(partition_id(SOURCE), 0).encode(), segments=2)
GUESS = Handshake(b"a guess", "intruder", False, draw)
WRONG_SECRET = GUESS.greeting() + GUESS.receive(b"flinkpy\x01" + bytes(32))

before_the_handshake = [
    (b"", "ended before the handshake did"),
    (b"GET / HTTP/1.1\r\n\r\n", "not a flinkpy connection"),
    (WRONG_SECRET, "does not know the cluster's secret"),
    (b"flinkpy\x02" + bytes(80), "of another version"),
    (REQUEST, "not a flinkpy connection"),
]
after_the_handshake = [
    (b"\x00" * 100, "not a frame"),
    (
        frame(FrameKind.REQUEST, length=SMALL.max_frame + 1),
        "more than taskmanager.network.max-frame-size",
    ),
    (REQUEST[:-3], "ended inside a frame"),
    (REQUEST + REQUEST, "requested twice"),
    (frame(FrameKind.CREDIT, segments=1), "was never requested"),
    (frame(FrameKind.ROWS, b"x"), "was never asked for"),
    (frame(FrameKind.REQUEST, b"\x80\x05N.", segments=1), "malformed partition request"),
    (frame(FrameKind.REQUEST, b"x"), "at least one exclusive segment"),
    (frame(FrameKind.REQUEST, b"garbage", segments=1), "malformed partition request"),
]


every_case = [
    *((*case, False) for case in before_the_handshake),
    *((*case, True) for case in after_the_handshake),
]


@pytest.mark.parametrize(
    ("data", "message", "knows_secret"), every_case, ids=range(len(every_case))
)
def test_a_bad_peer_is_closed_and_logged_while_a_good_transfer_goes_on(
    data: bytes, message: str, knows_secret: bool, caplog: pytest.LogCaptureFixture
) -> None:
    good_source = attempt("good")
    with cluster("a", "b") as made, stranger(made) as sock, caplog.at_level(logging.WARNING):
        gate, writer = made.gate("b", SINK, [("a", good_source)]), made.writer("a", good_source)
        writer.emit(RowBatch([1] * 20))
        if knows_secret:
            authenticated(made, sock)
        else:
            made.reactor.settle()
        sock.send(data)
        sock.shutdown(socket.SHUT_WR)
        made.reactor.run_until(lambda: made.services["a"].statistics().connections == 1)
        assert message in caplog.text
        writer.emit(RowBatch([2] * 20))
        writer.emit_control(EndOfPartition())
        assert records(end_reached(made, gate)) == [1] * 20 + [2] * 20


def test_a_slow_handshake_times_out(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    with cluster("a", clock=clock) as made, stranger(made) as sock:
        made.reactor.settle()
        sock.send(b"flinkpy\x01")
        made.reactor.settle()
        assert made.services["a"].statistics().connections == 1
        clock.advance(30.1)
        made.reactor.settle()
        assert made.services["a"].statistics().connections == 0
        assert "no handshake within 30 s (see taskmanager.network.connect-timeout)" in caplog.text


@pytest.mark.finding("mechanisms F1")
def test_what_came_in_time_counts_however_late_it_is_read(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    with cluster("a", clock=clock) as made, stranger(made) as sock:
        made.reactor.settle()
        shake = Handshake(SECRET, "peer", False, draw)
        sock.send(shake.greeting() + shake.receive(sock.recv(1024)))
        clock.advance(30.1)  # before anybody has looked at the socket
        made.reactor.settle()
        assert made.services["a"].statistics().connections == 1
        assert "no handshake" not in caplog.text


@pytest.mark.finding("mechanisms F1")
@pytest.mark.parametrize("busy", ["a", "b"])
def test_connections_are_made_while_a_process_is_in_a_function_of_the_users(busy: str) -> None:
    """Whose loop stands still; its other reactor, on which connections are made, does not."""
    clock = ManualClock()
    with cluster("a", "b", held_up=busy, clock=clock) as made:
        gate, writer = made.gate("b", SINK, [("a", SOURCE)]), made.writer("a", SOURCE)
        writer.emit(RowBatch([1] * 20))
        writer.emit_control(EndOfPartition())
        made.reactor.settle()
        clock.advance(60)
        made.reactor.settle()
        assert records(end_reached(made, gate)) == [1] * 20


def test_a_producer_that_takes_connections_and_says_nothing_is_lost_after_the_timeout() -> None:
    clock = ManualClock()
    with cluster(
        "b", config=replace(SMALL, connect_timeout=timedelta(seconds=3)), clock=clock
    ) as made:
        producer = Producer(made)
        producer.gate()
        made.reactor.settle()
        clock.advance(2.9)
        made.reactor.settle()
        assert made.errors == []
        clock.advance(0.2)
        made.reactor.settle()
        assert [type(error) for error in made.errors] == [NetworkProtocolError]
        assert "TaskExecutor rogue (127.0.0.1" in str(made.errors[0])
        assert "no handshake within 3 s" in str(made.errors[0])
        producer.listener.close()


def test_strangers_are_limited_in_number(caplog: pytest.LogCaptureFixture) -> None:
    with cluster("a") as made:
        socks = []
        for _ in range(70):
            socks.append(stranger(made))
            made.reactor.step()
        made.reactor.settle()
        assert made.services["a"].statistics().connections == 64
        assert "have not proved yet to know the secret" in caplog.text
        for sock in socks:
            sock.close()
        made.reactor.settle()


class Producer:
    """A data port that behaves until the test says otherwise."""

    def __init__(self, made: Cluster, secret: bytes = SECRET) -> None:
        without_tls()
        self._made = made
        self.listener = socket.create_server(("127.0.0.1", 0))
        self._shake = Handshake(secret, "rogue", True, draw)

    def gate(self) -> InputGate:
        from flinkpy.core.ids import IntermediateDataSetId, ResourceId
        from flinkpy.graph.deployment import InputGateDescriptor, ShuffleDescriptor

        location = TaskManagerLocation(ResourceId("rogue"), "", *self.listener.getsockname())
        descriptor = InputGateDescriptor(
            IntermediateDataSetId("data"),
            0,
            0,
            (ShuffleDescriptor(partition_id(SOURCE), location),),
        )
        gate = self._made.services["b"].create_gates(SINK, [descriptor], self._made.errors.append)[
            0
        ]
        self._made.reactor.settle()
        return gate

    def accept(self) -> None:
        self.sock, _ = self.listener.accept()
        self.sock.send(self._shake.greeting())
        self._made.reactor.settle()
        self.sock.send(self._shake.receive(self.sock.recv(1024)))
        self._made.reactor.settle()

    def close(self) -> None:
        self.sock.close()
        self.listener.close()


def rows_frame(sequence: int, segments: int = 1) -> bytes:
    import pickle

    return frame(FrameKind.ROWS, pickle.dumps([sequence]), sequence=sequence, segments=segments)


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (
            rows_frame(0) + rows_frame(0),
            "frame 0 came where 1 was expected: one is lost or doubled",
        ),
        (
            rows_frame(0) + rows_frame(2),
            "frame 2 came where 1 was expected: one is lost or doubled",
        ),
        (rows_frame(0, segments=10_000), "10000 segments arrived on a channel with"),
        (frame(FrameKind.COLUMNS, b"x"), "columns arrived before their schema"),
        (frame(FrameKind.WATERMARK, b"x"), "a malformed WATERMARK"),
        (struct.pack("<28x"), "not a frame"),
    ],
)
def test_a_producer_that_breaks_the_protocol_fails_the_gate(
    stream: bytes, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with cluster("b") as made:
        producer = Producer(made)
        producer.gate()
        producer.accept()
        producer.sock.send(stream)
        made.reactor.settle()
        producer.close()
        assert [type(error) for error in made.errors] == [NetworkProtocolError]
        assert message in str(made.errors[0])
        assert message in caplog.text
        assert made.services["b"].statistics().connections == 0


def test_a_producer_without_the_secret_is_not_believed() -> None:
    with cluster("b") as made:
        producer = Producer(made, b"a guess")
        producer.gate()
        with pytest.raises(NetworkProtocolError, match="does not know the cluster's secret"):
            producer.accept()
        producer.sock.send(b"\x05rogue" + bytes(32))
        made.reactor.settle()
        producer.close()
        assert "does not know the cluster's secret" in str(made.errors[0])
