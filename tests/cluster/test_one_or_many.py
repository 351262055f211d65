"""A job gives the same results on one TaskExecutor (batches handed over by reference) and on many
(batches over TCP)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from flinkpy.common import Configuration
from flinkpy.datastream import DataStream, StreamExecutionEnvironment

SHUFFLES = ("rebalance", "rescale", "shuffle", "forward", "global_", "broadcast", "key_by")

steps = st.lists(
    st.tuples(
        st.sampled_from(SHUFFLES),
        st.sampled_from(("map", "filter", "flat_map", "sum")),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=4,
)
records = st.lists(st.tuples(st.integers(0, 5), st.integers(-100, 100)), max_size=200)


def shuffled(stream: DataStream, shuffle: str) -> DataStream:
    return (
        stream.key_by(lambda pair: pair[0]) if shuffle == "key_by" else getattr(stream, shuffle)()
    )


def applied(stream: DataStream, step: tuple[str, str, int]) -> DataStream:
    shuffle, function, parallelism = step
    if shuffle == "forward":
        shuffle = "rebalance"  # forward wants equal parallelism; the chained case is another test's
    if function == "sum":
        return stream.key_by(lambda pair: pair[0]).sum(1).set_parallelism(parallelism)
    stream = shuffled(stream, shuffle)
    if function == "map":
        stream = stream.map(lambda pair: (pair[0], pair[1] + 1))
    elif function == "filter":
        stream = stream.filter(lambda pair: pair[1] % 3 != 0)
    else:
        stream = stream.flat_map(lambda pair: [pair, (pair[0] + 1, pair[1])])
    return stream.set_parallelism(parallelism)


def results(data: list[Any], program: list[tuple[str, str, int]], slots: int | None) -> list[Any]:
    options = {
        "execution.target": "embedded",
        **({"taskmanager.numberOfTaskSlots": str(slots)} if slots else {}),
    }
    configuration = Configuration()
    for key, value in options.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    stream = env.from_collection(data)
    for step in program:
        stream = applied(stream, step)
    with stream.execute_and_collect() as collected:
        return list(collected)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(records, steps)
def test_one_task_executor_gives_what_many_give(
    data: list[tuple[int, int]], program: list[tuple[str, str, int]]
) -> None:
    # A running sum depends on the order in which its inputs meet, so only the number of results is
    # compared; and what a filter behind it lets through depends on that order, too.
    functions = [function for _, function, _ in program]
    assume("sum" not in functions or "filter" not in functions[functions.index("sum") :])
    one, many = results(data, program, None), results(data, program, 1)
    if any(function == "sum" for _, function, _ in program):
        assert len(one) == len(many)
    else:
        assert Counter(one) == Counter(many)


def test_each_keys_records_keep_their_order_between_processes_ends() -> None:
    data = [(number % 7, number) for number in range(5_000)]
    program = [("key_by", "map", 2)]
    for slots in (None, 1):
        by_key: dict[int, list[int]] = {}
        for key, value in results(data, program, slots):
            by_key.setdefault(key, []).append(value)
        assert by_key == {key: [number + 1 for number in range(key, 5_000, 7)] for key in range(7)}
