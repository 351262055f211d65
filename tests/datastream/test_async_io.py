"""Asynchronous I/O in whole programs."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import pytest

from flinkpy.common import Time, Types, WatermarkStrategy
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.async_retry_predicates import (
    empty_result_predicate,
    exception_type_predicate,
    has_exception_predicate,
)
from flinkpy.datastream.async_retry_strategies import FixedDelayRetryStrategy, NoRetryStrategy

PATIENT = Time.seconds(60)


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})


def collected(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as results:
        return list(results)


class Pairs(AsyncFunction):
    """Lets the second of each two calls come back first: it holds the future that the first waits
    for."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.factor = int(runtime_context.get_job_parameter("factor", 10))
        self.waiting: dict[int, asyncio.Event] = {}

    async def async_invoke(self, value: int) -> list[int]:
        event = self.waiting.setdefault(value // 2, asyncio.Event())
        if value % 2:
            event.set()
        else:
            await event.wait()
        return [value * self.factor]


def test_ordered_keeps_the_order_whoever_comes_back_first(env: StreamExecutionEnvironment) -> None:
    stream = AsyncDataStream.ordered_wait(
        env.from_collection(range(1000)), Pairs(), PATIENT, 10, Types.INT()
    )
    assert stream.get_type() == Types.INT()
    assert collected(stream) == [10 * value for value in range(1000)]


def test_unordered_gives_the_second_of_two_first(env: StreamExecutionEnvironment) -> None:
    stream = AsyncDataStream.unordered_wait(env.from_collection(range(1000)), Pairs(), PATIENT, 2)
    assert collected(stream) == [
        10 * value for pair in range(500) for value in (2 * pair + 1, 2 * pair)
    ]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_in_the_middle_of_a_program(env: StreamExecutionEnvironment, parallelism: int) -> None:
    async def spread(value: int) -> list[int]:
        return [value] * (value % 3)

    env.set_parallelism(parallelism)
    numbers = env.from_collection(range(5000)).map(lambda value: value + 1)
    looked_up = AsyncDataStream.unordered_wait(
        numbers.rebalance(), spread, datetime.timedelta(minutes=1), 50
    )
    sums = (
        looked_up.key_by(lambda value: value % 2).reduce(lambda a, b: a + b).key_by(lambda value: 0)
    )
    found = collected(sums.map(lambda value: value))
    assert len(found) == sum(value % 3 for value in range(1, 5001))
    assert max(found) == max(
        sum(value * (value % 3) for value in range(1, 5001) if value % 2 == rest) for rest in (0, 1)
    )


class LastOfAll(KeyedProcessFunction):
    """Counts, and tells the count when event time ends."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.late, self.count = 0, 0

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.late += ctx.timestamp() <= ctx.timer_service().current_watermark()
        self.count += 1
        ctx.timer_service().register_event_time_timer(10**12)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield self.count, self.late


def test_results_keep_their_event_time_and_none_becomes_late(
    env: StreamExecutionEnvironment,
) -> None:
    async def same(value: int) -> list[int]:
        await asyncio.sleep(0)
        return [value]

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value: value
    )
    stamped = env.from_collection(range(20_000)).assign_timestamps_and_watermarks(strategy)
    stream = AsyncDataStream.unordered_wait(stamped, same, PATIENT)
    assert collected(stream.key_by(lambda value: 0).process(LastOfAll())) == [(20_000, 0)]


class Flaky(AsyncFunction):
    """Fails at the first two calls for each value."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls: dict[int, int] = {}

    async def async_invoke(self, value: int) -> list[Any]:
        self.calls[value] = self.calls.get(value, 0) + 1
        if self.calls[value] == 1:
            raise ConnectionError("try again")
        return [] if self.calls[value] == 2 else [(value, self.calls[value])]


@pytest.mark.parametrize(
    "wait", [AsyncDataStream.ordered_wait_with_retry, AsyncDataStream.unordered_wait_with_retry]
)
def test_retries_lead_to_the_result_also_at_the_end_of_the_input(
    env: StreamExecutionEnvironment, wait: Any
) -> None:
    strategy = FixedDelayRetryStrategy(2, 1, empty_result_predicate, has_exception_predicate)
    stream = wait(env.from_collection(range(20)), Flaky(), PATIENT, strategy, 7)
    assert sorted(collected(stream)) == [(value, 3) for value in range(20)]


@pytest.mark.parametrize("strategy", [NoRetryStrategy(), AsyncRetryStrategy.no_restart()])
def test_no_retry_needs_no_timeout(
    env: StreamExecutionEnvironment, strategy: AsyncRetryStrategy
) -> None:
    async def same(value: int) -> list[int]:
        return [value]

    assert collected(
        AsyncDataStream.ordered_wait_with_retry(env.from_collection([1, 2]), same, 0, strategy)
    ) == [1, 2]


class Remembering(AsyncFunction):
    """Gives what it keeps, as a cache does, and adds to it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.kept: dict[str, list[int]] = {"values": []}

    async def async_invoke(self, value: int) -> list[Any]:
        if value < 0:
            await asyncio.Event().wait()
        self.kept["values"].append(value)
        return [self.kept]

    def timeout(self, value: int) -> list[Any]:
        return [self.kept]


def spoiled(record: dict[str, list[int]]) -> list[int]:
    found = record["values"].copy()
    record["values"].append(99)
    return found


@pytest.mark.parametrize("chained", [True, False])
def test_what_a_function_keeps_is_given_out_as_it_is_at_the_time_and_nobody_changes_it(
    env: StreamExecutionEnvironment, chained: bool
) -> None:
    if not chained:
        env.disable_operator_chaining()
    numbers = env.from_collection([1, 2, 3])
    results = AsyncDataStream.ordered_wait(numbers, Remembering(), PATIENT, 1).map(spoiled)
    assert collected(results) == [[1], [1, 2], [1, 2, 3]]
    late = AsyncDataStream.ordered_wait(
        env.from_collection([-1, -1]), Remembering(), Time.milliseconds(1), 1
    ).map(spoiled)
    assert collected(late) == [[], []]


def test_a_job_fails_with_the_users_line_and_the_record(env: StreamExecutionEnvironment) -> None:
    async def broken(value: int) -> list[float]:
        await asyncio.sleep(0)
        return [1 / (value - 7)]

    with pytest.raises(Exception, match="ZeroDivisionError") as raised:
        collected(AsyncDataStream.ordered_wait(env.from_collection(range(10)), broken, PATIENT))
    text = str(raised.value)
    assert "record: 7" in text or "7" in text.split("record", 1)[-1]
    assert "return [1 / (value - 7)]" in text
    assert "async wait operator" in text


def test_a_call_that_never_comes_back_fails_the_job_or_gives_what_the_function_says(
    env: StreamExecutionEnvironment,
) -> None:
    class Never(AsyncFunction):
        async def async_invoke(self, value: int) -> list[Any]:
            answer: list[Any] = await asyncio.get_running_loop().create_future()
            return answer

        def timeout(self, value: int) -> list[Any]:
            return [f"no answer for {value}"]

    stream = AsyncDataStream.ordered_wait(
        env.from_collection([1, 2]), Never(), Time.milliseconds(5)
    )
    assert collected(stream) == ["no answer for 1", "no answer for 2"]
    with pytest.raises(Exception, match="no result within"):
        collected(AsyncDataStream.ordered_wait(env.from_collection([1]), Never().async_invoke, 5))


@pytest.mark.finding("bugs 10")
def test_a_retry_strategy_that_names_no_outcome_is_refused(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(
        ProgramError,
        match="the retry strategy names no outcome to retry: give it exception_predicate=",
    ):
        AsyncDataStream.unordered_wait_with_retry(
            env.from_collection([1]), Pairs(), PATIENT, AsyncRetryStrategy.fixed_delay(1, 1)
        )


def test_what_cannot_work_is_refused_with_the_line(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1])
    with pytest.raises(ProgramError, match=r"test_async_io.py:\d+: .*async def"):
        AsyncDataStream.ordered_wait(stream, lambda value: [value], PATIENT)  # type: ignore[arg-type,return-value]
    with pytest.raises(ProgramError, match=r"test_async_io.py:\d+: .*capacity"):
        AsyncDataStream.unordered_wait(stream, Pairs(), PATIENT, 0)
    with pytest.raises(ProgramError, match=r"test_async_io.py:\d+: .*retries need a timeout"):
        AsyncDataStream.unordered_wait_with_retry(
            stream, Pairs(), 0, AsyncRetryStrategy.fixed_delay(1, 1)
        )
    with pytest.raises(ProgramError, match="takes a stream first"):
        AsyncDataStream.unordered_wait(Pairs(), stream, PATIENT)  # type: ignore[arg-type]

    async def two(one: int, other: int) -> list[int]:
        return [one, other]

    with pytest.raises(ProgramError, match="cannot take that"):
        AsyncDataStream.ordered_wait(stream, two, PATIENT)  # type: ignore[arg-type]


def test_the_predicates_say_what_their_names_do() -> None:
    assert (
        empty_result_predicate([]),
        empty_result_predicate(None),
        empty_result_predicate([None]),
    ) == (True, True, False)
    assert (has_exception_predicate(ValueError()), has_exception_predicate(None)) == (True, False)
    assert (
        exception_type_predicate(KeyError(), LookupError),
        exception_type_predicate(ValueError(), LookupError),
    ) == (True, False)
