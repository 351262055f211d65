"""The broadcast state pattern through the API, on the embedded cluster; and operator state
there."""

from __future__ import annotations

from typing import Any

import pytest

from flinkpy.common import Duration, Types
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import (
    BroadcastConnectedStream,
    BroadcastProcessFunction,
    BroadcastStream,
    CheckpointedFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    MapFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())
FACTORS = MapStateDescriptor("factors", Types.INT(), Types.INT())
WAITING = ListStateDescriptor("waiting", Types.INT())
SEEN = OutputTag("seen", Types.INT())


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})


def results(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as records:
        return list(records)


class Multiply(KeyedBroadcastProcessFunction):
    """A number times the factor of its class (its last digit), whenever that comes."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_list_state(WAITING)

    def process_element(
        self, value: int, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext
    ) -> Any:
        factor = ctx.get_broadcast_state(FACTORS).get(ctx.get_current_key())
        if factor is None:
            self.waiting.add(value)
        else:
            yield value * factor

    def process_broadcast_element(
        self, value: tuple[int, int], ctx: KeyedBroadcastProcessFunction.Context
    ) -> Any:
        digit, factor = value
        ctx.get_broadcast_state(FACTORS).put(digit, factor)
        ctx.get_broadcast_state(RULES).put(digit, factor)
        found: list[int] = []

        def multiply(key: int, waiting: Any) -> None:
            if key == digit:
                found.extend(number * factor for number in waiting.get())
                waiting.clear()

        ctx.apply_to_keyed_state(WAITING, multiply)
        yield from found
        yield SEEN, digit


def multiplied(env: StreamExecutionEnvironment) -> DataStream:
    factors = env.from_collection([(digit, digit + 2) for digit in range(10)]).broadcast(
        RULES, FACTORS
    )
    return (
        env.from_sequence(0, 499)
        .key_by(lambda number: number % 10)
        .connect(factors)
        .process(Multiply(), Types.INT())
    )


@pytest.mark.parametrize("parallelism", [1, 4])
def test_every_subtask_knows_every_rule(env: StreamExecutionEnvironment, parallelism: int) -> None:
    env.set_parallelism(parallelism)
    assert sorted(results(multiplied(env))) == sorted(
        number * (number % 10 + 2) for number in range(500)
    )


def test_every_subtask_sees_every_broadcast_element(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(4)
    assert sorted(results(multiplied(env).get_side_output(SEEN))) == sorted([*range(10)] * 4)


class Plain(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Any:
        ctx.get_broadcast_state(RULES).put(1, 1)


@pytest.mark.parametrize("parallelism", [1, 4])
def test_a_stream_without_keys_keeps_its_elements(
    env: StreamExecutionEnvironment, parallelism: int
) -> None:
    env.set_parallelism(parallelism)
    rules = env.from_sequence(1, 9).broadcast(RULES)
    assert isinstance(rules, BroadcastStream)
    connected = env.from_sequence(0, 99).connect(rules)
    assert isinstance(connected, BroadcastConnectedStream)
    assert sorted(results(connected.process(Plain(), Types.LONG()))) == list(range(100))


def test_broadcast_without_descriptors_is_a_stream(env: StreamExecutionEnvironment) -> None:
    assert isinstance(env.from_collection([1]).broadcast(), DataStream)


def test_columns_become_rows_on_both_sides(env: StreamExecutionEnvironment) -> None:
    import pyarrow as pa

    names = MapStateDescriptor("names", Types.LONG(), Types.STRING())

    class Put(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield value.id

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(names).put(value.id, value.name)

    table = pa.table({"id": [1, 2], "name": ["a", "b"]})
    stream = (
        env.from_arrow(table)
        .connect(env.from_arrow(table).broadcast(names))
        .process(Put(), Types.LONG())
    )
    assert sorted(results(stream)) == [1, 2]


def test_an_element_that_writes_fails_the_job_which_says_why(
    env: StreamExecutionEnvironment,
) -> None:
    class Wrong(Plain):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(RULES).put(1, 2)

    with pytest.raises(JobExecutionError, match="'rules' is read-only here"):
        results(
            env.from_collection([1])
            .connect(env.from_collection([1]).broadcast(RULES))
            .process(Wrong())
        )


HERE = r"test_broadcast_state\.py:\d+: "


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda stream, rules: stream.broadcast(ValueStateDescriptor("value")),
            r"broadcast\(\) takes MapStateDescriptors",
        ),
        (
            lambda stream, rules: stream.broadcast(RULES, RULES),
            "two of the descriptors are named 'rules'",
        ),
        (
            lambda stream, rules: stream.connect(rules).process(Plain),
            r"not a class: write Plain\(\)",
        ),
        (
            lambda stream, rules: stream.connect(rules).process(Multiply()),
            "takes a BroadcastProcessFunction here, as the stream is not keyed",
        ),
        (
            lambda stream, rules: (
                stream.key_by(lambda value: value).connect(rules).process(Plain())
            ),
            "takes a KeyedBroadcastProcessFunction here",
        ),
        (
            lambda stream, rules: stream.connect(rules).process(lambda value, ctx: None),
            "takes a BroadcastProcessFunction",
        ),
        (lambda stream, rules: stream.connect(rules).process(Plain(), int), "output type"),
        (
            lambda stream, rules: stream.connect(
                StreamExecutionEnvironment().from_collection([1]).broadcast(RULES)
            ),
            "different environments",
        ),
    ],
)
def test_mistakes_are_refused_where_they_stand(
    env: StreamExecutionEnvironment, call: Any, message: str
) -> None:
    with pytest.raises(ProgramError, match=HERE + ".*" + message):
        call(env.from_collection([1]), env.from_collection([1]).broadcast(RULES))


def test_broadcast_state_does_not_expire(env: StreamExecutionEnvironment) -> None:
    expiring = MapStateDescriptor("expiring", Types.INT(), Types.INT())
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_seconds(1)).build())
    with pytest.raises(ProgramError, match=HERE + ".*does not expire"):
        env.from_collection([1]).broadcast(expiring)


class Fresh(MapFunction, CheckpointedFunction):
    """Where it ran first, and what it found there."""

    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_list_state(WAITING)
        self.found = context.is_restored(), tuple(self.state.get())

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: int) -> Any:
        self.state.add(value)
        return self.found, self.state.get()[-1] == value, self.subtask

    def snapshot_state(self, context: Any) -> None: ...


def test_a_function_in_a_job_starts_with_empty_operator_state(
    env: StreamExecutionEnvironment,
) -> None:
    env.set_parallelism(2)
    found = results(env.from_sequence(1, 100).rebalance().map(Fresh()))
    assert {(state, kept) for state, kept, _ in found} == {((False, ()), True)}
    assert {subtask for _, _, subtask in found} == {0, 1}
