"""The few messages of Kafka's protocol with which a transaction is ended by somebody else than its
producer.

librdkafka cannot do that: it aborts whatever is open under its transactional id. Here is how
requests are written and answers are read, and nothing of sockets. All versions are old ones without
tagged fields, which brokers of today accept."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

CLIENT_ID = "flinkpy"
COORDINATOR_OF_TRANSACTIONS = 1


class Api(IntEnum):
    """What is asked for."""

    FIND_COORDINATOR = 10
    SASL_HANDSHAKE = 17
    INIT_PRODUCER_ID = 22
    END_TXN = 26
    SASL_AUTHENTICATE = 36


VERSIONS = {
    Api.FIND_COORDINATOR: 1,
    Api.SASL_HANDSHAKE: 1,
    Api.INIT_PRODUCER_ID: 0,
    Api.END_TXN: 0,
    Api.SASL_AUTHENTICATE: 0,
}


class ErrorCode(IntEnum):
    """The errors that are told apart here; the broker knows more."""

    NONE = 0
    REQUEST_TIMED_OUT = 7
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    UNSUPPORTED_SASL_MECHANISM = 33
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SASL_AUTHENTICATION_FAILED = 58
    PRODUCER_FENCED = 90


PASSING = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)


class ProducerId(NamedTuple):
    """Whose records a transaction has: the broker's number for a transactional id, and how often it
    was taken over."""

    producer_id: int
    epoch: int


@dataclass(frozen=True)
class Coordinator:
    """The broker that keeps a transactional id."""

    host: str
    port: int


# -- requests --------------------------------------------------------------------------------------


def request(api: Api, correlation_id: int, body: bytes) -> bytes:
    """A whole request, with its length in front."""
    header = struct.pack(">hhi", api, VERSIONS[api], correlation_id) + text(CLIENT_ID)
    return struct.pack(">i", len(header) + len(body)) + header + body


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def find_coordinator(transactional_id: str) -> bytes:
    return text(transactional_id) + struct.pack(">b", COORDINATOR_OF_TRANSACTIONS)


def init_producer_id(transactional_id: str, timeout_ms: int) -> bytes:
    """Aborts what is open under the id, and fences its producer."""
    return text(transactional_id) + struct.pack(">i", timeout_ms)


def end_txn(transactional_id: str, producer: ProducerId, *, commit: bool) -> bytes:
    return text(transactional_id) + struct.pack(
        ">qhb", producer.producer_id, producer.epoch, commit
    )


def sasl_handshake(mechanism: str) -> bytes:
    return text(mechanism)


def sasl_authenticate(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


# -- answers ---------------------------------------------------------------------------------------


class Answer:
    """Reads an answer field by field. Raises EOFError if it is too short."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def _take(self, form: str) -> int:
        end = self._at + struct.calcsize(form)
        if end > len(self._data):
            raise EOFError("the broker's answer is too short")
        value: int = struct.unpack_from(form, self._data, self._at)[0]
        self._at = end
        return value

    def int16(self) -> int:
        return self._take(">h")

    def int32(self) -> int:
        return self._take(">i")

    def int64(self) -> int:
        return self._take(">q")

    def _bytes(self, length: int) -> bytes:
        found = self._data[self._at : self._at + max(length, 0)]
        if len(found) < length:
            raise EOFError("the broker's answer is too short")
        self._at += len(found)
        return found

    def text(self) -> str:
        """A text; nothing is an empty one."""
        return self._bytes(self.int16()).decode(errors="replace")

    def data(self) -> bytes:
        return self._bytes(self.int32())


def found_coordinator(answer: Answer) -> tuple[int, str, Coordinator]:
    """The error, the broker's words about it, and the coordinator."""
    answer.int32()  # for how long the broker has throttled us
    error, message = answer.int16(), answer.text()
    answer.int32()  # the broker's number
    return error, message, Coordinator(answer.text(), answer.int32())


def new_producer_id(answer: Answer) -> tuple[int, ProducerId]:
    answer.int32()
    error = answer.int16()
    return error, ProducerId(answer.int64(), answer.int16())


def ended_txn(answer: Answer) -> int:
    answer.int32()
    return answer.int16()


def shaken_hands(answer: Answer) -> tuple[int, list[str]]:
    """The error, and the mechanisms that the broker offers."""
    error = answer.int16()
    return error, [answer.text() for _ in range(answer.int32())]


def authenticated(answer: Answer) -> tuple[int, str, bytes]:
    return answer.int16(), answer.text(), answer.data()
