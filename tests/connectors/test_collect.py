from __future__ import annotations

import logging
import os
import pickle
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.connectors.collect import collect_server
from flinkpy.connectors.collect.collect_server import CollectServer, CollectSink
from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import ColumnBatch, RowBatch
from flinkpy.core.errors import JobRestartedError, NetworkProtocolError, RecipientUnreachableError
from flinkpy.network.wire.client_channel import HEADER, KIND_BATCH
from flinkpy.network.wire.handshake import MAGIC, NONCE_BYTES, Handshake
from tests.connectors.harness import ManualTimers, operator_context
from tests.waiting import eventually


def write(
    sink: CollectSink, batches: list[list[Any]], finish: bool = True, subtask: int = 0
) -> None:
    """A sink subtask, on the thread of its slot."""
    writer = sink.create_writer(operator_context(subtask, 2))
    try:
        for batch in batches:
            writer.write_batch(RowBatch(batch))
        if finish:
            writer.finish()
    finally:
        writer.close()


def on_thread(*args: Any) -> threading.Thread:
    thread = threading.Thread(target=write, args=args)
    thread.start()
    return thread


def fresh(server: CollectServer) -> CollectSink:
    sink: CollectSink = pickle.loads(pickle.dumps(server.sink()))
    return sink


def test_records_come_in_order_and_iterating_ends_with_the_job() -> None:
    with CollectServer() as server:
        thread = on_thread(fresh(server), [[1, 2], ["three"], [(4, None)]])
        records = iter(server)
        assert [next(records) for _ in range(4)] == [1, 2, "three", (4, None)]
        thread.join()
        server.job_ended()
        assert list(records) == []
        assert server.statistics().ended == 1


def test_each_subtasks_records_keep_their_order() -> None:
    with CollectServer(queue_bytes=1000) as server:
        threads = [
            on_thread(fresh(server), [[(subtask, number)] for number in range(500)], True, subtask)
            for subtask in range(2)
        ]

        def end_the_job() -> None:
            for thread in threads:
                thread.join()
            server.job_ended()

        ended = threading.Thread(target=end_the_job)
        ended.start()
        records = list(server)
        ended.join()
    assert len(records) == 1000
    for subtask in range(2):
        assert [number for whose, number in records if whose == subtask] == list(range(500))


def test_columns_arrive_as_columns_or_as_rows() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", None]})
    for expected in ("rows", "batches"):
        with CollectServer() as server:
            sink = fresh(server)
            writer = sink.create_writer(
                operator_context()
            )  # the server answers on a thread of its own
            writer.write_batch(ColumnBatch(batch))
            writer.finish()
            writer.close()
            server.job_ended()
            if expected == "rows":
                assert [tuple(row) for row in server] == [(1, "x"), (2, None)]
            else:
                assert list(server.batches()) == [ColumnBatch(batch)]


def test_records_of_a_class_made_in_the_program_arrive_as_that_class() -> None:
    class Local:
        def __init__(self, number: int) -> None:
            self.number = number

    with CollectServer() as server:
        write_thread = on_thread(fresh(server), [[Local(7)]])
        write_thread.join()
        server.job_ended()
        [record] = server
        assert isinstance(record, Local)
        assert record.number == 7


def attempt_of(
    server: CollectServer, attempt: int, batches: list[list[Any]], subtask: int = 0
) -> None:
    """An attempt of a subtask, until the client has all of it."""
    before = server.statistics().ended
    sink = fresh(server)
    context = operator_context(subtask, 2)
    writer = sink.create_writer(
        replace(
            context,
            task=replace(
                context.task, attempt_id=context.task.attempt_id._replace(attempt=attempt)
            ),
        )
    )
    for batch in batches:
        writer.write_batch(RowBatch(batch))
    writer.finish()
    writer.close()
    eventually(lambda: server.statistics().ended == before + 1)


def test_what_an_earlier_attempt_sent_is_dropped_unless_it_was_given_out() -> None:
    with CollectServer() as server:
        attempt_of(server, 0, [["old"]])
        attempt_of(server, 0, [["other"]], subtask=1)
        attempt_of(server, 1, [["new"], ["newer"]])
        server.job_ended()
        assert sorted(server) == ["new", "newer", "other"]


def test_what_an_earlier_attempt_sends_behind_a_later_ones_beginning_is_dropped() -> None:
    with CollectServer() as server:
        slow = fresh(server).create_writer(operator_context(0, 2))
        attempt_of(server, 1, [["new"]])
        slow.write_batch(RowBatch(["old"]))
        slow.finish()
        slow.close()
        eventually(lambda: server.statistics().ended == 2)
        server.job_ended()
        assert list(server) == ["new"]


def test_iterating_ends_where_what_was_given_out_comes_again() -> None:
    with CollectServer() as server:
        attempt_of(server, 0, [["old"], ["older"]])
        records = iter(server)
        assert next(records) == "old"
        attempt_of(server, 1, [["new"]])
        with pytest.raises(
            JobRestartedError, match=r"restarted from its beginning.*take\(\), to_arrow\(\)"
        ):
            list(records)


def test_another_subtasks_restart_does_not_end_iterating() -> None:
    with CollectServer() as server:
        attempt_of(server, 0, [["mine"]])
        records = iter(server)
        assert next(records) == "mine"
        attempt_of(server, 0, [["old"]], subtask=1)
        attempt_of(server, 1, [["new"]], subtask=1)
        server.job_ended()
        assert list(records) == ["new"]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(None, ["other", "new", "newer"]), (3, ["other", "new", "newer"]), (2, ["other", "new"])],
)
def test_what_is_gathered_is_of_the_last_attempts(limit: int | None, expected: list[str]) -> None:
    with CollectServer() as server:
        gathered: list[list[str]] = []
        gatherer = threading.Thread(target=lambda: gathered.extend(server.gathered(limit)))
        attempt_of(server, 0, [["old"]])
        gatherer.start()
        eventually(lambda: server.statistics().ended == 1 and server.statistics().queued_bytes == 0)
        attempt_of(server, 1, [])
        eventually(lambda: server.statistics().ended == 2)  # it knows that there is a later attempt
        attempt_of(server, 0, [["other"]], subtask=1)
        attempt_of(server, 2, [["new"], ["newer"]])
        server.job_ended()
        gatherer.join()
        assert [record for batch in gathered for record in batch] == expected


def test_the_jobs_error_is_raised_behind_the_records() -> None:
    with CollectServer() as server:
        write(fresh(server), [[1]], finish=False)
        server.job_ended(ValueError("job failed"))
        seen: list[Any] = []
        with pytest.raises(ValueError, match="job failed"):
            seen.extend(server)
        assert seen == [1]


def test_a_failed_job_does_not_wait_long_for_a_sink_that_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collect_server, "DRAIN_TIMEOUT_S", 1e6)
    monkeypatch.setattr(collect_server, "FAILED_DRAIN_TIMEOUT_S", 0.0)
    with CollectServer() as server:
        writer = fresh(server).create_writer(operator_context(0, 2))
        writer.write_batch(RowBatch([1]))
        records = iter(server)
        assert next(records) == 1
        server.job_ended(ValueError("job failed"))  # the task's function does not return
        with pytest.raises(ValueError, match="job failed"):
            next(records)
        writer.close()


def test_a_sink_with_another_token_is_refused_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with CollectServer() as server, caplog.at_level(logging.WARNING):
        with pytest.raises(RecipientUnreachableError, match="was the token refused"):
            write(CollectSink(server.host, server.port, b"guess"), [["poison"]])
        on_thread(fresh(server), [["good"]]).join()
        server.job_ended()
        assert list(server) == ["good"]
        assert server.statistics().refused == 1
    assert "does not know the token" in caplog.text


def test_nothing_is_unpickled_before_the_token_was_proved() -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return pytest.fail, ("unpickled",)

    with CollectServer() as server:
        for garbage in (
            b"",
            b"x" * 10,
            b"GET / HTTP/1.1\r\n" * 50,
            HEADER.pack(KIND_BATCH, 100) + pickle.dumps(Bomb()) + b"x" * 100,
        ):
            with socket.create_connection((server.host, server.port)) as sock:
                sock.sendall(garbage)
                sock.shutdown(socket.SHUT_WR)
                sock.settimeout(10)
                while sock.recv(4096):
                    pass
        server.job_ended()
        assert list(server) == []


def test_an_oversized_frame_is_refused() -> None:
    with CollectServer() as server:
        with socket.create_connection((server.host, server.port)) as sock:
            sock.settimeout(10)
            handshake = Handshake(server.token, "task", False, os.urandom)
            sock.sendall(handshake.greeting() + handshake.receive(sock.recv(1000)))
            sock.sendall(HEADER.pack(KIND_BATCH, 1 << 40))
            while sock.recv(1000):
                pass
        assert server.statistics().refused == 1


def test_a_sink_does_not_send_to_a_server_that_does_not_know_the_token() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def pretend() -> None:
        connection, _ = listener.accept()
        connection.sendall(MAGIC + b"s" * NONCE_BYTES)
        connection.recv(1000)
        connection.sendall(b"\x06client" + b"p" * 32)
        while connection.recv(1000):
            pass
        connection.close()

    thread = threading.Thread(target=pretend)
    thread.start()
    with pytest.raises(NetworkProtocolError, match="does not know the token"):
        write(CollectSink("127.0.0.1", listener.getsockname()[1], b"token"), [])
    thread.join()
    listener.close()


def test_a_client_that_does_not_iterate_holds_the_sink_back_and_nothing_grows() -> None:
    clock = ManualClock()
    timers = ManualTimers(clock)
    with CollectServer(queue_bytes=100_000) as server:
        sink = fresh(server)
        told: list[bool] = []
        writer = sink.create_writer(operator_context(clock=clock, timers=timers))
        writer.set_listener(lambda: told.append(writer.available))
        written = 0
        while writer.available:
            writer.write_batch(RowBatch(["x" * 50_000] * 2))
            written += 2
        assert server.statistics().queued_bytes < 1_000_000
        records = iter(server)
        received = 0
        while not told:
            next(records)
            received += 1
            clock.advance(0.02)
            timers.fire()
        assert told == [True]

        def is_flushed() -> bool:
            clock.advance(0.02)
            timers.fire()
            return writer.flushed

        def finish() -> None:
            writer.finish()
            eventually(is_flushed)
            writer.close()
            server.job_ended()

        finisher = threading.Thread(target=finish)
        finisher.start()
        received += len(list(records))
        finisher.join()
        assert received == written


def test_a_client_that_is_gone_fails_the_sink_clearly() -> None:
    server = CollectServer()
    with ThreadPoolExecutor(1) as on_a_thread:
        writer = on_a_thread.submit(fresh(server).create_writer, operator_context()).result()
    server.close()

    def write_on() -> None:
        for _ in range(1000):
            writer.write_batch(RowBatch(["x" * 10_000]))

    with pytest.raises(
        RecipientUnreachableError, match=r"the client collecting results at .* is gone"
    ):
        write_on()
    writer.close()
    assert list(server) == []


def test_closing_twice_and_ending_after_close_do_no_harm() -> None:
    server = CollectServer()
    server.close()
    server.close()
    server.job_ended()
    assert list(server) == []
    with pytest.raises(RecipientUnreachableError, match="cannot be reached"):
        write(server.sink(), [[1]])
