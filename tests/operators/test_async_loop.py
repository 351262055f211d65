"""The event loop in its thread, and the functions as they run there. The test holds the futures
that functions wait for."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flinkpy.operators.async_io import event_loop as async_loop
from flinkpy.operators.async_io.event_loop import EventLoopThread, Outcome
from flinkpy.operators.async_io.output_queues import Entry
from tests.waiting import PATIENCE_S


class World:
    """A loop, and what it delivered."""

    def __init__(self) -> None:
        self.delivered: queue.Queue[list[Outcome]] = queue.Queue()
        self.loops: list[EventLoopThread] = []

    def start(self, invoke: Callable[[Any], Any]) -> EventLoopThread:
        self.loops.append(EventLoopThread("async test", invoke, self.delivered.put))
        return self.loops[-1]

    def next(self) -> list[Outcome]:
        return self.delivered.get(timeout=PATIENCE_S)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    for loop in world.loops:
        loop.close()
        assert not loop._thread.is_alive()


def entries(*values: Any) -> list[Entry]:
    return [Entry(value, None) for value in values]


async def twice(value: int) -> list[int]:
    return [2 * value]


def test_calls_that_come_back_at_once_are_delivered_together(world: World) -> None:
    calls = entries(*range(50))
    world.start(twice).submit(calls)
    outcomes = world.next()
    assert [(entry.value, result, error) for entry, result, error in outcomes] == [
        (number, [2 * number], None) for number in range(50)
    ]
    assert world.delivered.empty()


def test_calls_wait_side_by_side(world: World) -> None:
    waiting: dict[int, asyncio.Future[str]] = {}
    all_there = threading.Event()

    async def wait(value: int) -> list[str]:
        waiting[value] = asyncio.get_running_loop().create_future()
        if len(waiting) == 3:
            all_there.set()
        return [await waiting[value]]

    loop = world.start(wait)
    loop.submit(entries(1, 2, 3))
    assert all_there.wait(PATIENCE_S)
    for value in (3, 1, 2):
        waiting[value].get_loop().call_soon_threadsafe(waiting[value].set_result, f"answer {value}")
        assert [(entry.value, result) for entry, result, _ in world.next()] == [
            (value, [f"answer {value}"])
        ]


@pytest.mark.parametrize(
    "raised", [ValueError("no"), asyncio.CancelledError(), KeyboardInterrupt()]
)
def test_whatever_a_function_raises_is_an_outcome(world: World, raised: BaseException) -> None:
    async def fail(value: int) -> list[Any]:
        raise raised

    world.start(fail).submit(entries(1))
    [(_, result, error)] = world.next()
    assert (result, error) == (None, raised)


def test_what_cannot_be_awaited_is_an_outcome_too(world: World) -> None:
    world.start(lambda value: [value]).submit(entries(1))
    [(_, _, error)] = world.next()
    assert isinstance(error, TypeError)


def test_a_cancelled_call_is_not_delivered_and_learns_of_it(world: World) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def wait(value: str) -> list[str]:
        if value == "quick":
            return [value]
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()
        return []

    loop = world.start(wait)
    slow = entries("slow")
    loop.submit(slow)
    assert begun.wait(PATIENCE_S)
    loop.cancel(slow)
    assert cancelled.wait(PATIENCE_S)
    loop.submit(entries("quick"))
    assert [entry.value for entry, _, _ in world.next()] == ["quick"]


def test_closing_cancels_what_is_under_way_also_what_the_function_started_itself(
    world: World,
) -> None:
    begun = threading.Event()
    ended: list[str] = []

    async def background() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("background")

    async def wait(value: str) -> list[str]:
        task = asyncio.ensure_future(background())
        await asyncio.sleep(0)
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(value)
        return [str(task)]

    loop = world.start(wait)
    loop.submit(entries("call"))
    assert begun.wait(PATIENCE_S)
    loop.close()
    assert sorted(ended) == ["background", "call"]
    assert not loop._thread.is_alive()
    assert world.delivered.empty()
    loop.close()  # again does no harm


def test_a_function_that_blocks_does_not_keep_the_task_from_ending(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(async_loop, "JOIN_S", 0.01)
    begun, may_end = threading.Event(), threading.Event()

    async def block(value: int) -> list[int]:
        begun.set()
        may_end.wait(PATIENCE_S)
        return [value]

    loop = world.start(block)
    loop.submit(entries(1))
    assert begun.wait(PATIENCE_S)
    with caplog.at_level(logging.WARNING):
        loop.close()
    assert "blocks" in caplog.text
    may_end.set()
    loop._thread.join(PATIENCE_S)
