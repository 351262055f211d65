"""A source's whole conversation without a cluster: its coordinator, its reader operators, and the
couriers between them, over a road that may reorder and repeat."""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flinkpy.actors.rpc.delivery.courier import Courier, EventOutbox, EventReceiver, NumberedEvents
from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.connectors.rows import rows_of
from flinkpy.connectors.source_api.coordinator import SourceCoordinator
from flinkpy.connectors.source_api.source import Source
from flinkpy.connectors.source_api.source_operator import SourceReaderOperator
from flinkpy.connectors.source_api.timestamped_source import TimestampedSourceOperator
from flinkpy.core.clock import SYSTEM_CLOCK, Clock, ManualClock
from flinkpy.core.elements import Batch, CheckpointBarrier, ControlElement
from flinkpy.core.futures import Future
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.core.program.code import dumps, loads
from flinkpy.operators.base import InputStatus
from flinkpy.operators.context import OperatorContext, Output, TaskInfo
from flinkpy.state.snapshots.saved_state import SavedState, redistribute_all


@dataclass
class Timer:
    due: float
    action: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualTimers:
    """A timer service on a manual clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.timers: list[Timer] = []

    def now_ms(self) -> int:
        return self.clock.time_ms()

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Timer:
        timer = Timer(self.clock.monotonic() + delay_s, action)
        self.timers.append(timer)
        return timer

    def next_due(self) -> float | None:
        return min((timer.due for timer in self.timers if not timer.cancelled), default=None)

    def fire(self) -> None:
        """Runs what is due now."""
        now = self.clock.monotonic()
        due = [timer for timer in self.timers if not timer.cancelled and timer.due <= now]
        self.timers = [timer for timer in self.timers if not timer.cancelled and timer.due > now]
        for timer in due:
            timer.action()


def travelled(value: object) -> Any:
    """A copy as it arrives in another process. (The way of the user's code looks through all
    modules: too slow for hundreds of examples.)"""
    try:
        return pickle.loads(pickle.dumps(value))
    except Exception:
        return loads(dumps(value))


class Collected(Output):
    """Keeps what is emitted: the batches, and with the control elements between them all
    elements."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.elements: list[Batch | ControlElement] = []
        self.letters: list[Any] = []  # what went to a side output

    def emit(self, batch: Batch) -> None:
        assert len(batch) > 0, "an empty batch was emitted"
        self.batches.append(batch)
        self.elements.append(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self.letters += rows_of(batch)

    def emit_control(self, element: ControlElement) -> None:
        self.elements.append(element)

    @property
    def values(self) -> list[Any]:
        return [value for batch in self.batches for value in rows_of(batch)]


def operator_context(
    subtask: int = 0,
    parallelism: int = 1,
    attempt: int = 0,
    send: Callable[[Any], None] = lambda event: None,
    clock: Clock | None = None,
    timers: ManualTimers | None = None,
    batch_records: int = 100,
    name: str = "numbers",
) -> OperatorContext:
    clock = clock or ManualClock()
    task = TaskInfo(
        "job",
        name,
        ExecutionAttemptId(JobId("0123456789abcdef"), JobVertexId("v"), subtask, attempt),
        parallelism,
        128,
    )
    return OperatorContext(
        operator_id=OperatorId("op"),
        name=name,
        uid=None,
        task=task,
        clock=clock,
        timers=timers or ManualTimers(clock),
        run_in_task=lambda action: action(),
        send_operator_event=send,
        batch_records=batch_records,
    )


class Line:
    """One direction between the coordinator and an attempt of a subtask: what ``say`` takes comes
    to ``hear`` once and in order, as ``post`` may bring messages twice and in any order."""

    def __init__(
        self, post: Callable[[Callable[[], None]], None], hear: Callable[[Any], None]
    ) -> None:
        self._post = post
        self._hear = hear
        self._receiver = EventReceiver[Any]()
        self._outbox = EventOutbox[None, Any]()
        self._courier = Courier(_NoTimers(), 0.0, self)

    def say(self, event: Any) -> None:
        self._outbox.add(None, event)
        self._courier.kick()

    def due(self) -> tuple[NumberedEvents[None, Any], ...] | None:
        return self._outbox.waiting() or None

    def send(self, batch: tuple[NumberedEvents[None, Any], ...]) -> Future[None]:
        answer: Future[None] = Future()

        def arrive() -> None:
            for each in batch:
                for event in self._receiver.fresh(each.first, each.events):
                    self._hear(event)
            answer.complete(None)

        self._post(arrive)
        return answer

    def answered(self, batch: tuple[NumberedEvents[None, Any], ...], answer: None) -> None:
        self._outbox.arrived(batch)

    def failed(self, error: BaseException) -> None:
        raise AssertionError("nothing is lost here")


class _NoTimers:
    def schedule(self, delay_s: float, action: Callable[[], object]) -> Timer:
        raise AssertionError("nothing is lost here")


@dataclass
class Subtask:
    """One attempt of one subtask."""

    operator: SourceReaderOperator
    from_coordinator: Line
    output: Collected
    attempt: int
    timers: ManualTimers
    status: InputStatus = InputStatus.MORE_AVAILABLE
    wakes: int = 0
    woken: threading.Event = field(default_factory=threading.Event)

    def wake(self) -> None:
        """From any thread."""
        self.wakes += 1
        if self.status is not InputStatus.END_OF_INPUT:
            self.status = InputStatus.MORE_AVAILABLE
        self.woken.set()

    def poll(self) -> None:
        """One call of its reader."""
        wakes = self.wakes
        status = self.operator.emit_next()
        was_woken = self.wakes != wakes and status is InputStatus.NOTHING_AVAILABLE
        self.status = InputStatus.MORE_AVAILABLE if was_woken else status


@dataclass
class World:
    """Coordinator, subtasks, and messages on their way; every step is drawn from ``random``."""

    source: Source[Any]
    parallelism: int = 1
    seed: int = 0
    doubled: float = 0.0  # share of messages delivered twice
    batch_records: int = 100
    clock: ManualClock = field(default_factory=ManualClock)
    policy: ErrorPolicy | None = None  # for records that cannot be read
    # what the coordinator and each subtask start from
    restored: tuple[bytes, list[SavedState]] | None = None
    strategy: WatermarkStrategy | None = None

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.errors: list[BaseException] = []
        # by the enumerator, and when it is due
        self.scheduled: list[tuple[float, Callable[[], None]]] = []
        self.mail: list[Callable[[], object]] = []
        self.woken = threading.Event()
        self.steps = 0
        self.coordinator = SourceCoordinator(
            OperatorId("op"),
            travelled(self.source.without_data()),
            self.parallelism,
            self,
            name="numbers",
            restored=self.restored[0] if self.restored is not None else None,
        )
        self.coordinator.start()
        states = self.restored[1] if self.restored is not None else [None] * self.parallelism
        self.subtasks = [self.deploy(index, 0, state) for index, state in enumerate(states)]

    # the coordinator's context

    def fail_job(self, error: BaseException) -> None:
        self.errors.append(error)

    def schedule(self, delay_s: float, action: Callable[[], None]) -> None:
        self.scheduled.append((self.clock.monotonic() + delay_s, action))

    def run_in_background(self, function: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self.mail.append(lambda: future.complete_with(function))
        return future

    def _post(self, action: Callable[[], None]) -> None:
        self.mail.append(action)
        if self.random.random() < self.doubled:
            self.mail.append(action)

    def send_event(self, subtask: int, event: Any) -> None:
        self.subtasks[subtask].from_coordinator.say(event)

    def _operator(self) -> SourceReaderOperator:
        return (
            SourceReaderOperator(self.source)
            if self.strategy is None
            else TimestampedSourceOperator(self.source, self.strategy)
        )

    def deploy(self, index: int, attempt: int, restored: SavedState | None = None) -> Subtask:
        timers = ManualTimers(self.clock)
        operator: SourceReaderOperator = travelled(self._operator())
        if self.policy is not None:
            operator.set_error_policy(self.policy, "numbers")

        def hear(event: Any) -> None:
            if self.subtasks[index] is subtask:
                operator.handle_operator_event(event)

        subtask = Subtask(
            operator, Line(self._post, hear), Collected(), attempt, timers, woken=self.woken
        )
        to_coordinator = Line(
            self._post, lambda event: self.coordinator.handle_event(index, event, attempt)
        )
        context = operator_context(
            index,
            self.parallelism,
            attempt,
            to_coordinator.say,
            self.clock,
            timers,
            self.batch_records,
        )
        operator.setup(context, subtask.output)
        operator.initialize_state(restored)
        operator.wake_up = subtask.wake
        operator.open()
        return subtask

    def restart(self, index: int, *, restored: SavedState | None = None) -> None:
        """The attempt fails and the next one is deployed."""
        old = self.subtasks[index]
        old.operator.close()
        if restored is not None:
            # they are part of the checkpoint that is restored
            self.coordinator._readers[index].assigned.clear()
        self.coordinator.subtask_reset(index, old.attempt)
        self.subtasks[index] = self.deploy(index, old.attempt + 1, restored)

    def step(self) -> bool:
        """One thing happens; False when nothing can any more."""
        actions: list[Callable[[], object]] = [
            subtask.poll
            for subtask in self.subtasks
            if subtask.status is InputStatus.MORE_AVAILABLE
        ]
        if self.mail:
            position = self.random.randrange(len(self.mail))
            actions.append(lambda: self.mail.pop(position)())
        if not actions:
            return False
        self.random.choice(actions)()
        self.steps += 1
        return True

    def pass_time(self, *, for_enumerator: bool = True) -> bool:
        """Moves on to the next timer of a reader, or of the enumerator; False if there is none."""
        due = [
            moment
            for moment in (subtask.timers.next_due() for subtask in self.subtasks)
            if moment is not None
        ]
        due += [moment for moment, _ in self.scheduled if for_enumerator]
        if not due:
            return False
        self.clock.advance(max(0.0, min(due) - self.clock.monotonic()))
        for subtask in self.subtasks:
            subtask.timers.fire()
        now = self.clock.monotonic()
        ready = [action for moment, action in self.scheduled if moment <= now]
        self.scheduled = [(moment, action) for moment, action in self.scheduled if moment > now]
        for action in ready:
            action()
        return True

    def run_until(self, is_done: Callable[[], bool], what: str, patience_s: float) -> None:
        """Until that holds, or until nothing has been emitted for so long. Time moves on when all
        is quiet; readers' threads have their turns meanwhile."""
        deadline, emitted = SYSTEM_CLOCK.monotonic() + patience_s, self._emitted
        while not is_done():
            if self.errors:
                raise self.errors[0]
            if self.step():
                continue
            if self._emitted > emitted:
                deadline, emitted = SYSTEM_CLOCK.monotonic() + patience_s, self._emitted
            self.woken.clear()
            moved = self.pass_time()
            if (
                not self.woken.wait(0.0005 if moved else 0.005)
                and SYSTEM_CLOCK.monotonic() > deadline
            ):
                raise AssertionError(f"{what}: nothing has come for {patience_s:g} s")

    @property
    def _emitted(self) -> int:
        return sum(len(subtask.output.batches) for subtask in self.subtasks)

    def run(self, steps: int = 1_000_000) -> None:
        """Until nothing more happens; time moves on to the next timer when all is quiet."""
        for _ in range(steps):
            if self.step():
                continue
            if self.finished or not self.pass_time(for_enumerator=False):
                return

    @property
    def finished(self) -> bool:
        return all(subtask.status is InputStatus.END_OF_INPUT for subtask in self.subtasks)

    def saved(self, parallelism: int) -> tuple[bytes, list[SavedState]]:
        """What a checkpoint has, for so many readers, once nothing is on its way."""
        while self.mail:
            self.mail.pop(0)()
        state = self.coordinator.snapshot_state(1)
        return state, redistribute_all(
            [self.snapshot(index) for index in range(self.parallelism)], 128, parallelism
        )

    def restored_from(self, saved: tuple[bytes, list[SavedState]]) -> World:
        """A new world that starts from there."""
        return World(
            self.source,
            len(saved[1]),
            self.seed + 1,
            batch_records=self.batch_records,
            policy=self.policy,
            restored=saved,
            strategy=self.strategy,
        )

    def checkpoint(self, parallelism: int | None = None) -> World:
        """A new world that starts from what this one has done; with another number of readers, if
        one is given."""
        return self.restored_from(self.saved(parallelism or self.parallelism))

    def snapshot(self, index: int, checkpoint_id: int = 1) -> SavedState:
        operator = self.subtasks[index].operator
        operator.prepare_snapshot_pre_barrier(checkpoint_id)
        return operator.freeze_state(CheckpointBarrier(checkpoint_id, 0)).write()

    @property
    def values(self) -> list[Any]:
        return [value for subtask in self.subtasks for value in subtask.output.values]

    @property
    def letters(self) -> list[Any]:
        return [letter for subtask in self.subtasks for letter in subtask.output.letters]

    def __enter__(self) -> World:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        for subtask in self.subtasks:
            subtask.operator.close()
        self.coordinator.close()


def read_all(
    source: Source[Any],
    parallelism: int = 1,
    seed: int = 0,
    doubled: float = 0.0,
    batch_records: int = 100,
) -> list[Any]:
    """Every record of a bounded source."""
    world = World(source, parallelism, seed, doubled, batch_records)
    try:
        world.run()
        assert not world.errors, world.errors
        assert world.finished
        return world.values
    finally:
        world.close()
