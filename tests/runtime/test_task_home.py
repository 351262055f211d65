"""Tasks with a thread of their own: their turns, their moves, the order of what happens to them,
and how they are interrupted."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FunctionType

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import TaskInterrupted
from flinkpy.runtime.loop.interruption import GRACE_S, Interruptions, interrupt
from flinkpy.runtime.loop.slot_loop import SlotLoop
from flinkpy.runtime.loop.step_pace import CALM_STEPS, LONG_S, NOTABLE_S, StepPace
from flinkpy.runtime.loop.task_home import TaskHome
from tests.waiting import PATIENCE_S, eventually


class Worker:
    """A task whose steps a test writes."""

    def __init__(
        self,
        loop: SlotLoop,
        step: Callable[[], bool],
        *,
        has_thread: bool = True,
        moves: bool = False,
    ) -> None:
        self.scheduled = False
        self.home = TaskHome(loop, self, "worker")
        self.errors: list[BaseException] = []
        self.threads: list[int] = []
        self._act = step
        self._begin = lambda: self.home.begin(has_thread=has_thread, moves=moves)
        self._loop = loop

    def start(self) -> None:
        self._loop.call_soon_threadsafe(self._begin)
        self._loop.schedule_threadsafe(self)

    def step(self) -> bool:
        return self.home.step(self._step)

    def _step(self) -> bool:
        self.threads.append(threading.get_ident())
        began = time.perf_counter()
        more = self._act()
        if time.perf_counter() - began >= NOTABLE_S:
            self.home.step_was_long(time.perf_counter() - began)
        return more

    def crashed(self, error: BaseException) -> None:
        self.errors.append(error)


@pytest.fixture
def loop() -> Iterator[SlotLoop]:
    made = SlotLoop("test loop")
    made.start()
    yield made
    assert made.stop(PATIENCE_S)


# -- the pace --------------------------------------------------------------------------------------


def test_a_step_that_waits_for_most_of_its_time_is_not_waited_for() -> None:
    pace = StepPace()
    pace.step_took(0.02, 0.001)
    assert pace.waits
    assert pace.needs_thread


def test_a_step_that_computes_is_waited_for_and_needs_a_thread_only_if_it_is_long() -> None:
    pace = StepPace()
    pace.step_took(0.02, 0.019)
    assert (pace.waits, pace.needs_thread) == (False, False)
    pace.step_took(LONG_S, LONG_S)
    assert (pace.waits, pace.needs_thread) == (False, True)


def test_processor_time_is_asked_for_after_a_step_that_was_not_short() -> None:
    pace = StepPace()
    pace.step_took(NOTABLE_S / 2)
    assert not pace.wants_cpu
    pace.step_took(NOTABLE_S)
    assert pace.wants_cpu


def test_a_task_is_calm_after_many_steps_that_were_not_long_and_one_long_step_begins_anew() -> None:
    pace = StepPace()
    pace.step_took(0.02, 0.0)
    for _ in range(CALM_STEPS - 1):
        pace.step_took(0.001, 0.001)
    assert (pace.waits, pace.is_calm) == (True, False)
    pace.step_took(0.001, 0.001)
    assert (pace.waits, pace.is_calm) == (False, True)
    pace.step_took(0.02, 0.0)
    assert (pace.waits, pace.is_calm) == (True, False)


def test_the_loop_waits_long_for_a_step_only_if_the_last_that_was_not_short_computed() -> None:
    pace = StepPace()
    new = pace.patience_s
    pace.step_took(0.001, 0.001)
    short = pace.patience_s
    pace.step_took(0.02, 0.019)
    pace.step_took(0.001, 0.001)
    computing = pace.patience_s
    pace.step_took(LONG_S, LONG_S)
    long = pace.patience_s
    pace.step_took(LONG_S, 0.0)
    found = new, short, computing, long, pace.patience_s
    assert found == (NOTABLE_S, NOTABLE_S, LONG_S, NOTABLE_S, 0.0)


# -- turns -----------------------------------------------------------------------------------------


@pytest.mark.finding("newcomers 4")
def test_steps_that_wait_wait_at_the_same_time_and_hold_up_nobody(loop: SlotLoop) -> None:
    met, others = threading.Barrier(4), threading.Event()

    def wait() -> bool:
        met.wait(PATIENCE_S)  # breaks, unless all four are in their steps
        others.wait(PATIENCE_S)
        return False

    waiting = [Worker(loop, wait) for _ in range(4)]
    for each in waiting:
        each.start()

    def fast() -> bool:
        others.set()
        return False

    Worker(loop, fast, has_thread=False).start()
    assert others.wait(PATIENCE_S)
    eventually(lambda: all(each.home.stepping_thread_id is None for each in waiting))
    assert not met.broken
    assert not any(each.errors for each in waiting)


def test_a_short_step_in_a_thread_of_its_own_has_its_turn_alone(loop: SlotLoop) -> None:
    inside, overlaps, left = [0], [0], threading.Semaphore(0)

    def step(count: list[int]) -> Callable[[], bool]:
        def act() -> bool:
            inside[0] += 1
            overlaps[0] += inside[0] > 1
            inside[0] -= 1
            count[0] -= 1
            if not count[0]:
                left.release()
            return count[0] > 0

        return act

    workers = [Worker(loop, step([200]), has_thread=number % 2 == 0) for number in range(4)]
    for each in workers:
        each.start()
    for _ in workers:
        assert left.acquire(timeout=PATIENCE_S)
    assert overlaps == [0]
    assert len(set(workers[0].threads)) == len(set(workers[1].threads)) == 1
    assert workers[0].threads[0] != workers[1].threads[0] == workers[3].threads[0]


def test_a_task_that_was_woken_in_its_step_has_another_one(loop: SlotLoop) -> None:
    in_step, go_on, steps = threading.Event(), threading.Event(), [0]

    def act() -> bool:
        steps[0] += 1
        in_step.set()
        go_on.wait(PATIENCE_S)
        return False

    worker = Worker(loop, act)

    worker.start()
    assert in_step.wait(PATIENCE_S)
    eventually(lambda: worker.home.blocked_thread_id is not None)
    loop.schedule_threadsafe(worker)
    eventually(lambda: not worker.scheduled)
    go_on.set()
    eventually(lambda: steps == [2])


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)])
def test_what_a_step_raises_the_task_takes(loop: SlotLoop, error: BaseException) -> None:
    def act() -> bool:
        raise error

    worker = Worker(loop, act)

    worker.start()
    eventually(lambda: worker.errors == [error])


# -- moves -----------------------------------------------------------------------------------------


def test_a_task_with_short_steps_moves_to_the_loops_thread_and_one_with_a_long_step_out_of_it(
    loop: SlotLoop,
) -> None:
    long, may_end, ends = threading.Event(), threading.Event(), threading.Event()

    def act() -> bool:
        if long.is_set() and not may_end.is_set():
            may_end.wait(2 * LONG_S)
            may_end.set()
        return not ends.is_set()

    worker = Worker(loop, act, moves=True)

    worker.start()
    eventually(lambda: loop.thread_id in worker.threads)
    assert worker.threads[0] != loop.thread_id
    long.set()
    eventually(lambda: worker.threads[-1] != loop.thread_id)
    eventually(lambda: worker.threads[-1] == loop.thread_id)
    ends.set()


def test_a_task_that_does_not_move_keeps_its_thread(loop: SlotLoop) -> None:
    left, over = [5 * CALM_STEPS], threading.Event()

    def act() -> bool:
        left[0] -= 1
        if not left[0]:
            over.set()
        return left[0] > 0

    worker = Worker(loop, act)

    worker.start()
    assert over.wait(PATIENCE_S)
    assert set(worker.threads) == {worker.home.own_thread_id}


@pytest.mark.parametrize("seed", range(6))
def test_actions_keep_their_order_and_run_between_steps_in_the_tasks_thread_wherever_it_moves(
    loop: SlotLoop, seed: int
) -> None:
    chance, inside, done = random.Random(seed), threading.Lock(), list[int]()
    left, wrong = [600], list[str]()

    def act() -> bool:
        if not inside.acquire(blocking=False):
            wrong.append("a step during an action")
        if not worker.home.is_here():
            wrong.append("a step elsewhere")
        if chance.random() < 0.02:
            threading.Event().wait(NOTABLE_S * 1.5)
        inside.release()
        left[0] -= 1
        return left[0] > 0

    def action(number: int) -> Callable[[], None]:
        def run() -> None:
            if not inside.acquire(blocking=False):
                wrong.append("an action during a step")
            if not worker.home.is_here():
                wrong.append("an action elsewhere")
            done.append(number)
            inside.release()

        return run

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        worker = Worker(loop, act, has_thread=seed % 2 == 0, moves=True)
        worker.start()
        for number in range(600):
            worker.home.run(action(number))
            if number % 7 == 0:
                loop.schedule_threadsafe(worker)
            if number % 50 == 0:
                threading.Event().wait(0.001)
        eventually(lambda: left[0] <= 0 and len(done) == 600)
    finally:
        sys.setswitchinterval(before)
    assert wrong == []
    assert done == list(range(600))
    assert worker.errors == []


def test_what_comes_for_a_task_that_has_left_runs_in_the_loops_thread(loop: SlotLoop) -> None:
    ran = list[int]()

    def act() -> bool:
        worker.home.leave()
        return False

    worker = Worker(loop, act)

    worker.start()
    eventually(lambda: worker.threads != [] and worker.home.own_thread_id is None)
    for _ in range(100):
        worker.home.run(lambda: ran.append(threading.get_ident()))
    eventually(lambda: len(ran) == 100)
    assert set(ran) == {loop.thread_id}


def test_bound_callbacks_run_at_once_in_the_tasks_thread_and_soon_from_another_one(
    loop: SlotLoop,
) -> None:
    called = list[tuple[str, int]]()

    def act() -> bool:
        bound("here")
        return False

    worker = Worker(loop, act)

    worker.start()
    bound = worker.home.bind(lambda where: called.append((where, threading.get_ident())))
    worker.start()
    eventually(lambda: len(called) == 1)
    bound("elsewhere")
    eventually(lambda: len(called) == 2)
    assert called == [("here", worker.home.own_thread_id), ("elsewhere", worker.home.own_thread_id)]


def test_timers_of_a_task_fire_in_its_thread_and_cancelled_ones_never(loop: SlotLoop) -> None:
    fired = list[tuple[str, int]]()

    def act() -> bool:
        worker.home.call_later(0.0, lambda: fired.append(("cancelled", 0))).cancel()
        worker.home.call_later(0.001, lambda: fired.append(("fired", threading.get_ident())))
        return False

    worker = Worker(loop, act)

    worker.start()
    eventually(lambda: fired != [])
    assert fired == [("fired", worker.home.own_thread_id)]


# -- interruptions ---------------------------------------------------------------------------------


def loops_for_ever(began: threading.Event, ended: list[str]) -> None:
    began.set()
    try:
        while True:
            threading.Event().wait(0.001)
    except Exception:
        ended.append("caught")
    finally:
        ended.append("finally")


@pytest.mark.finding("gaps G9")
def test_a_blocked_function_is_interrupted_and_its_finally_runs(loop: SlotLoop) -> None:
    began, ended, asked = threading.Event(), list[str](), [True]

    def act() -> bool:
        loops_for_ever(began, ended)
        return False

    worker = Worker(loop, act)

    worker.start()
    assert began.wait(PATIENCE_S)
    worker.home.run(lambda: asked.clear())  # the cancellation, which comes when the step has ended
    Interruptions(loop).begin(worker.home, 0.02, lambda: bool(asked))
    eventually(lambda: not asked)
    assert ended == ["finally"]
    assert worker.errors == []


def swallows(began: threading.Event, seen: list[BaseException]) -> None:
    while len(seen) < 3:
        try:
            began.set()
            while True:
                threading.Event().wait(0.001)
        except TaskInterrupted as error:
            seen.append(error)


def test_a_function_that_swallows_the_interruption_is_interrupted_again_after_the_interval(
    loop: SlotLoop,
) -> None:
    began, seen, asked = threading.Event(), list[BaseException](), [True]

    def act() -> bool:
        swallows(began, seen)
        return False

    worker = Worker(loop, act)

    worker.start()
    assert began.wait(PATIENCE_S)
    worker.home.run(lambda: asked.clear())
    Interruptions(loop).begin(worker.home, 0.02, lambda: bool(asked))
    eventually(lambda: not asked)
    assert len(seen) == 3


def test_a_thread_in_the_engines_code_is_not_interrupted() -> None:
    ready, over = threading.Event(), threading.Event()

    def engine() -> None:
        ready.set()
        over.wait(PATIENCE_S)

    assert isinstance(engine, FunctionType)
    of_engine = FunctionType(
        engine.__code__,
        {**globals(), "__name__": "flinkpy.engine"},
        "engine",
        None,
        engine.__closure__,
    )
    thread = threading.Thread(target=of_engine)
    thread.start()
    assert ready.wait(PATIENCE_S)
    assert thread.ident is not None
    assert not interrupt(thread.ident)
    over.set()
    thread.join()


def test_a_thread_that_is_gone_is_not_interrupted() -> None:
    assert not interrupt(1)


def test_a_function_that_returns_soon_is_not_interrupted() -> None:
    clock, home, looks = ManualClock(), Blocked(), list[float]()
    loop = SlotLoop("no thread", clock)
    home.look = lambda: looks.append(clock.monotonic())
    asked = [True]
    Interruptions(loop).begin(home, 30.0, lambda: bool(asked))
    for _ in range(99):
        loop.run_once(may_wait=False)
        clock.advance(GRACE_S / 100)
    assert looks == []
    asked.clear()
    clock.advance(GRACE_S)
    loop.run_once(may_wait=False)
    assert looks == []
    assert loop.statistics().timers == 0
    loop.stop()


class Blocked:
    """A home whose task never is in the program's code."""

    def __init__(self) -> None:
        self.look: Callable[[], None] = lambda: None

    @property
    def blocked_thread_id(self) -> int | None:
        self.look()
        return None
