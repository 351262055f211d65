"""Data connections over TLS: what passes, what a listener sees, and who is refused."""

from __future__ import annotations

import contextlib
import logging
import random
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.cluster.session import session_options
from flinkpy.core.elements import ColumnBatch, RowBatch
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.options.tls.tls_files import TlsFiles
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.graph.deployment import TaskManagerLocation
from flinkpy.network.shuffle import ShuffleService
from flinkpy.network.wire import connection, tls_transport
from flinkpy.network.wire.tls_stream import TlsStream
from tests.network.helpers import Cluster, attempt, cluster, poll_all, records
from tests.web.certificates import Authority, Signed

PREFIX = "security.ssl.internal"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder, "authority")


@pytest.fixture(scope="module")
def worker(authority: Authority) -> Signed:
    return authority.sign("worker")


def files(shown: Signed, trusted: Path) -> TlsFiles:
    return TlsFiles(PREFIX, str(shown.certificate), str(shown.key), None, str(trusted))


@pytest.fixture(scope="module")
def tls(authority: Authority, worker: Signed) -> NetworkConfig:
    return NetworkConfig(tls=files(worker, authority.certificate))


class Proxy:
    """Passes on what comes to its port, and keeps it."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._server]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        self.seen = bytearray()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._server.getsockname()
        return host, port

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            here, _ = self._server.accept()
            there = socket.create_connection(self._target)
            self._sockets += [here, there]
            for each in (here, there):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, target in ((here, there), (there, here)):
                self._threads.append(threading.Thread(target=self._pass_on, args=(source, target)))
                self._threads[-1].start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.seen += data
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for each in self._sockets:
            each.close()


@contextlib.contextmanager
def through_proxy(made: Cluster, name: str) -> Iterator[Proxy]:
    """Whoever connects to ``name`` does so through the proxy."""
    proxy, location = Proxy(made.services[name].data_address), made.location

    def proxied(asked: str) -> TaskManagerLocation:
        host, port = proxy.address
        found = location(asked)
        return replace(found, host=host, data_port=port) if asked == name else found

    made.location = proxied  # type: ignore[method-assign, assignment]
    try:
        yield proxy
    finally:
        proxy.close()


SECRET_TEXT = "the patient's name"


def pass_secrets(made: Cluster) -> None:
    """Small rows, larger ones and columns, from a to b."""
    rows = [(SECRET_TEXT, i, "x" * (i % 700)) for i in range(500)]
    columns = pa.record_batch({"s": [SECRET_TEXT] * 20_000, "v": range(20_000)})
    writer, gate = (
        made.writer("a", attempt("a")),
        made.gate("b", attempt("b"), [("a", attempt("a"))]),
    )
    writer.emit(RowBatch(rows))
    writer.emit(ColumnBatch(columns))
    made.services["a"].finish_partitions(attempt("a"))
    got: list[Any] = []

    def is_whole() -> bool:
        got.extend(element for _, element in poll_all(gate))
        return gate.finished or bool(made.errors)

    made.reactor.run_until(is_whole)
    assert made.errors == []
    assert records(got) == rows + columns.to_pylist()


def test_a_proxy_sees_no_text_of_the_records_that_pass(tls: NetworkConfig) -> None:
    seen = []
    for config in (tls, replace(tls, tls=None)):
        with cluster("a", "b", config=config) as made, through_proxy(made, "a") as proxy:
            pass_secrets(made)
            assert len(proxy.seen) > 500_000
            seen.append((SECRET_TEXT.encode() in proxy.seen, b"flinkpy" in proxy.seen))
    assert seen == [(False, False), (True, True)]


def test_what_a_stream_has_received_is_read_without_more_to_come(
    tls: NetworkConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "READS_PER_ROUND", 1)
    with cluster("a", "b", config=tls) as made:
        pass_secrets(made)


def job_of_two_task_executors(certificates: TlsFiles) -> int:
    env = StreamExecutionEnvironment.get_execution_environment(
        {
            "execution.target": "embedded",
            "taskmanager.numberOfTaskSlots": 1,
            f"{PREFIX}.enabled": True,
            f"{PREFIX}.keystore": certificates.keystore,
            f"{PREFIX}.key": certificates.key,
            f"{PREFIX}.truststore": certificates.truststore,
        }
    )
    env.set_parallelism(2)
    numbers = env.from_sequence(0, 9_999).key_by(lambda number: number % 7)
    try:
        return sum(numbers.map(lambda number: number).execute_and_collect())
    finally:
        stop_embedded()


def test_a_job_of_two_task_executors_passes_its_records_over_tls(
    tls: NetworkConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    received, receive = [0], TlsStream.recv_into

    def counted(stream: TlsStream, buffer: Any) -> int:
        count = receive(stream, buffer)
        received[0] += count
        return count

    monkeypatch.setattr(TlsStream, "recv_into", counted)
    assert tls.tls is not None
    assert job_of_two_task_executors(tls.tls) == sum(range(10_000))
    assert received[0] > 10_000


# -- who is refused --------------------------------------------------------------------------------


def both(folder: Path, *authorities: Authority) -> Path:
    """A truststore with several authorities."""
    store = folder / "both.pem"
    store.write_bytes(b"".join(each.certificate.read_bytes() for each in authorities))
    return store


def refused(
    producer: TlsFiles | None, consumer: TlsFiles | None, caplog: pytest.LogCaptureFixture
) -> tuple[str, str]:
    """What the consumer, which connects, says; and what the producer writes into its log."""
    caplog.clear()
    configs = {"a": NetworkConfig(tls=producer), "b": NetworkConfig(tls=consumer)}
    with caplog.at_level(logging.INFO), cluster("a", "b", configs=configs) as made:
        made.gate("b", attempt("b"), [("a", attempt("a"))])

        def logs() -> list[str]:
            return [record.getMessage() for record in caplog.records]

        made.reactor.run_until(
            lambda: bool(made.errors) and any("with this host closed" in log for log in logs())
        )
        return str(made.errors[0]), next(log for log in logs() if "with this host" in log)


def test_a_peer_is_refused_in_a_sentence_that_names_the_option(
    authority: Authority,
    worker: Signed,
    folder: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stranger = Authority(folder, "stranger")
    trusting = both(folder, authority, stranger)
    right = files(worker, authority.certificate)
    foreign = files(stranger.sign("impostor"), trusting)
    expired = files(authority.sign("old", valid=False), authority.certificate)
    monkeypatch.setattr(tls_transport, "_check_own_certificate", lambda *_: None)  # it was valid
    not_known = f"the peer's certificate is not from an authority in {PREFIX}.truststore"
    lacks = f"the peer's {PREFIX}.truststore lacks the authority of this side's certificate"
    same = f"set {PREFIX}.enabled for all TaskExecutors or for none"
    for producer, consumer, told, logged in (
        (foreign, right, not_known, lacks),
        (right, foreign, lacks, not_known),
        (
            expired,
            right,
            f"certificate ({PREFIX}.keystore there) has expired",
            "side's certificate",
        ),
        (right, expired, f"side's certificate ({PREFIX}.keystore) has expired", "has expired"),
        (right, None, f"the peer speaks TLS and this side does not; {same}", "peer does not; set"),
        (None, right, f"this side speaks TLS and the peer does not; {same}", "side does not; set"),
    ):
        says = refused(producer, consumer, caplog)
        assert told in says[0]
        assert logged in says[1]


def test_certificates_that_others_would_refuse_are_refused_at_the_start(
    authority: Authority, worker: Signed, folder: Path
) -> None:
    other = Authority(folder, "other")
    for wrong, says in (
        (files(authority.sign("past", valid=False), authority.certificate), "past.crt has expired"),
        (files(worker, other.certificate), "is not from an authority in .*other.pem"),
        (files(worker, folder / "no.pem"), "internal.truststore: .*no.pem cannot be read"),
        (
            replace(files(worker, other.certificate), key=str(authority.sign("another").key)),
            "internal.key: .*another.key cannot be used: the key is another certificate's",
        ),
    ):
        with pytest.raises(ConfigurationError, match=says):
            ShuffleService(NetworkConfig(tls=wrong), b"secret", "a")
    with pytest.raises(ConfigurationError, match=r"no.pem cannot be read"):
        job_of_two_task_executors(files(worker, folder / "no.pem"))
    for missing, holds in (("keystore", "certificate"), ("truststore", "authorities")):
        options: dict[str, Any] = {
            f"{PREFIX}.enabled": True,
            f"{PREFIX}.keystore": "worker.pem",
            f"{PREFIX}.truststore": "authority.pem",
        }
        del options[f"{PREFIX}.{missing}"]
        with pytest.raises(ConfigurationError, match=f"{holds} .*with {PREFIX}.{missing}"):
            NetworkConfig.of(options)
        assert NetworkConfig.of({**options, "taskmanager.data.ssl.enabled": False}).tls is None


# -- one stream ------------------------------------------------------------------------------------


class Narrow:
    """A stream that now and then takes and gives a part only, or nothing."""

    def __init__(self, carried: socket.socket, rng: random.Random) -> None:
        self._carried, self._rng = carried, rng
        self.is_narrow = False
        self.fileno = carried.fileno
        self.close = carried.close

    def _share(self, count: int) -> int:
        if not self.is_narrow:
            return count
        if self._rng.random() < 0.3:
            raise BlockingIOError
        return max(1, int(count * self._rng.random() ** 3))

    def send(self, data: bytes, /) -> int:
        return self._carried.send(data[: self._share(len(data))])

    def sendmsg(self, buffers: Sequence[Any], /) -> int:
        return self.send(b"".join(buffers))

    def recv(self, count: int, /) -> bytes:
        return self._carried.recv(self._share(count))

    def recv_into(self, buffer: Any, /) -> int:
        return self._carried.recv_into(buffer, self._share(len(buffer)))


@pytest.mark.parametrize("seed", range(5))
def test_bytes_pass_whole_however_little_the_carrier_takes(seed: int, tls: NetworkConfig) -> None:
    rng = random.Random(seed)
    assert tls.tls is not None
    carriers, streams = [], []
    for end, protocol in zip(
        socket.socketpair(), (ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER)
    ):
        end.setblocking(False)
        carriers.append(Narrow(end, rng))
        streams.append(TlsStream(carriers[-1], tls_transport.context_of(protocol, tls.tls)))
    for stream in streams:
        assert stream.send(b"first") == 5
    heard = [b"", b""]
    while not all(heard):
        for side, stream in enumerate(streams):
            with contextlib.suppress(BlockingIOError):
                heard[side] = stream.recv(5)
    assert heard == [b"first"] * 2
    for carrier in carriers:
        carrier.is_narrow = True
    data = rng.randbytes(600_000)
    buffers = [memoryview(data)[at : at + 90_000] for at in range(0, len(data), 90_000)]
    got = bytearray()
    for _ in range(10_000):
        with contextlib.suppress(BlockingIOError):
            sent = streams[0].sendmsg(buffers[: rng.randint(3, 5)]) if buffers else 0
            while buffers and sent >= len(buffers[0]):
                sent -= len(buffers.pop(0))
            if sent:
                buffers[0] = buffers[0][sent:]
        with contextlib.suppress(BlockingIOError):
            got += streams[1].recv(rng.choice((1000, 30_000, 100_000)))
        if len(got) == len(data):
            break
    assert got == data
    streams[0].close()
    carriers[1].is_narrow = False
    assert streams[1].recv(1) == b""
    streams[1].close()


def test_a_session_on_ray_is_started_with_the_options_of_its_connections() -> None:
    options = {f"{PREFIX}.enabled": True, f"{PREFIX}.truststore": "authority.pem"}
    assert session_options({**options, "parallelism.default": 2}) == options
