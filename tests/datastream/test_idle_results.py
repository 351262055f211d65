"""A function that only calls a coroutine or generator function gives work that nobody would do: it
fails its job with the line, in every form. A filter refuses what is true whatever the record is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flinkpy.common import Time
from flinkpy.core.errors import JobExecutionError
from flinkpy.datastream import (
    AsyncDataStream,
    DataStream,
    ErrorPolicy,
    OutputTag,
    StreamExecutionEnvironment,
)
from flinkpy.datastream import functions as f
from flinkpy.operators.rows.stateless import FilterOperator, FlatMapOperator, MapOperator
from tests.datastream.functions_of_users import BUILDERS, IN_BATCH_ONLY, embedded, numbers
from tests.datastream.test_functions_that_stop import run
from tests.operators.harness import ChainHarness, linear

# of those in the same batch that were given before the first was looked at
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


async def fetch(record: Any) -> Any:
    return record


def coroutine(record: Any) -> Any:
    return fetch(record)


def generator(record: Any) -> Any:
    return (each for each in [record])


async def fetch_all(record: Any) -> Any:
    yield record


IDLE: dict[str, Callable[[Any], Any]] = {
    "a coroutine": coroutine,
    "a generator": generator,
    "an async generator": lambda record: fetch_all(record),
}
# The test's own code takes what is given, calculates with it or drops it, before flinkpy sees it
TAKEN_BEFORE = {
    "AsyncDataStream.ordered_wait",
    "AsyncDataStream.unordered_wait",
    "StreamResults.add_sink",
    "StreamResults.print",
    "StreamResults.sink_to",
    "StreamResults.sink_to files",
    "StreamVerbs.assign_timestamps_and_watermarks with a TimestampAssigner",
    "StreamVerbs.assign_timestamps_and_watermarks with a generator",
    "StreamVerbs.filter",
    "StreamVerbs.partition_custom",
    "StreamVerbs.partition_custom by key",
    "TableVerbs.map_batches",
    "Windowed.evictor",
    "Windowed.trigger",
    "Windowed.trigger by a difference",
    "WriteVerbs.write_text",
    "KeyedStream.window",
    "KeyedStream.window of dynamic gaps",
    "KeyedVerbs.process with functions of state",
    *(name for name in BUILDERS if "aggregate" in name and "result" not in name),
    *(name for name in BUILDERS if "sort_partition" in name),
}
TELLS = r"IdleResultError: .*gave (the coroutine of fetch|a generator|the async generator of)"


def failure_of(env: StreamExecutionEnvironment, stream: DataStream | None) -> str:
    with pytest.raises(JobExecutionError) as failure:
        run(env, stream)
    return str(failure.value)


@pytest.mark.wide(but=("coroutine-StreamVerbs.map", "coroutine-KeyedVerbs.reduce"))
@pytest.mark.parametrize("name", sorted(BUILDERS.keys() - TAKEN_BEFORE))
@pytest.mark.parametrize("kind", IDLE)
def test_every_verb_refuses_it_and_names_a_line_of_the_program(kind: str, name: str) -> None:
    env = embedded("BATCH" if name in IN_BATCH_ONLY else "STREAMING")
    told = failure_of(env, BUILDERS[name](env, IDLE[kind]))
    if "assign_timestamps" in name:
        assert "a timestamp is a whole number" in told
    else:
        assert re.search(TELLS, told), told
    assert 'functions_of_users.py", line' in told, told


PROGRAMS: dict[str, Callable[[StreamExecutionEnvironment], Any]] = {
    "a filter": lambda env: numbers(env).filter(lambda number: fetch(number)),
    "a map and a filter": lambda env: (
        numbers(env).map(lambda number: fetch(number)).filter(lambda fetched: True)
    ),
    "a filter of text": lambda env: numbers(env).map(str).filter(lambda text: (c for c in text)),
    "a map of text": lambda env: numbers(env).map(str).map(lambda text: (c for c in text)),
    "a sink": lambda env: numbers(env).add_sink(lambda number: fetch(number)),
    "a key and its sum": lambda env: (
        numbers(env).map(lambda number: (number, 1)).key_by(lambda pair: fetch(pair)).sum(1)
    ),
    "a key and its reduce": lambda env: (
        numbers(env).key_by(lambda number: fetch(number)).reduce(lambda one, other: one)
    ),
    "a field of a tuple": lambda env: numbers(env).map(lambda number: (number, fetch(number))),
    "a keyed filter": lambda env: (
        numbers(env).key_by(lambda number: 0).filter(lambda number: fetch(number))
    ),
    "generate": lambda env: env.generate(lambda index: fetch(index), count=6).filter(
        lambda record: True
    ),
    "open": lambda env: numbers(env).map(_WithOpen()),
    "a filter with a policy": lambda env: (
        numbers(env)
        .filter(lambda number: fetch(number))
        .on_error(ErrorPolicy.divert(OutputTag("bad")))
    ),
}


class _WithOpen(f.MapFunction):
    def open(self, runtime_context: Any) -> Any:
        return fetch(0)

    def map(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("reuse", [False, True], ids=["copies", "object reuse"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.wide(but=("copies-1",))
def test_it_is_an_error_at_its_line(name: str, reuse: bool, parallelism: int) -> None:
    env = embedded()
    env.set_parallelism(parallelism)
    if reuse:
        if name == "a field of a tuple":
            pytest.skip("without copies only a result itself is looked at")
        env.get_config().enable_object_reuse()
    stream = PROGRAMS[name](env)
    told = failure_of(env, stream if isinstance(stream, DataStream) else None)
    assert re.search("IdleResultError: .*gave (the coroutine of fetch|a generator), ", told), told
    assert f'File "{__file__}", line' in told or f"File {__file__}" in told, told


ALWAYS_TRUE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a method that is not called": (lambda text: text.isdigit, r"call it, isdigit\(\.\.\.\)"),
    "a function that is not called": (lambda text: fetch, r"call it, fetch\(\.\.\.\)"),
    "an iterator": (lambda text: map(str.isdigit, text), r"as any\(\.\.\.\) of it is"),
}


@pytest.mark.parametrize("fusion", [True, False])
@pytest.mark.parametrize("name", ALWAYS_TRUE)
def test_a_filter_refuses_what_is_true_whatever_the_record_is(name: str, fusion: bool) -> None:
    function, advice = ALWAYS_TRUE[name]
    with pytest.raises(Exception, match=f"IdleResultError: the condition gave .*{advice}"):
        ChainHarness(linear(FilterOperator(function)), fusion=fusion).push(["7"])


class Truthful:
    """An object without a truth of its own, as a match of ``re`` is."""


@pytest.mark.parametrize("fusion", [True, False])
def test_a_filter_takes_any_other_object_for_what_python_takes_it(fusion: bool) -> None:
    answers = [True, False, 1, 0, "x", "", None, [0], [], Truthful(), re.match("a", "a")]
    harness = ChainHarness(linear(FilterOperator(answers.__getitem__)), fusion=fusion)
    harness.push(list(range(len(answers))))
    assert harness.writers[0].values == [at for at, each in enumerate(answers) if each]


class Client:
    async def fetch(self) -> int:
        return 1


def some(record: int) -> Iterator[int]:
    yield record


@pytest.mark.parametrize("fusion", [True, False])
@pytest.mark.parametrize("reuse", [True, False])
@pytest.mark.parametrize(
    "operator",
    [
        lambda: MapOperator(lambda client: client.fetch()),
        lambda: FilterOperator(lambda client: client.fetch()),
        lambda: FlatMapOperator(lambda client: [client.fetch()]),
        lambda: FlatMapOperator(lambda client: [some(1)]),
    ],
)
def test_methods_of_the_programs_own_classes_are_looked_at_where_they_are_inlined(
    operator: Callable[[], Any], reuse: bool, fusion: bool
) -> None:
    harness = ChainHarness(linear(operator()), fusion=fusion, object_reuse=reuse)
    with pytest.raises(Exception, match=r"IdleResultError: .* gave the (coroutine|generator) of"):
        harness.push([Client()])


async def fetch_one(number: int) -> list[int]:
    return [number]


def test_async_calls_are_awaited_as_ever() -> None:
    env = embedded()
    stream = AsyncDataStream.ordered_wait(numbers(env), fetch_one, Time.seconds(60))
    assert sorted(stream.take(6)) == [1, 2, 3, 4, 5, 6]
