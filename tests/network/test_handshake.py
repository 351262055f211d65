from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.errors import NetworkProtocolError
from flinkpy.network.wire.handshake import Handshake


def pair(
    accepting: bytes = b"s", connecting: bytes = b"s", expected: str | None = None
) -> tuple[Handshake, Handshake]:
    rng = random.Random(7)
    return Handshake(accepting, "server", True, rng.randbytes), Handshake(
        connecting, "client", False, rng.randbytes, expected
    )


def feed(side: Handshake, data: bytes, sizes: list[int]) -> bytes:
    answer, at = b"", 0
    for size in [*sizes, len(data)]:
        part = data[at : at + size]
        if part:
            answer += side.receive(part)
        at += len(part)
    return answer


def said_by(client: Handshake, server: Handshake) -> bytes:
    return client.greeting() + client.receive(server.greeting())


@given(st.lists(st.integers(1, 40), max_size=6))
def test_both_sides_learn_the_other_in_any_chunking(sizes: list[int]) -> None:
    server, client = pair(expected="server")
    said = client.greeting() + feed(client, server.greeting(), sizes)
    answer = feed(server, said, sizes)
    feed(client, answer, sizes)
    assert (server.peer_id, client.peer_id) == ("client", "server")


def test_what_follows_the_handshake_is_kept() -> None:
    server, client = pair()
    server.receive(said_by(client, server) + b"frames")
    assert server.rest == b"frames"


def test_a_wrong_secret_is_refused_by_the_accepting_side() -> None:
    server, client = pair(connecting=b"guess")
    with pytest.raises(NetworkProtocolError, match="does not know the cluster's secret"):
        server.receive(said_by(client, server))


def test_a_server_that_only_repeats_what_it_hears_is_refused() -> None:
    server, client = pair()
    said = said_by(client, server)
    with pytest.raises(NetworkProtocolError, match="does not know the cluster's secret"):
        client.receive(said[8 + 32 :])


def test_a_recorded_handshake_is_worthless() -> None:
    server, client = pair()
    said = said_by(client, server)
    server.receive(said)
    later = Handshake(b"s", "server", True, random.Random(8).randbytes)
    with pytest.raises(NetworkProtocolError, match="does not know the cluster's secret"):
        later.receive(said)


def test_another_peer_than_the_expected_one_is_refused() -> None:
    server, client = pair(expected="somebody")
    with pytest.raises(
        NetworkProtocolError, match="TaskExecutor server answered where somebody was expected"
    ):
        client.receive(server.receive(said_by(client, server)))


@given(
    st.binary(min_size=1, max_size=200).filter(
        lambda data: not b"flinkpy\x01".startswith(data[:8]) and data[0] not in (0x15, 0x16)
    )
)
def test_garbage_is_refused_at_its_first_bytes(garbage: bytes) -> None:
    for side in pair():
        with pytest.raises(NetworkProtocolError, match="not a flinkpy connection"):
            side.receive(garbage)


@pytest.mark.parametrize("begin", [b"\x16", b"\x16\x03\x01", b"\x15\x03\x03\x00\x02\x02\x46"])
def test_a_peer_that_speaks_tls_is_recognised(begin: bytes) -> None:
    for side in pair():
        with pytest.raises(NetworkProtocolError, match=r"set security\.ssl\.internal\.enabled"):
            side.receive(begin)


def test_an_empty_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="secret must not be empty"):
        pair(accepting=b"")
