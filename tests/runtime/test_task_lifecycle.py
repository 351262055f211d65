"""The order of a task's life, for a finished, a cancelled and a failed task; and that everything
taken is given back."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import ControlElement
from flinkpy.core.errors import EngineError, ProgramError, UserCodeError
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.graph.deployment import TaskDeploymentDescriptor
from flinkpy.metrics.live import opened
from flinkpy.operators.chain.operator_chain import OperatorChain
from flinkpy.operators.rows.stateless import MapOperator
from flinkpy.runtime.task import Task
from flinkpy.runtime.task_messages import OperatorEvent
from tests.runtime.harness import (
    JOURNAL,
    JournalOperator,
    JournalSource,
    JournalTwoInputs,
    LoopHarness,
    attempt,
    descriptor,
)

WELL = [
    "CREATE_CHAIN",
    "SETUP",
    "CONNECT_INPUT",
    "INITIALIZE_STATE",
    "OPEN",
    "RUN",
    "FINISH",
    "QUIESCE_TIMERS",
    "AWAIT_CHECKPOINT",
    "FLUSH_OUTPUTS",
    "CLOSE_OPERATORS",
    "CLEAN_UP",
]


@pytest.fixture
def harness() -> Iterator[LoopHarness]:
    made = LoopHarness()
    yield made
    made.close()


def nothing_left(harness: LoopHarness) -> bool:
    shuffle, loop = harness.shuffle.statistics(), harness.loop.statistics()
    return (
        shuffle.partitions,
        shuffle.gates,
        shuffle.segments_in_use,
        loop.timers,
        loop.ready,
    ) == (0, 0, 0, 0, 0)


def phases(task: Task) -> list[str]:
    assert task.stream_task is not None
    return [phase.name for phase in task.stream_task.phases]


@pytest.mark.finding("mechanisms F6")
def test_a_finished_task_goes_through_all_phases_in_order(harness: LoopHarness) -> None:
    [task] = harness.run(
        descriptor("v", JournalSource("a", [[1], [2]]), JournalOperator("b"), JournalOperator("c"))
    )
    assert phases(task) == WELL
    assert harness.reporter.of(attempt("v")) == ["DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED"]
    assert JOURNAL == [
        "c.setup",
        "b.setup",
        "a.setup",
        "c.initialize_state",
        "b.initialize_state",
        "a.initialize_state",
        "c.open",
        "b.open",
        "a.open",
        "a.emit",
        "b.got 1",
        "c.got 1",
        "a.emit",
        "b.got 2",
        "c.got 2",
        "b.watermark",
        "c.watermark",
        "a.finish",
        "b.got last of a",
        "c.got last of a",
        "b.finish",
        "c.finish",
        "a.close",
        "b.close",
        "c.close",
    ]
    assert nothing_left(harness)


def test_consumers_hear_of_the_end_of_data_while_timers_still_run_and_of_the_partitions_end_when_outputs_are_flushed(
    harness: LoopHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []
    write = OperatorChain.write

    def noting(chain: OperatorChain, element: ControlElement) -> None:
        [task] = tasks
        assert task.stream_task is not None
        told.append((type(element).__name__, task.stream_task.phases[-1].name))
        write(chain, element)

    monkeypatch.setattr(OperatorChain, "write", noting)
    tasks = [harness.submit(descriptor("v", JournalSource("a", [[1]]), JournalOperator("b")))]
    harness.run_until(lambda: bool(harness.reporter.terminal()))
    assert told == [("EndOfData", "FINISH"), ("EndOfPartition", "FLUSH_OUTPUTS")]


def test_a_cancelled_task_jumps_to_the_end_and_finishes_nothing(harness: LoopHarness) -> None:
    task = harness.submit(
        descriptor("v", JournalSource("a", [[1]], endless=True), JournalOperator("b"))
    )
    harness.run_until(lambda: "b.got 1" in JOURNAL)
    task.cancel()
    assert phases(task) == [*WELL[:6], "QUIESCE_TIMERS", "CLOSE_OPERATORS", "CLEAN_UP"]
    assert harness.reporter.of(attempt("v")) == [
        "DEPLOYING",
        "INITIALIZING",
        "RUNNING",
        "CANCELING",
        "CANCELED",
    ]
    assert JOURNAL[-2:] == ["a.close", "b.close"]
    assert not any("finish" in line for line in JOURNAL)
    task.cancel()
    task.fail(EngineError("late"))
    assert len(harness.reporter.terminal()) == 1
    harness.run_until(lambda: nothing_left(harness))


def test_a_failed_task_jumps_to_the_end_and_says_why(harness: LoopHarness) -> None:
    [task] = harness.run(
        descriptor("v", JournalSource("a", [[1], [2]]), JournalOperator("b", fail_on=2))
    )
    assert phases(task) == [*WELL[:6], "QUIESCE_TIMERS", "CLOSE_OPERATORS", "CLEAN_UP"]
    assert harness.reporter.of(attempt("v")) == ["DEPLOYING", "INITIALIZING", "RUNNING", "FAILED"]
    error = harness.reporter.error_of(attempt("v"))
    assert isinstance(error, UserCodeError)
    assert (error.cause, error.operator, error.origin) == (
        "ValueError: cannot take 2",
        "b",
        "split 0, offset 7 or later",
    )
    assert isinstance(pickle.loads(pickle.dumps(error)), UserCodeError)
    assert JOURNAL[-2:] == ["a.close", "b.close"]
    assert nothing_left(harness)


def test_a_task_cancelled_before_its_first_step_never_comes_to_life(harness: LoopHarness) -> None:
    task = harness.submit(descriptor("v", JournalSource("a", [])))
    task.cancel()
    harness.run_until(lambda: not harness.loop.statistics().ready)
    assert harness.reporter.of(attempt("v")) == ["CANCELED"]
    assert JOURNAL == []


def test_a_failing_open_closes_what_was_set_up(harness: LoopHarness) -> None:
    [task] = harness.run(
        descriptor("v", JournalSource("a", [], fail_at="open"), JournalOperator("b"), consumers=1)
    )
    assert phases(task) == [*WELL[:5], "QUIESCE_TIMERS", "CLOSE_OPERATORS", "CLEAN_UP"]
    error = harness.reporter.error_of(attempt("v"))
    assert isinstance(error, UserCodeError)
    assert (error.cause, error.operator) == ("OSError: no such database", "a")
    assert JOURNAL[-4:] == ["b.open", "a.open", "a.close", "b.close"]
    assert nothing_left(harness)


def test_a_failing_close_fails_the_task_and_the_others_are_closed_all_the_same(
    harness: LoopHarness,
) -> None:
    [task] = harness.run(
        descriptor("v", JournalSource("a", [], fail_at="close"), JournalOperator("b"))
    )
    assert task.state is ExecutionState.FAILED
    assert JOURNAL[-2:] == ["a.close", "b.close"]
    assert JOURNAL.count("a.close") == 1
    assert nothing_left(harness)


def test_code_that_cannot_be_loaded_is_the_authors_to_mend(harness: LoopHarness) -> None:
    whole = descriptor("v", JournalSource("a", []))
    broken = TaskDeploymentDescriptor(
        whole.attempt_id, whole.allocation_id, "job", "v", 1, 128, b"cno_such_module_here\nx\n."
    )
    harness.run(broken)
    error = harness.reporter.error_of(attempt("v"))
    assert isinstance(error, ProgramError)
    assert "no_such_module_here" in str(error)
    assert harness.reporter.of(attempt("v")) == ["DEPLOYING", "FAILED"]


def test_records_flow_from_task_to_task_and_each_ends_after_its_producers(
    harness: LoopHarness,
) -> None:
    producer = descriptor("p", JournalSource("a", [[1, 2], [3]]), consumers=1)
    middle = descriptor("m", MapOperator(lambda value: value), reads=[("p", 0)], consumers=1)
    last = descriptor("s", JournalOperator("z"), reads=[("m", 0)])
    tasks = harness.run(last, middle, producer)
    assert [line for line in JOURNAL if "got" in line] == [
        "z.got 1",
        "z.got 2",
        "z.got 3",
        "z.got last of a",
    ]
    assert [phases(task) for task in tasks] == [WELL, WELL, WELL]
    assert JOURNAL[-3:] == ["z.watermark", "z.finish", "z.close"] or JOURNAL.index(
        "z.finish"
    ) > JOURNAL.index("z.got last of a")
    ended = [state.attempt_id.vertex_id for state in harness.reporter.terminal()]
    assert set(ended) == {"p", "m", "s"}
    harness.run_until(lambda: nothing_left(harness))


def test_two_inputs_end_one_after_the_other(harness: LoopHarness) -> None:
    left = descriptor("l", JournalSource("a", [[1]]), consumers=1)
    right = descriptor("r", JournalSource("b", [[2], [3]]), consumers=1)
    join = descriptor("j", JournalTwoInputs("z"), reads=[("l", 0), ("r", 1)])
    harness.run(join, left, right)
    got = {line for line in JOURNAL if "got" in line}
    assert got == {
        "z.got 1 on 1",
        "z.got 2 on 2",
        "z.got 3 on 2",
        "z.got last of a on 1",
        "z.got last of b on 2",
    }
    assert {line for line in JOURNAL if "end of input" in line} == {
        "z.end of input 1",
        "z.end of input 2",
    }
    assert JOURNAL.count("z.watermark") == 1
    harness.run_until(lambda: nothing_left(harness))


@pytest.mark.parametrize("first", [0, 1])
def test_an_operator_may_have_one_input_read_to_its_end_before_the_other(
    harness: LoopHarness, first: int
) -> None:
    left = descriptor("l", JournalSource("a", [[1], [2]]), consumers=1)
    right = descriptor("r", JournalSource("b", [[3], [4]]), consumers=1)
    operator = JournalTwoInputs("z")
    operator.reads_first = first
    join = descriptor("j", operator, reads=[("l", 0), ("r", 1)])
    harness.run(join, left, right)
    seen = [line for line in JOURNAL if "z.got" in line or "z.end of input" in line]
    ended = seen.index(f"z.end of input {first + 1}")
    assert all(f"on {first + 1}" in line for line in seen[:ended])
    assert all(f"on {2 - first}" in line for line in seen[ended + 1 : -1])
    harness.run_until(lambda: nothing_left(harness))


def test_a_union_reads_several_gates_into_one_input(harness: LoopHarness) -> None:
    one = descriptor("l", JournalSource("a", [[1]]), consumers=1)
    two = descriptor("r", JournalSource("b", [[2]]), consumers=1)
    union = descriptor("u", JournalOperator("z"), reads=[("l", 0), ("r", 0)])
    harness.run(one, two, union)
    assert {line for line in JOURNAL if line.startswith("z.got")} == {
        "z.got 1",
        "z.got 2",
        "z.got last of a",
        "z.got last of b",
    }
    assert JOURNAL.count("z.watermark") == 1
    assert JOURNAL.count("z.finish") == 1


def test_a_failing_consumer_takes_its_gates_down_and_its_producer_hears_of_it(
    harness: LoopHarness,
) -> None:
    producer = harness.submit(descriptor("p", JournalSource("a", [[1]], endless=True), consumers=1))
    consumer = harness.submit(descriptor("s", JournalOperator("z", fail_on=1), reads=[("p", 0)]))
    harness.run_until(lambda: consumer.state is ExecutionState.FAILED)
    producer.cancel()
    harness.run_until(lambda: nothing_left(harness))


def test_a_lost_producer_fails_its_consumer(harness: LoopHarness) -> None:
    producer = harness.submit(descriptor("p", JournalSource("a", [[1]], endless=True), consumers=1))
    consumer = harness.submit(descriptor("s", JournalOperator("z"), reads=[("p", 0)]))
    harness.run_until(lambda: "z.got 1" in JOURNAL)
    producer.fail(EngineError("gone"))
    harness.run_until(lambda: consumer.state is ExecutionState.FAILED)
    assert "gone" in str(harness.reporter.error_of(attempt("s")))
    assert nothing_left(harness)


def test_operator_events_come_as_mail_and_go_to_the_reporter(harness: LoopHarness) -> None:
    task = harness.submit(
        descriptor("v", JournalSource("a", [], endless=True), JournalOperator("b"))
    )
    task.deliver_message(OperatorEvent(_operator(task, 0), "more"))
    harness.run_until(lambda: "b.got more" in JOURNAL)
    assert harness.reporter.messages == [
        (attempt("v"), OperatorEvent(_operator(task, 0), "answer to more"))
    ]
    task.cancel()
    task.deliver_message(OperatorEvent(_operator(task, 0), "late"))
    harness.run_until(lambda: nothing_left(harness))


def _operator(task: Task, position: int) -> Any:
    return ["a", "b"][position]


def test_metrics_count_records_per_task_and_operator(harness: LoopHarness) -> None:
    producer = descriptor("p", JournalSource("a", [[1, 2], [3]]), consumers=1)
    last = descriptor("s", MapOperator(lambda value: value), JournalOperator("z"), reads=[("p", 0)])
    source, sink = harness.run(producer, last)
    assert (source.metrics().records_in, source.metrics().records_out) == (0, 4)
    assert (sink.metrics().records_in, sink.metrics().records_out) == (4, 0)
    assert [pair[1:] for pair in sink.metrics().operators] == [(4, 4), (4, 4)]
    assert sink.metrics().idle_ms >= 0


CLOCK = ManualClock()


def slow(value: int) -> int:
    CLOCK.advance(2)
    return value


def test_metrics_tell_busy_idle_and_back_pressured_time_apart(harness: LoopHarness) -> None:
    clock = harness.loop.clock = CLOCK
    idle = harness.submit(
        descriptor(
            "i", JournalSource("a", [[1]], endless=True), MapOperator(slow), JournalOperator("z")
        )
    )
    held_back = harness.submit(
        descriptor("h", JournalSource("b", [[number] for number in range(500)]), consumers=1)
    )
    harness.run_until(lambda: "z.got 1" in JOURNAL and not (idle.scheduled or held_back.scheduled))
    clock.advance(5)
    for task, expected in ((idle, (2000, 0, 5000)), (held_back, (0, 5000, 0))):
        metrics = task.metrics()
        assert (metrics.busy_ms, metrics.back_pressured_ms, metrics.idle_ms, metrics.read_ms) == (
            *expected,
            int(clock.monotonic() * 1000),
        )


def test_accumulators_of_a_running_task_are_told_as_they_were_read(harness: LoopHarness) -> None:
    clock = harness.loop.clock = ManualClock()
    task = harness.submit(
        descriptor("i", JournalSource("a", [[1]], endless=True), JournalOperator("z"))
    )
    harness.run_until(lambda: "z.got 1" in JOURNAL)
    assert not task.read_accumulators()  # it has none
    assert task.stream_task is not None
    seen = task.stream_task.accumulators["seen"] = [1]
    assert task.read_accumulators()
    seen.append(2)
    assert opened(task.metrics().accumulators) == {"seen": [1]}
    assert not task.read_accumulators()  # so soon again
    clock.advance(1)
    assert task.read_accumulators()
    assert opened(task.metrics().accumulators) == {"seen": [1, 2]}
    clock.advance(1)
    assert not task.read_accumulators()  # nothing new


def test_an_exit_in_user_code_fails_its_task_only(harness: LoopHarness) -> None:
    other = harness.submit(
        descriptor("w", JournalSource("o", [[5]], endless=True), JournalOperator("p"))
    )
    [task] = [harness.submit(descriptor("v", JournalSource("a", [[1]]), MapOperator(exits)))]
    harness.run_until(lambda: task.state is ExecutionState.FAILED)
    harness.run_until(lambda: "p.got 5" in JOURNAL)
    told = str(harness.reporter.error_of(attempt("v")))
    assert "SystemExit: 3, which ends programs" in told
    assert ", in exits\n    raise SystemExit(3)" in told
    assert other.state is ExecutionState.RUNNING
    other.cancel()
    harness.run_until(lambda: nothing_left(harness))


@pytest.mark.finding("bugs 12")
def test_an_exit_in_close_fails_the_task_and_the_others_are_closed_all_the_same(
    harness: LoopHarness,
) -> None:
    harness.run(
        descriptor("v", JournalSource("a", [], fail_at="exit in close"), JournalOperator("b"))
    )
    assert "SystemExit: 3, which ends programs" in str(harness.reporter.error_of(attempt("v")))
    assert JOURNAL[-2:] == ["a.close", "b.close"]
    assert nothing_left(harness)


@pytest.mark.finding("bugs 12")
def test_an_exit_in_close_does_not_hide_why_the_task_failed(harness: LoopHarness) -> None:
    harness.run(
        descriptor(
            "v",
            JournalSource("a", [[2]], fail_at="exit in close"),
            JournalOperator("b", fail_on=2),
            consumers=1,
        )
    )
    assert "cannot take 2" in str(harness.reporter.error_of(attempt("v")))
    assert JOURNAL[-2:] == ["a.close", "b.close"]
    assert nothing_left(harness)


def exits(value: Any) -> Any:
    raise SystemExit(3)
