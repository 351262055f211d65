"""The bytes of requests and answers with which transactions are ended, and the sentences for what a
broker refuses. No broker."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.connectors.kafka.writing import wire
from flinkpy.connectors.kafka.writing.transaction_client import (
    TransactionClient,
    TransactionLostError,
    _address,
    explained,
)
from flinkpy.connectors.kafka.writing.wire import Answer, Api, Coordinator, ErrorCode, ProducerId
from flinkpy.core.clock import SystemClock
from flinkpy.core.errors import ProgramError

IDS = st.text(min_size=1, max_size=50)
INT64, INT16 = st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1)


def test_a_request_is_its_length_its_kind_its_number_the_client_and_its_body() -> None:
    assert wire.request(Api.END_TXN, 7, b"body") == (
        b"\x00\x00\x00\x15\x00\x1a\x00\x00\x00\x00\x00\x07\x00\x07flinkpybody"
    )


def test_the_bytes_of_each_request() -> None:
    producer = ProducerId(258, 3)
    assert wire.find_coordinator("tx") == b"\x00\x02tx\x01"
    assert wire.init_producer_id("tx", 60_000) == b"\x00\x02tx\x00\x00\xea\x60"
    assert (
        wire.end_txn("tx", producer, commit=True)
        == b"\x00\x02tx" + b"\x00\x00\x00\x00\x00\x00\x01\x02" + b"\x00\x03" + b"\x01"
    )
    assert wire.end_txn("tx", producer, commit=False).endswith(b"\x00\x03\x00")
    assert wire.sasl_handshake("PLAIN") == b"\x00\x05PLAIN"
    assert wire.sasl_authenticate(b"\x00a\x00b") == b"\x00\x00\x00\x04\x00a\x00b"


@given(IDS, INT64, INT16)
def test_what_is_written_is_what_a_broker_reads(
    transactional_id: str, number: int, epoch: int
) -> None:
    read = Answer(wire.end_txn(transactional_id, ProducerId(number, epoch), commit=True))
    assert (read.text(), read.int64(), read.int16()) == (transactional_id, number, epoch)


def test_answers_are_read() -> None:
    coordinator = b"\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00\x00\x05\x00\x04host\x00\x00\x23\x84"
    assert wire.found_coordinator(Answer(coordinator)) == (0, "", Coordinator("host", 9092))
    refused = b"\x00\x00\x00\x00\x00\x0f\x00\x03why\xff\xff\xff\xff\x00\x00\xff\xff\xff\xff"
    assert wire.found_coordinator(Answer(refused))[:2] == (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        "why",
    )
    assert wire.new_producer_id(Answer(b"\0\0\0\0\0\0" + struct.pack(">qh", 9, 2))) == (
        0,
        ProducerId(9, 2),
    )
    assert wire.ended_txn(Answer(b"\0\0\0\0\x00\x5a")) == ErrorCode.PRODUCER_FENCED
    assert wire.shaken_hands(Answer(b"\x00\x21\x00\x00\x00\x01\x00\x05PLAIN")) == (33, ["PLAIN"])
    assert wire.authenticated(Answer(b"\x00\x00\xff\xff\x00\x00\x00\x02ok")) == (0, "", b"ok")


@given(st.binary(max_size=17))
def test_an_answer_that_is_too_short_is_told_as_such(data: bytes) -> None:
    with pytest.raises(EOFError, match="too short"):
        wire.found_coordinator(Answer(data))


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (
            ErrorCode.INVALID_PRODUCER_EPOCH,
            TransactionLostError,
            "are lost: either it was open for longer than transaction.timeout.ms",
        ),
        (
            ErrorCode.PRODUCER_FENCED,
            TransactionLostError,
            "another job writes with the same transactional id prefix",
        ),
        (
            ErrorCode.INVALID_TXN_STATE,
            TransactionLostError,
            r"aborted by the broker, and the records of its checkpoint are lost.*\(5000 ms\)",
        ),
        (
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            TransactionLostError,
            "has forgotten.*ignore_lost_transactions",
        ),
        (
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            ProgramError,
            "does not allow transaction.timeout.ms=5000: it is larger than the broker's",
        ),
        (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ProgramError,
            "rights Write and Describe",
        ),
        (87, ProgramError, "refuses to end Kafka transaction 'tx-0-1': error 87"),
    ],
)
def test_each_refusal_is_a_sentence_that_names_the_transaction_or_what_to_change(
    error: int, kind: type[Exception], says: str
) -> None:
    found = explained(error, "tx-0-1", 5000)
    assert type(found) is kind
    with pytest.raises(kind, match=says):
        raise found


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("kafka", Coordinator("kafka", 9092)),
        ("kafka:1", Coordinator("kafka", 1)),
        ("PLAINTEXT://kafka:1", Coordinator("kafka", 1)),
        ("[::1]:9", Coordinator("::1", 9)),
        ("[::1]", Coordinator("::1", 9092)),
    ],
)
def test_a_broker_has_an_address(server: str, address: Coordinator) -> None:
    assert _address(server) == address


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"bootstrap\.servers is host:port"):
        _address("kafka:port")


# -- a scripted broker -----------------------------------------------------------------------------


@contextmanager
def scripted_broker(answer: Callable[[int, bytes], bytes | None]) -> Iterator[int]:
    """Answers each request with ``answer(kind, body)``; None closes the connection. Gives its
    port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rwb") as stream:
                while head := stream.read(4):
                    message = stream.read(struct.unpack(">i", head)[0])
                    api, _, number, name = struct.unpack(">hhih", message[:10])
                    made = answer(api, message[10 + name :])
                    if made is None:
                        break
                    stream.write(struct.pack(">ii", len(made) + 4, number) + made)
                    stream.flush()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def here(port: int) -> bytes:
    return b"\0\0\0\0\0\0\xff\xff\0\0\0\0" + wire.text("127.0.0.1") + struct.pack(">i", port)


def commit_at(port: int, **settings: str) -> None:
    servers = {"bootstrap.servers": f"127.0.0.1:{port}", "transaction.timeout.ms": "5000"}
    with closing(TransactionClient({**servers, **settings}, SystemClock())) as client:
        client.commit("tx", ProducerId(1, 0))


@pytest.mark.parametrize("passing", [*sorted(wire.PASSING), None], ids=str)
def test_a_broker_that_is_busy_or_goes_away_is_asked_again(passing: int | None) -> None:
    asked: list[int] = []

    def answer(api: int, body: bytes) -> bytes | None:
        if api == Api.FIND_COORDINATOR:
            return here(port)
        asked.append(api)
        if len(asked) == 1:
            return None if passing is None else struct.pack(">ih", 0, passing)
        return struct.pack(">ih", 0, 0)

    with scripted_broker(answer) as port:
        commit_at(port)
    assert asked == [Api.END_TXN] * 2


def test_a_broker_that_takes_no_such_password_is_not_asked_again() -> None:
    def answer(api: int, body: bytes) -> bytes | None:
        if api == Api.SASL_HANDSHAKE:
            return b"\0\0" + struct.pack(">i", 1) + wire.text("PLAIN")
        assert body == wire.sasl_authenticate(b"\0me\0secret")
        return (
            struct.pack(">h", ErrorCode.SASL_AUTHENTICATION_FAILED)
            + wire.text("no such user")
            + struct.pack(">i", 0)
        )

    asking = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "secret",
    }
    with (
        scripted_broker(answer) as port,
        pytest.raises(ProgramError, match=r"refuses the credentials \(no such user\)"),
    ):
        commit_at(port, **asking)


def test_a_broker_that_offers_another_mechanism_is_told_as_such() -> None:
    def answer(api: int, body: bytes) -> bytes | None:
        return struct.pack(">hi", ErrorCode.UNSUPPORTED_SASL_MECHANISM, 1) + wire.text(
            "SCRAM-SHA-512"
        )

    asking = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    with (
        scripted_broker(answer) as port,
        pytest.raises(ProgramError, match="it knows no PLAIN, but SCRAM-SHA-512"),
    ):
        commit_at(port, **asking)
