"""Calls of the main thread are made where no Ctrl-C comes."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from flinkpy.cluster.uninterrupted_calls import uninterrupted
from flinkpy.core.errors import RecipientUnreachableError, RpcTimeoutError
from flinkpy.core.futures import Future


class Gateway:
    """Answers with the names of the threads that call it."""

    def __init__(self) -> None:
        self.open: Future[str] = Future()

    def who(self, *said: Any) -> Future[tuple[Any, ...]]:
        return Future.completed((threading.current_thread().name, *said))

    def later(self) -> Future[str]:
        return self.open

    def unreachable(self) -> Future[str]:
        return Future.failed(RecipientUnreachableError("nobody there"))

    def breaks(self) -> Future[str]:
        raise KeyboardInterrupt


def test_a_call_of_the_main_thread_is_made_by_another() -> None:
    gateway = uninterrupted(Gateway())
    assert gateway.who(1, "a").result(10) == ("calls of the main thread", 1, "a")


def test_a_call_of_another_thread_is_made_by_itself() -> None:
    seen: list[Any] = []
    caller = threading.Thread(
        target=lambda: seen.append(uninterrupted(Gateway()).who().result(10)), name="somebody"
    )
    caller.start()
    caller.join(10)
    assert seen == [("somebody",)]


def test_calls_are_made_in_their_order() -> None:
    gateway = uninterrupted(Gateway())
    answers = [gateway.who(number) for number in range(100)]
    assert [answer.result(10)[1] for answer in answers] == list(range(100))


def test_an_answer_may_come_later_or_never() -> None:
    gateway = Gateway()
    answer = uninterrupted(gateway).later()
    with pytest.raises(RpcTimeoutError, match=r"no result within 0\.01 s"):
        uninterrupted(Gateway()).later().result(0.01)
    gateway.open.complete("now")
    assert answer.result(10) == "now"


def test_errors_come_to_who_asked() -> None:
    gateway = uninterrupted(Gateway())
    with pytest.raises(RecipientUnreachableError, match="nobody there"):
        gateway.unreachable().result(10)
    with pytest.raises(KeyboardInterrupt):
        gateway.breaks().result(10)
    assert gateway.who().result(10)
