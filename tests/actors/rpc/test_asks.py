"""Open asks and their timeouts; errors made fit to travel; numbered messages put in order."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.actors.rpc.delivery.asks import PendingAsk, PendingAsks
from flinkpy.actors.rpc.delivery.envelope import RpcAnswer, RpcInvocation
from flinkpy.actors.rpc.delivery.message_bytes import make_answer, pack, unpack
from flinkpy.actors.rpc.delivery.portable_errors import portable, remote_traceback_of
from flinkpy.actors.rpc.delivery.sequencer import Sequencer, Sequencers
from flinkpy.actors.rpc.simulated.event_queue import Simulation
from flinkpy.core.errors import FencingError, RemoteError, RpcError, RpcTimeoutError, UserCodeError

from .sample import StubbornError


class Bench:
    def __init__(self) -> None:
        self.simulation = Simulation()
        self.outcomes: list[tuple[float, str, Any]] = []
        self.asks = PendingAsks(self.simulation.clock, 10.0, self.simulation.schedule, self._finish)

    def _finish(self, ask: PendingAsk, value: Any, error: BaseException | None) -> None:
        self.outcomes.append(
            (self.simulation.now, ask.method, type(error) if error is not None else value)
        )

    def open(self, method: str) -> int:
        return self.asks.open(None, "one/sample", method)[0]


def test_an_answer_finishes_its_ask_and_only_once() -> None:
    bench = Bench()
    first, second = bench.open("first"), bench.open("second")
    assert bench.asks.answer(second, 2, None)
    assert bench.asks.answer(first, 1, None)
    assert not bench.asks.answer(first, 1, None)
    bench.simulation.run_for(100)
    assert bench.outcomes == [(0.0, "second", 2), (0.0, "first", 1)]
    assert len(bench.asks) == 0


def test_each_ask_times_out_at_its_own_time() -> None:
    bench = Bench()
    bench.open("first")
    bench.simulation.run_for(4)
    answered = bench.open("answered")
    bench.open("second")
    bench.asks.answer(answered, "value", None)
    bench.simulation.run_for(100)
    bench.open("third")
    bench.simulation.run_for(100)
    assert bench.outcomes == [
        (4.0, "answered", "value"),
        (10.0, "first", RpcTimeoutError),
        (14.0, "second", RpcTimeoutError),
        (114.0, "third", RpcTimeoutError),
    ]


def test_one_timer_serves_any_number_of_asks() -> None:
    bench = Bench()
    for number in range(1000):
        bench.asks.answer(bench.open(str(number)), number, None)
    bench.simulation.run_for(100)
    assert bench.simulation.events == 1


def test_a_forgotten_ask_is_never_finished() -> None:
    bench = Bench()
    bench.asks.drop_unsent(bench.open("never sent"))
    bench.simulation.run_for(100)
    assert bench.outcomes == []


def test_asks_can_be_failed_by_where_they_went() -> None:
    bench = Bench()
    bench.open("here")
    bench.asks.open(None, "two/sample", "there")
    bench.asks.fail(lambda ask: RpcError("gone") if ask.address.startswith("two/") else None)
    assert bench.outcomes == [(0.0, "there", RpcError)]


# -- errors ----------------------------------------------------------------------------------------


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


@pytest.mark.parametrize(
    "error", [FencingError("stale"), UserCodeError("boom", operator="map", record="'x'")]
)
def test_our_errors_travel_as_themselves_with_their_traceback(error: Exception) -> None:
    answer = unpack(pack(make_answer(1, None, raised(error))))
    assert isinstance(answer, RpcAnswer)
    assert type(answer.error) is type(error)
    assert str(answer.error) == str(error)
    assert "in raised" in remote_traceback_of(answer.error)


def test_other_errors_travel_as_remote_errors() -> None:
    for error in (ValueError("boom"), StubbornError(2, 1)):
        answer = unpack(pack(make_answer(1, None, raised(error))))
        assert isinstance(answer, RpcAnswer)
        assert isinstance(answer.error, RemoteError)
        assert answer.error.message == f"{type(error).__name__}: {error}"
        assert "in raised" in str(answer.error)


def test_an_error_that_passes_through_several_processes_keeps_its_first_traceback() -> None:
    far = portable(raised(FencingError("stale")))
    assert remote_traceback_of(portable(raised(far))) == remote_traceback_of(far)


def test_a_request_that_does_not_pickle_says_which() -> None:
    with pytest.raises(RpcError, match=r"sample\.note cannot be sent to another process"):
        pack(RpcInvocation("sample", "note", (iter(()).__next__, threading.Lock()), {}))


# -- order -----------------------------------------------------------------------------------------


@given(st.permutations(range(12)))
def test_messages_come_out_in_order_whatever_order_they_come_in(order: list[int]) -> None:
    stream, out = Sequencer[int](), list[int]()
    for came, number in enumerate(order, 1):
        out += stream.accept(number, number)
        assert out == list(range(stream.expected))
        assert stream.has_gap == (came > len(out))
    assert out == list(range(12))


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)))
def test_lost_messages_hold_up_the_others_only_until_they_are_given_up(
    order: list[int], lost: set[int]
) -> None:
    stream, out = Sequencer[int](), list[int]()
    for number in order:
        if number not in lost:
            out += stream.accept(number, number)
    while stream.has_gap:
        out += stream.give_up_gap()
    assert out == sorted(set(range(12)) - lost)


def test_a_message_later_than_its_gap_is_still_handed_out() -> None:
    stream = Sequencer[str]()
    assert stream.accept(1, "b") == []
    assert stream.give_up_gap() == ["b"]
    assert stream.accept(0, "a") == ["a"]
    assert stream.accept(2, "c") == ["c"]


def test_only_so_many_streams_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sequencers, "LIMIT", 2)
    streams: Sequencers[str] = Sequencers()
    for name in ("a", "b", "a", "c"):
        streams[name].accept(0, name)
    assert len(streams) == 2
    assert streams["a"].expected == 1
