"""Strangers at the data port of a running job: they are sent away, and the job does not notice."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import struct
import sys
from pathlib import Path

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.common import Configuration
from flinkpy.datastream import DataStream, StreamExecutionEnvironment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds the data ports in /proc")
COUNT = 400_000


def listening_ports() -> set[int]:
    """The TCP ports this process listens on."""
    inodes = {
        target[8:-1]
        for target in map(_target, Path("/proc/self/fd").iterdir())
        if target.startswith("socket:[")
    }
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in inodes}


def _target(descriptor: Path) -> str:
    """What it stands for; empty where another thread has closed it meanwhile."""
    try:
        return os.readlink(descriptor)
    except OSError:
        return ""


def closes(sock: socket.socket) -> bool:
    """Whether the other side ends the connection (within the socket's timeout)."""
    try:
        while sock.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return True


def strangers(port: int) -> int:
    """Knocks at the port in every wrong way; gives how many connections were closed."""
    letters = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"x" * 200,  # no secret: another protocol
        secrets.token_bytes(4096),  # garbage
        struct.pack("<Q", 2**63 - 1) * 64,  # oversized lengths
        b"\x80\x05cos\nsystem\n(S'true'\ntR." + b"\0" * 200,  # a pickle that must never be opened
    ]
    closed = 0
    for letter in letters:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
            sock.sendall(letter)
            closed += closes(sock)
    # the first half of something, and gone
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        sock.sendall(b"\0")
    return closed


def numbers(count: int) -> DataStream:
    """A job on TaskExecutors of one slot each, whose batches therefore travel over TCP."""
    configuration = Configuration()
    configuration.set_string("execution.target", "embedded")
    configuration.set_string("taskmanager.numberOfTaskSlots", "1")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    return (
        env.from_sequence(1, count)
        .key_by(lambda number: number % 8)
        .map(lambda number: number)
        .set_parallelism(2)
    )


def test_bad_peers_are_closed_and_logged_and_the_job_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stop_embedded()  # what an earlier test left listening must not be taken for ours
    before = listening_ports()
    with numbers(10).execute_and_collect() as few:
        assert sorted(few) == list(range(1, 11))
    # those of the TaskExecutors, which stay for the next job
    data_ports = listening_ports() - before
    assert len(data_ports) >= 2
    with (
        caplog.at_level(logging.INFO, "flinkpy.network"),
        numbers(COUNT).execute_and_collect() as collected,
    ):
        total, seen, closed = 0, 0, 0
        for number in collected:
            total, seen = total + number, seen + 1
            if seen == COUNT // 10:
                closed = sum(strangers(port) for port in data_ports)
    assert closed == 4 * len(data_ports)
    assert (seen, total) == (COUNT, COUNT * (COUNT + 1) // 2)
    assert sum("closed" in record.message for record in caplog.records) >= closed
