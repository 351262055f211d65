"""Ends transactions of other producers, of this process or of one that has died: asks for their
coordinator, and commits or aborts."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

from flinkpy.connectors.kafka.writing import wire
from flinkpy.connectors.kafka.writing.security import Security
from flinkpy.connectors.kafka.writing.transactional_ids import TakenOver
from flinkpy.connectors.kafka.writing.wire import Answer, Api, Coordinator, ErrorCode, ProducerId
from flinkpy.core.clock import Clock
from flinkpy.core.errors import FlinkpyError, ProgramError, RecipientUnreachableError
from flinkpy.core.secrets.engine_logs import engine_logger

_LOG = engine_logger(__name__)
T = TypeVar("T")

PATIENCE_S = 60.0  # for brokers that do not answer, or are busy
# of the transaction's own producer, and then as long in its name: a commit blocks the task
COMMIT_S = PATIENCE_S / 2
PAUSE_S = 0.02
CALL_TIMEOUT_S = 10.0
LARGEST_ANSWER = 1 << 20
DEFAULT_PORT = 9092


class TransactionLostError(ProgramError):
    """A transaction that should be committed cannot be: its records are lost. Restarting the job
    does not bring them back."""


class TakenOverError(FlinkpyError):
    """Another attempt, or another job, writes under this sink's transactional ids now."""


class _TryAgain(Exception):
    """The broker asks for patience, or is not there."""


class TransactionClient:
    """Asks brokers about transactions, until they answer, for ``patience_s`` at most. It blocks.

    ``settings`` are those of librdkafka: ``bootstrap.servers``, security, and
    ``transaction.timeout.ms``."""

    def __init__(
        self, settings: Mapping[str, str], clock: Clock, patience_s: float = PATIENCE_S
    ) -> None:
        self._servers, self._patience_s = settings["bootstrap.servers"], patience_s
        self._bootstrap = [_address(each) for each in self._servers.split(",") if each.strip()]
        self._timeout_ms = int(settings["transaction.timeout.ms"])
        self._security, self._clock = Security.of(settings), clock
        self._connections: dict[Coordinator, _Connection] = {}

    def abort(self, transactional_id: str) -> TakenOver:
        """Aborts what is open under the id, and takes it over: whoever has it is fenced. The epoch
        is 0 if the id is new to the broker.

        Raises ProgramError if the broker refuses, RecipientUnreachableError if there is none.
        """
        asked = 0

        def ask() -> TakenOver:
            nonlocal asked
            coordinator = self._coordinator_of(transactional_id)
            body = wire.init_producer_id(transactional_id, self._timeout_ms)
            asked += 1
            error, producer = wire.new_producer_id(
                self._call(coordinator, Api.INIT_PRODUCER_ID, body)
            )
            self._check(error, transactional_id)
            return TakenOver(producer.epoch, asked, producer.producer_id)

        return self._until_answered(ask)

    def commit(self, transactional_id: str, producer: ProducerId) -> None:
        """Commits what this producer has written in its last transaction. Doing so twice is as
        once.

        Raises TransactionLostError if the transaction was aborted.
        """

        def ask() -> None:
            coordinator = self._coordinator_of(transactional_id)
            body = wire.end_txn(transactional_id, producer, commit=True)
            self._check(
                wire.ended_txn(self._call(coordinator, Api.END_TXN, body)), transactional_id
            )

        self._until_answered(ask)

    def check_still_own(self, transactional_id: str, producer: ProducerId) -> None:
        """Raises TakenOverError if another has taken the id over. It ends a transaction that was
        never begun, which changes nothing.

        A broker that has forgotten the id cannot tell, and neither raises nor harms.
        """

        def ask() -> None:
            coordinator = self._coordinator_of(transactional_id)
            error = wire.ended_txn(
                self._call(
                    coordinator, Api.END_TXN, wire.end_txn(transactional_id, producer, commit=False)
                )
            )
            if error in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED):
                raise TakenOverError(
                    f"the Kafka transactions {transactional_id!r} of this sink were taken "
                    "over: by its next attempt, if this one "
                    "was given up, or by another job with the same "
                    "transactional id prefix, which must be different "
                    "for each sink"
                )
            if error not in (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING):
                self._check(error, transactional_id)

        self._until_answered(ask)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _check(self, error: int, transactional_id: str) -> None:
        if error in wire.PASSING:
            raise _TryAgain(f"the broker answers {name_of(error)}")
        if error:
            raise explained(error, transactional_id, self._timeout_ms)

    def _coordinator_of(self, transactional_id: str) -> Coordinator:
        reason = "bootstrap.servers is empty"
        for server in self._bootstrap:
            try:
                answer = self._call(
                    server, Api.FIND_COORDINATOR, wire.find_coordinator(transactional_id)
                )
            except _TryAgain as failure:
                reason = str(failure)
                continue
            error, said, coordinator = wire.found_coordinator(answer)
            if error and error not in wire.PASSING and said:
                raise ProgramError(
                    f"Kafka at {self._servers} gives no coordinator of transaction "
                    f"{transactional_id!r}: {said}"
                )
            self._check(error, transactional_id)
            return coordinator
        raise _TryAgain(reason)

    def _call(self, server: Coordinator, api: Api, body: bytes) -> Answer:
        try:
            connection = self._connections.get(server)
            if connection is None:
                connection = self._connections[server] = _Connection(server, self._security)
            return connection.call(api, body)
        except (OSError, EOFError, struct.error) as error:
            broken = self._connections.pop(server, None)
            if broken is not None:
                broken.close()
            if isinstance(error, PermissionError) and error.errno is None:
                raise ProgramError(
                    f"Kafka at {server.host}:{server.port} refuses the credentials ({error}): "
                    "check the properties "
                    "security.protocol, sasl.mechanism, sasl.username and "
                    "sasl.password"
                ) from None
            raise _TryAgain(f"{server.host}:{server.port}: {error}") from error

    def _until_answered(self, ask: Callable[[], T]) -> T:
        began = self._clock.monotonic()
        warned = False
        while True:
            try:
                return ask()
            except _TryAgain as failure:
                if self._clock.monotonic() - began > self._patience_s:
                    raise RecipientUnreachableError(
                        f"Kafka at {self._servers} ends no transactions for "
                        f"{self._patience_s:g} s ({failure}): check bootstrap.servers and "
                        "security.protocol, and whether the brokers are up"
                    ) from None
                if not warned:
                    warned = True
                    _LOG.info("trying again to end a transaction: %s", failure)
            threading.Event().wait(PAUSE_S)

    def __repr__(self) -> str:
        return f"<TransactionClient of {self._servers}>"


class _Connection:
    """One to a broker. Raises OSError or EOFError when it is broken."""

    def __init__(self, server: Coordinator, security: Security) -> None:
        self._requests = 0
        raw = socket.create_connection((server.host, server.port), timeout=CALL_TIMEOUT_S)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._socket = security.wrapped(raw, server.host)
            if security.mechanism is not None:
                self._shake_hands(security.mechanism)
                security.authenticate(self._exchange)
        except BaseException:
            raw.close()
            raise

    def call(self, api: Api, body: bytes) -> Answer:
        self._requests += 1
        self._socket.sendall(wire.request(api, self._requests, body))
        length = Answer(self._receive(4)).int32()
        if not 4 <= length <= LARGEST_ANSWER:
            raise EOFError(f"an answer of {length} bytes: this is no Kafka broker, or it wants TLS")
        answer = Answer(self._receive(length))
        if answer.int32() != self._requests:
            raise EOFError("an answer to another request")
        return answer

    def _receive(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            part = self._socket.recv(length - len(parts))
            if not part:
                raise EOFError("the broker closed the connection")
            parts += part
        return bytes(parts)

    def _shake_hands(self, mechanism: str) -> None:
        error, offered = wire.shaken_hands(
            self.call(Api.SASL_HANDSHAKE, wire.sasl_handshake(mechanism))
        )
        if error:
            raise PermissionError(f"it knows no {mechanism}, but {', '.join(offered) or 'nothing'}")

    def _exchange(self, data: bytes) -> bytes:
        error, said, answer = wire.authenticated(
            self.call(Api.SASL_AUTHENTICATE, wire.sasl_authenticate(data))
        )
        if error:
            raise PermissionError(said or name_of(error))
        return answer

    def close(self) -> None:
        self._socket.close()


def explained(error: int, transactional_id: str, timeout_ms: int) -> FlinkpyError:
    """The broker's refusal as a sentence that says what to change."""
    transaction = f"Kafka transaction {transactional_id!r}"
    if error in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED):
        return TransactionLostError(
            f"{transaction} was aborted, and the records of its checkpoint are lost: "
            "either it was open for longer than transaction.timeout.ms "
            f"({timeout_ms} ms), which must be longer than the longest time between two "
            "checkpoints and a restart of the job, or another job "
            "writes with the same transactional id prefix, which must be different for "
            "each sink; if a job has gone on behind this checkpoint, it "
            "has committed them, and ignore_lost_transactions() of the sink's builder "
            "lets this one start"
        )
    if error == ErrorCode.INVALID_TXN_STATE:
        return TransactionLostError(
            f"{transaction} was aborted by the broker, and the records of its checkpoint "
            f"are lost: let transaction.timeout.ms ({timeout_ms} ms) be "
            "longer than the longest time between two checkpoints and a restart of the job"
        )
    if error == ErrorCode.INVALID_PRODUCER_ID_MAPPING:
        return TransactionLostError(
            f"the broker has forgotten {transaction} (transactional.id.expiration.ms, or "
            "another cluster): nobody can tell whether the records of "
            "its checkpoint were committed; if they were, ignore_lost_transactions() of "
            "the sink's builder lets the job start"
        )
    if error == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        return ProgramError(
            f"the broker does not allow transaction.timeout.ms={timeout_ms}: it is larger "
            "than the broker's "
            "transaction.max.timeout.ms; "
            "set_property('transaction.timeout.ms', …) to a smaller one, "
            "or raise the broker's"
        )
    if error == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return ProgramError(
            f"the broker does not let this user write in {transaction}: give it the rights "
            "Write and Describe on transactional ids "
            "with the sink's prefix"
        )
    return ProgramError(f"the broker refuses to end {transaction}: {name_of(error)}")


def name_of(error: int) -> str:
    """The name that Kafka gives the error."""
    return ErrorCode(error).name if error in list(ErrorCode) else f"error {error}"


def _address(server: str) -> Coordinator:
    """``host:port``; a port left out is 9092, and brackets are around an IPv6 address."""
    _, _, address = server.strip().rpartition("://")
    host, colon, port = address.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = address, str(DEFAULT_PORT)
    if not port.isdigit():
        raise ProgramError(
            "bootstrap.servers is host:port, or several of them with commas between, this is "
            f"{server!r}"
        )
    return Coordinator(host.strip("[]"), int(port))
