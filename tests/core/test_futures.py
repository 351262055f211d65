from __future__ import annotations

import threading

import pytest

from flinkpy.core.errors import RpcTimeoutError
from flinkpy.core.futures import Future, all_of


def test_the_first_completion_wins() -> None:
    future: Future[int] = Future()
    assert future.complete(1)
    assert not future.complete(2)
    assert not future.fail(ValueError())
    assert future.result() == 1


def test_it_completes_with_what_a_function_gives_or_raises() -> None:
    given, raised = Future[int](), Future[int]()
    assert given.complete_with(lambda: 1)
    assert not given.complete_with(lambda: 2)
    assert given.result() == 1
    assert raised.complete_with(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        raised.result()


def test_callbacks_run_at_completion_or_at_once_when_done() -> None:
    seen, future = list[str](), Future[int]()
    future.add_done_callback(lambda _: seen.append("before"))
    future.complete(1)
    future.add_done_callback(lambda _: seen.append("after"))
    assert seen == ["before", "after"]


def test_an_error_passes_through_then() -> None:
    future: Future[int] = Future()
    chained = future.then(lambda value: value + 1)
    future.fail(KeyError("gone"))
    with pytest.raises(KeyError):
        chained.result()


def test_an_error_of_the_function_fails_the_chained_future_only() -> None:
    future = Future.completed(0)
    chained = future.then(lambda value: 1 // value)
    assert future.error is None
    assert isinstance(chained.error, ZeroDivisionError)


def test_composed_futures_are_done_when_the_second_is() -> None:
    first, second = Future[int](), Future[str]()
    asked = list[int]()

    def ask(value: int) -> Future[str]:
        asked.append(value)
        return second

    composed = first.compose(ask)
    assert asked == []
    first.complete(1)
    assert (asked, composed.done) == ([1], False)
    second.complete("there")
    assert composed.result(timeout=0) == "there"


def test_an_error_of_either_future_or_of_the_function_fails_the_composed_one() -> None:
    first: Future[int] = Future()
    composed = first.compose(lambda value: Future.completed(value))
    first.fail(KeyError("gone"))
    assert isinstance(composed.error, KeyError)
    assert isinstance(
        Future.completed(1).compose(lambda value: Future.failed(KeyError(value))).error, KeyError
    )
    assert isinstance(
        Future.completed(0).compose(lambda value: Future.completed(1 // value)).error,
        ZeroDivisionError,
    )


def test_result_waits_for_another_thread() -> None:
    future: Future[str] = Future()
    thread = threading.Thread(target=lambda: future.complete("there"))
    thread.start()
    assert future.result(timeout=10) == "there"
    thread.join()


def test_result_gives_up_after_its_timeout() -> None:
    with pytest.raises(RpcTimeoutError, match=r"0\.01 s"):
        Future[int]().result(timeout=0.01)


def test_a_callback_that_raises_is_not_swallowed() -> None:
    future: Future[int] = Future()

    def explode(_: Future[int]) -> None:
        raise RuntimeError("a bug")

    future.add_done_callback(explode)
    with pytest.raises(RuntimeError, match="a bug"):
        future.complete(1)


def test_all_of_gives_the_values_in_order() -> None:
    futures: list[Future[int]] = [Future(), Future()]
    together = all_of(futures)
    futures[1].complete(2)
    assert not together.done
    futures[0].complete(1)
    assert together.result() == [1, 2]
    assert all_of(list[Future[int]]()).result() == []


def test_all_of_fails_with_the_first_error() -> None:
    futures: list[Future[int]] = [Future(), Future()]
    together = all_of(futures)
    futures[0].fail(ValueError("first"))
    futures[1].fail(ValueError("second"))
    with pytest.raises(ValueError, match="first"):
        together.result()
