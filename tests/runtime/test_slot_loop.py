"""The slot loop: tasks in turn, timers, sockets, other threads; and nothing of one disturbs
another."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.runtime.loop.poller import READABLE, WRITABLE, Poller, SelectorPoller, make_poller
from flinkpy.runtime.loop.processing_timers import TaskTimers
from flinkpy.runtime.loop.slot_loop import SlotLoop
from flinkpy.runtime.loop.yield_policy import YieldPolicy


class Counting:
    """A task with so many steps to do."""

    def __init__(
        self, name: str, steps: int, log: list[str], fails: type[BaseException] | None = None
    ) -> None:
        self.name = name
        self.left = steps
        self.log = log
        self.fails = fails
        self.scheduled = False
        self.crash: BaseException | None = None

    def step(self) -> bool:
        if self.fails is not None:
            raise self.fails("broken")
        self.log.append(self.name)
        self.left -= 1
        return self.left > 0

    def crashed(self, error: BaseException) -> None:
        self.crash = error


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def loop(clock: ManualClock) -> Iterator[SlotLoop]:
    made = SlotLoop("test loop", clock)
    yield made
    made.stop()


def rounds(loop: SlotLoop, count: int = 5) -> None:
    for _ in range(count):
        loop.run_once(may_wait=False)


def test_ready_tasks_get_a_step_each_in_turn(loop: SlotLoop) -> None:
    log: list[str] = []
    loop.schedule(Counting("a", 3, log))
    loop.schedule(Counting("b", 2, log))
    rounds(loop)
    assert log == ["a", "b", "a", "b", "a"]
    assert loop.statistics().ready == 0


def test_scheduling_twice_gives_one_step(loop: SlotLoop) -> None:
    log: list[str] = []
    task = Counting("a", 1, log)
    loop.schedule(task)
    loop.schedule(task)
    rounds(loop)
    assert log == ["a"]


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_crashing_step_reaches_its_task_only(loop: SlotLoop, error: type[BaseException]) -> None:
    log: list[str] = []
    broken = Counting("broken", 1, log, fails=error)
    loop.schedule(broken)
    loop.schedule(Counting("a", 2, log))
    rounds(loop)
    assert log == ["a", "a"]
    assert isinstance(broken.crash, error)


def test_a_raising_callback_is_logged_and_the_loop_goes_on(
    loop: SlotLoop, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[int] = []

    def broken() -> None:
        raise ValueError("in a callback")

    loop.call_soon(broken)
    loop.call_soon(lambda: seen.append(1))
    rounds(loop)
    assert seen == [1]
    assert "in a callback" in caplog.text


def test_timers_fire_in_order_once_they_are_due_and_not_when_cancelled(
    loop: SlotLoop, clock: ManualClock
) -> None:
    seen: list[str] = []
    loop.call_later(2, lambda: seen.append("late"))
    loop.call_later(1, lambda: seen.append("early"))
    loop.call_later(1.5, lambda: seen.append("never")).cancel()
    rounds(loop)
    assert seen == []
    assert loop.statistics().timers == 2
    clock.advance(3)
    rounds(loop)
    assert seen == ["early", "late"]
    assert loop.statistics().timers == 0


def test_sockets_call_back_while_they_are_ready(loop: SlotLoop) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        seen: list[bytes] = []
        loop.add_reader(ours, lambda: seen.append(ours.recv(10)))
        rounds(loop)
        assert seen == []
        theirs.send(b"hello")
        rounds(loop)
        assert seen == [b"hello"]
        written: list[int] = []

        def write() -> None:
            written.append(1)
            loop.remove_writer(ours)

        loop.add_writer(ours, write)
        rounds(loop)
        assert written == [1]
        loop.remove_reader(ours)
        theirs.send(b"more")
        rounds(loop)
        assert seen == [b"hello"]
        assert loop.statistics().sockets == 0


@pytest.mark.parametrize("make", [make_poller, SelectorPoller])
def test_a_poller_says_what_can_be_read_and_written(make: Callable[[], Poller]) -> None:
    poller = make()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        fd = ours.fileno()
        poller.register(fd, READABLE)
        assert poller.poll(0) == []
        poller.modify(fd, READABLE | WRITABLE)
        assert poller.poll(0) == [(fd, WRITABLE)]
        theirs.send(b"x")
        assert poller.poll(1) == [(fd, READABLE | WRITABLE)]
        poller.unregister(fd)
        assert poller.poll(0) == []
    poller.close()


def test_a_peer_that_hung_up_shows_as_readable(loop: SlotLoop) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        seen: list[bytes] = []
        loop.add_reader(ours, lambda: seen.append(ours.recv(10)))
        theirs.close()
        loop.run_once(may_wait=False)
        assert seen == [b""]
        loop.remove_reader(ours)


def test_a_socket_that_another_callback_removed_is_not_called_any_more(loop: SlotLoop) -> None:
    pairs = [socket.socketpair() for _ in range(2)]
    seen: list[int] = []

    def only_one(index: int) -> None:
        seen.append(index)
        for ours, _ in pairs:
            loop.remove_reader(ours)

    for index, (ours, theirs) in enumerate(pairs):
        loop.add_reader(ours, partial(only_one, index))
        theirs.send(b"x")
    rounds(loop)
    assert len(seen) == 1
    for pair in pairs:
        for end in pair:
            end.close()


def test_sockets_are_looked_at_while_tasks_are_busy(clock: ManualClock, loop: SlotLoop) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        seen: list[bytes] = []
        loop.add_reader(ours, lambda: seen.append(ours.recv(10)))
        loop.schedule(Counting("busy", 1_000_000, []))
        theirs.send(b"x")
        for _ in range(10):
            clock.advance(0.001)
            loop.run_once()
        assert seen == [b"x"]
        loop.remove_reader(ours)


def test_a_loop_that_has_slept_gives_way_once_and_a_busy_one_never() -> None:
    ways: list[str] = []
    loop = SlotLoop(yield_policy=YieldPolicy(yield_=lambda: ways.append("given")))
    try:
        loop.maybe_yield()  # it has not slept
        for expected in (1, 2):
            loop.call_later(0.001, lambda: None)
            loop.run_once()  # sleeps at its end
            loop.maybe_yield()
            loop.maybe_yield()
            assert len(ways) == expected
        loop.call_later(0.001, lambda: None)
        loop.run_once()
        loop.run_once(may_wait=False)
        loop.maybe_yield()
        assert len(ways) == 2
    finally:
        loop.stop()


def test_a_waiting_loop_is_woken_from_another_thread() -> None:
    loop = SlotLoop("threaded")
    loop.start()
    for _ in range(200):
        arrived = threading.Event()
        loop.call_soon_threadsafe(arrived.set)
        assert arrived.wait(5)
    assert loop.statistics().waits > 0
    assert loop.stop(5)


def test_what_is_asked_of_a_loop_while_it_stops_is_done_too() -> None:
    loop = SlotLoop("threaded")
    began = threading.Event()
    go_on = threading.Event()
    done = threading.Event()

    def last() -> None:
        began.set()
        go_on.wait(5)
        # comes in the round in which the loop stops
        loop.call_soon_threadsafe(lambda: loop.call_soon_threadsafe(done.set))

    loop.start()
    loop.call_soon_threadsafe(last)
    assert began.wait(5)
    assert not loop.stop(0)
    go_on.set()
    assert loop.stop(5)
    assert done.is_set()


def test_many_threads_lose_no_call() -> None:
    loop = SlotLoop("threaded")
    loop.start()
    seen: list[int] = []

    def send() -> None:
        for _ in range(500):
            loop.call_soon_threadsafe(lambda: seen.append(1))

    senders = [threading.Thread(target=send) for _ in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    done = threading.Event()
    loop.call_soon_threadsafe(done.set)
    assert done.wait(5)
    assert len(seen) == 2000
    assert loop.stop(5)


def test_task_timers_run_as_mail_and_end_when_quiesced(loop: SlotLoop, clock: ManualClock) -> None:
    mail: list[Callable[[], None]] = []
    timers = TaskTimers(loop, mail.append)
    seen: list[str] = []
    timers.call_later(1, lambda: seen.append("one"))
    cancelled_in_the_mail = timers.call_later(1, lambda: seen.append("two"))
    timers.call_later(9, lambda: seen.append("nine"))
    clock.advance(2)
    rounds(loop)
    assert (len(mail), seen) == (2, [])
    cancelled_in_the_mail.cancel()
    for action in mail:
        action()
    assert seen == ["one"]
    assert timers.now_ms() == 2000
    assert timers.pending == 1
    timers.quiesce()
    timers.call_later(1, lambda: seen.append("after"))
    clock.advance(20)
    rounds(loop)
    assert (timers.pending, len(mail), loop.statistics().timers) == (0, 2, 0)


class Busy:
    """A task that always has more to do; a step takes a fifth of a millisecond."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.scheduled = False

    def step(self) -> bool:
        self._clock.advance(200e-6)
        return True

    def crashed(self, error: BaseException) -> None:
        raise error


class Looks:
    """A poller that counts."""

    def __init__(self, poller: Poller) -> None:
        self._poller, self.count = poller, 0
        self.register = poller.register
        self.modify = poller.modify
        self.unregister = poller.unregister
        self.close = poller.close

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        self.count += 1
        return self._poller.poll(timeout)


def test_a_busy_loop_looks_at_quiet_sockets_less_often_than_other_threads_are_patient_and_at_busy_ones_often(
    clock: ManualClock,
) -> None:
    looks = Looks(make_poller())
    loop = SlotLoop(clock=clock, poller=looks)

    def looks_in(steps: int) -> int:
        before = looks.count
        rounds(loop, steps)
        return looks.count - before

    loop.schedule(Busy(clock))
    looks_in(200)  # it finds out that there is nothing to be seen
    patience_s = 5e-3  # sys.getswitchinterval() as Python sets it
    assert looks_in(1000) < 1000 * 200e-6 / patience_s
    ours, theirs = socket.socketpair()
    with ours, theirs:
        loop.add_reader(ours, lambda: None)  # reads nothing, so there is always something
        theirs.send(b"x")
        rounds(loop, 40)
        assert looks_in(1000) > 300
        loop.remove_reader(ours)
    loop.stop()
