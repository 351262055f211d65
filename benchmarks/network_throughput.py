"""The network alone: the cost of a batch within a process, and two processes against bare sockets
that do the same work.

    python -m benchmarks.network_throughput [--quick]

Rows: batches of 1,000 tuples, against pickle 5 with a length prefix. Columns: batches of three
numeric columns, against an Arrow IPC stream. Latency: the round trip of one small batch. The
producer is in this process, the consumer in a child, each on one core."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import socket
import statistics
import struct
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.harness import Comparison, quick
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.ids import (
    ExecutionAttemptId,
    IntermediateDataSetId,
    JobId,
    JobVertexId,
    ResourceId,
    ResultPartitionId,
)
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.graph.deployment import (
    InputGateDescriptor,
    ResultPartitionDescriptor,
    ShuffleDescriptor,
    TaskManagerLocation,
)
from flinkpy.graph.partitioning import FORWARD, KeySpec, Partitioning, PartitioningKind
from flinkpy.network.partitioning.partitioners import make_selector
from flinkpy.network.port import InputGate, RecordWriter
from flinkpy.network.shuffle import ShuffleService
from flinkpy.testing.manual_reactor import ManualReactor

SECRET = b"benchmark"
CONFIG = NetworkConfig()


class Node:
    """A shuffle service and its loop."""

    def __init__(self, name: str, config: NetworkConfig = CONFIG) -> None:
        self.name, self.reactor = name, ManualReactor()
        self.service = ShuffleService(config, SECRET, name)
        self.service.start(self.reactor, self.reactor)

    def writer(self, data_set: str) -> RecordWriter:
        descriptor = ResultPartitionDescriptor(_partition(self.name, data_set), 0, 1)
        return self.service.create_writers(
            _attempt(self.name), [descriptor], [FORWARD], [-1], _fail
        )[0]

    def gate(self, data_set: str, producer: str, address: tuple[str, int]) -> InputGate:
        location = TaskManagerLocation(ResourceId(producer), "", *address)
        shuffles = (ShuffleDescriptor(_partition(producer, data_set), location),)
        return self.service.create_gates(
            _attempt(self.name),
            [InputGateDescriptor(IntermediateDataSetId(data_set), 0, 0, shuffles)],
            _fail,
        )[0]

    def close(self) -> None:
        self.service.stop()
        self.reactor.settle()
        self.reactor.close()


def _attempt(name: str) -> ExecutionAttemptId:
    return ExecutionAttemptId(JobId("job"), JobVertexId(name), 0, 0)


def _partition(name: str, data_set: str) -> ResultPartitionId:
    return ResultPartitionId(IntermediateDataSetId(data_set), _attempt(name))


def _fail(error: BaseException) -> None:
    raise error


# -- between two processes: ours -------------------------------------------------------------------


class Run(NamedTuple):
    """``seconds`` from the first batch until the consumer has all of them, and the processor time
    of both sides."""

    seconds: float
    processor: float


def run_ours(
    batches: list[Batch],
    times: int,
    producer: NetworkConfig = CONFIG,
    consumer: NetworkConfig = CONFIG,
    use: Callable[[Any], object] | None = None,
) -> Run:
    """``use`` is what the consumer does with each batch."""
    parent, child = multiprocessing.Pipe()
    node = Node("producer", producer)
    process = multiprocessing.get_context("spawn").Process(
        target=consume_ours,
        args=(child, node.service.data_address, len(batches) * times, consumer, use),
    )
    process.start()
    writer = node.writer("data")
    writer.emit(batches[0])
    writer.flush()
    node.reactor.run_until(parent.poll, 30)
    parent.recv()
    gc.disable()
    started, worked = time.perf_counter(), time.process_time()
    for _ in range(times):
        for batch in batches:
            writer.emit(batch)
            while not writer.available:
                node.reactor.step(1.0)
    writer.flush()
    while not parent.poll():
        node.reactor.step(0.0005)
    run = Run(time.perf_counter() - started, time.process_time() - worked + parent.recv())
    gc.enable()
    process.join(10)
    node.close()
    return run


def consume_ours(
    pipe: Pipe,
    address: tuple[str, int],
    batches: int,
    config: NetworkConfig = CONFIG,
    use: Callable[[Any], object] | None = None,
) -> None:
    node = Node("consumer", config)
    gate = node.gate("data", "producer", address)
    while gate.poll() is None:
        node.reactor.step(1.0)
    gc.disable()
    pipe.send("ready")
    worked, seen = time.process_time(), 0
    while seen < batches:
        polled = gate.poll()
        if polled is None:
            node.reactor.step(1.0)
        else:
            seen += 1
            if use is not None and isinstance(polled[1], (RowBatch, ColumnBatch)):
                use(polled[1])
    pipe.send(time.process_time() - worked)
    node.close()


# -- between two processes: bare -------------------------------------------------------------------


def run_bare(batches: list[Batch], times: int, kind: str) -> Run:
    parent, child = multiprocessing.Pipe()
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = multiprocessing.get_context("spawn").Process(
            target=consume_bare, args=(child, server.getsockname(), kind)
        )
        process.start()
        sock, _ = server.accept()
    tune(sock)
    parent.recv()
    gc.disable()
    started, worked = time.perf_counter(), time.process_time()
    (send_pickles if kind == "rows" else send_arrow)(sock, batches, times)
    sock.shutdown(socket.SHUT_WR)
    parent.poll(60)
    run = Run(time.perf_counter() - started, time.process_time() - worked + parent.recv())
    gc.enable()
    sock.close()
    process.join(10)
    return run


def tune(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)


def send_pickles(sock: socket.socket, batches: list[Any], times: int) -> None:
    for _ in range(times):
        for batch in batches:
            data = pickle.dumps(batch.values, 5)
            sock.sendall(struct.pack("<I", len(data)))
            sock.sendall(data)


def send_arrow(sock: socket.socket, batches: list[Any], times: int) -> None:
    with pa.ipc.new_stream(SendAll(sock), batches[0].data.schema) as stream:
        for _ in range(times):
            for batch in batches:
                stream.write_batch(batch.data)


class SendAll:
    """A file for Arrow that writes to a socket, without copies."""

    closed = False

    def __init__(self, sock: socket.socket) -> None:
        self.write = sock.sendall

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def flush(self) -> None: ...

    def close(self) -> None: ...


def consume_bare(pipe: Pipe, address: tuple[str, int], kind: str) -> None:
    sock = socket.create_connection(address)
    tune(sock)
    gc.disable()
    pipe.send("ready")
    worked = time.process_time()
    with sock.makefile("rb", buffering=1 << 20 if kind == "rows" else 8192) as file:
        if kind == "rows":
            while head := file.read(4):
                pickle.loads(file.read(struct.unpack("<I", head)[0]))
        else:
            for _ in pa.ipc.open_stream(file):
                pass
    sock.close()
    pipe.send(time.process_time() - worked)


# -- latency ---------------------------------------------------------------------------------------


def ping_pong_ours(rounds: int) -> list[float]:
    """Seconds of each round trip of a batch, each way over a writer and a gate."""
    parent, child = multiprocessing.Pipe()
    node = Node("ping")
    process = multiprocessing.get_context("spawn").Process(
        target=echo_ours, args=(child, node.service.data_address, rounds)
    )
    process.start()
    gate = node.gate("back", "pong", parent.recv())
    writer = node.writer("there")
    taken = []
    for i in range(rounds):
        started = time.perf_counter()
        writer.emit(RowBatch([("word", i)]))
        writer.flush()
        while gate.poll() is None:
            node.reactor.step(1.0)
        taken.append(time.perf_counter() - started)
    process.join(10)
    node.close()
    return taken


def echo_ours(pipe: Pipe, address: tuple[str, int], rounds: int) -> None:
    node = Node("pong")
    pipe.send(node.service.data_address)
    gate, writer = node.gate("there", "ping", address), node.writer("back")
    for _ in range(rounds):
        while (polled := gate.poll()) is None:
            node.reactor.step(1.0)
        writer.emit(polled[1])  # type: ignore[arg-type]
        writer.flush()
    node.reactor.settle()
    node.close()


def ping_pong_bare(rounds: int) -> list[float]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = multiprocessing.get_context("spawn").Process(
            target=echo_bare, args=(server.getsockname(), rounds)
        )
        process.start()
        sock, _ = server.accept()
    tune(sock)
    taken = []
    for i in range(rounds):
        started = time.perf_counter()
        sock.sendall(pickle.dumps([("word", i)], 5))
        pickle.loads(sock.recv(65536))
        taken.append(time.perf_counter() - started)
    process.join(10)
    sock.close()
    return taken


def echo_bare(address: tuple[str, int], rounds: int) -> None:
    sock = socket.create_connection(address)
    tune(sock)
    for _ in range(rounds):
        sock.sendall(pickle.dumps(pickle.loads(sock.recv(65536)), 5))
    sock.close()


# -- within a process ------------------------------------------------------------------------------


def local_hand_over(batches: int) -> float:
    """Microseconds per batch of 1,000 rows, writer to gate."""
    node = Node("local")
    gate, writer = node.gate("data", "local", node.service.data_address), node.writer("data")
    batch = RowBatch([("word", i) for i in range(1000)])
    started = time.perf_counter()
    for _ in range(batches):
        writer.emit(batch)
        if gate.poll() is None:
            raise AssertionError("a batch got lost")
    taken = time.perf_counter() - started
    node.close()
    return taken / batches * 1e6


def partition_rate(values: list[Any], selector: Callable[[Any], Any], times: int) -> float:
    """Records per second split by key over 4 channels."""
    splitter = make_selector(Partitioning(PartitioningKind.HASH, KeySpec(selector), 128), 4)
    batch = RowBatch(values)
    list(splitter.split(batch))
    started = time.perf_counter()
    for _ in range(times):
        splitter.split(batch)
    return len(values) * times / (time.perf_counter() - started)


def column_partition_rate(batch: ColumnBatch, column: str, times: int) -> float:
    splitter = make_selector(Partitioning(PartitioningKind.HASH, KeySpec(None, (column,)), 128), 4)
    list(splitter.split(batch))
    started = time.perf_counter()
    for _ in range(times):
        splitter.split(batch)
    return len(batch) * times / (time.perf_counter() - started)


def identity(value: Any) -> Any:
    return value


def first(value: Any) -> Any:
    return value[0]


def within_a_process() -> None:
    times = 20 if quick() else 500
    ints, words = [i % 10_000 for i in range(4096)], [f"word{i % 1000}" for i in range(4096)]
    handed = min(local_hand_over(times * 20) for _ in range(5))
    print(
        f"writer to gate, one process, batches of 1,000 by reference: {handed:.2f} µs a batch "
        "(target: at most 5)"
    )
    for name, values, selector in (
        ("ints, identity", ints, identity),
        ("strings, identity", words, identity),
        ("(str, int) by [0]", [(word, 1) for word in words], first),
    ):
        rate = max(partition_rate(values, selector, times) for _ in range(5))
        print(f"rows by key into 4 channels, {name}: {rate / 1e6:.1f} M/s (target: at least 8)")
    columns = ColumnBatch(
        pa.record_batch(
            {"k": pa.array(ints * 2), "s": pa.array(words * 2), "v": np.arange(8192) * 1.0}
        )
    )
    for column in ("k", "s"):
        print(
            f"columns by key {column} into 4 channels: "
            f"{max(column_partition_rate(columns, column, times) for _ in range(5)) / 1e6:.1f} "
            "M/s"
        )


# -- the comparisons -------------------------------------------------------------------------------


def compared(name: str, batches: list[Batch], times: int, kind: str, rounds: int) -> Comparison:
    count = sum(map(len, batches)) * times
    pairs = [(run_ours(batches, times), run_bare(batches, times, kind)) for _ in range(rounds)]
    ours, bare = (count / statistics.median(run.seconds for run in side) for side in zip(*pairs))
    processor = statistics.median(theirs.processor / own.processor for own, theirs in pairs)
    result = Comparison(
        name,
        "records/s",
        ours,
        bare,
        statistics.median(theirs.seconds / own.seconds for own, theirs in pairs),
        0.8,
        f"ratio of processor time {processor:.2f}",
    )
    note = ""
    if kind == "columns":
        size = (
            sum(batch.data.nbytes for batch in batches if isinstance(batch, ColumnBatch))
            * times
            / count
        )
        note = f"{ours * size / 1e9:.2f} GB/s against {bare * size / 1e9:.2f}"
    print(result, note, flush=True)
    return result


def latency(rounds: int) -> Comparison:
    ours = sorted(ping_pong_ours(rounds)[rounds // 10 :])
    bare = sorted(ping_pong_bare(rounds)[rounds // 10 :])
    middle, tail = len(ours) // 2, len(ours) * 99 // 100
    result = Comparison(
        "ping-pong, one way",
        "µs",
        ours[middle] / 2 * 1e6,
        bare[middle] / 2 * 1e6,
        ours[middle] / bare[middle],
        None,
        f"{(ours[middle] - bare[middle]) / 2 * 1e6:.0f} µs above a bare "
        f"socket (target: at most 50); p99 {ours[tail] / 2 * 1e6:.0f} "
        f"against {bare[tail] / 2 * 1e6:.0f}",
    )
    print(result, flush=True)
    return result


def main() -> list[Comparison]:
    within_a_process()
    times, rounds = (2, 1) if quick() else (40, 3)
    rows: list[Batch] = [
        RowBatch([(f"word{i % 997}", i) for i in range(j * 1000, j * 1000 + 1000)])
        for j in range(50)
    ]
    results = [compared("rows, 1,000 tuples a batch", rows, times, "rows", rounds)]
    for size in (8192, 65536):
        columns: list[Batch] = [
            ColumnBatch(
                pa.record_batch({name: np.arange(size) * (j + 1) for j, name in enumerate("abc")})
            )
            for _ in range(32)
        ]
        results.append(
            compared(
                f"columns, 3 by {size:,} a batch", columns, times * 65536 // size, "columns", rounds
            )
        )
    results.append(latency(200 if quick() else 5000))
    return results


if __name__ == "__main__":
    main()
    sys.exit(0)
