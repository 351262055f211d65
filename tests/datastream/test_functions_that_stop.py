"""A StopIteration that escapes from a user's function is an error like others, wherever the
function is called.

Typical is ``next(x for x in xs if ...)`` without a match. Where the interpreter itself iterates
over the calls, as ``list(map(...))`` does, it would end the batch there, and the job would finish
without the rest. So every verb that takes a function is tried here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flinkpy.core.errors import JobExecutionError
from flinkpy.datastream import AsyncDataStream, DataStream, StreamExecutionEnvironment, data_stream
from flinkpy.datastream.joined import interval_joins, window_joins
from tests.datastream.functions_of_users import BUILDERS, IN_BATCH_ONLY, IN_STREAMS_ONLY, embedded

FACADES = (data_stream, interval_joins, window_joins)
TAKES_FUNCTIONS = ("Callable", "Function", "Selector", "Trigger", "Evictor", "Sink", "Assigner")
FUNCTION_NAMES = {
    "function",
    "func",
    "key_selector",
    "key_selector1",
    "sink",
    "sink_func",
    "window_function",
    "trigger",
    "evictor",
}
TAKE_NONE: dict[str, str] = {
    "DataStream.count_window_all": "counts",
    "AsyncDataStream.ordered_wait_with_retry": "as without retries",
    "AsyncDataStream.unordered_wait_with_retry": "as without retries",
    "TwoStreams.trigger": "as that of windows",
    "TwoStreams.evictor": "as that of windows",
    "TwoStreams.window": "as that of windows",
    **dict.fromkeys(
        (f"WriteVerbs.write_{form}" for form in ("csv", "json", "avro", "parquet")), "as write_text"
    ),
    "Windowed.side_output_late_data": "takes a tag",
}


TELL_NO_RECORD = {
    *(
        name
        for name in BUILDERS
        if name.startswith(
            (
                "Sources.from_source",
                "Sources.add_source",
                "StreamResults.sink_to files",
                "StreamResults.print",
                "WriteVerbs.",
                "PartitionWindowedStream.",
            )
        )
    ),
    # called with many
    *(
        name
        for name in BUILDERS
        if name
        in ("Windowed.apply", "Windowed.process", "Windowed.evictor", "DataStream.window_all")
    ),
    # called with none
    "Windowed.aggregate and its result",
    "KeyedVerbs.process",
    "TableVerbs.map_batches",
}


def stops(record: Any) -> Any:
    if record == 4:
        return next(iter(()))  # THE LINE
    return record


def leaves(record: Any) -> Any:
    if record == 4:
        raise SystemExit("enough")  # THE LINE
    return record


@pytest.mark.parametrize("parallelism", [1, 3])
def test_an_exit_in_a_key_selector_fails_the_job_with_line_and_record(parallelism: int) -> None:
    env = embedded()
    env.set_parallelism(parallelism)
    stream = env.from_collection([1, 4]).key_by(leaves).reduce(lambda one, other: one)
    with pytest.raises(
        JobExecutionError, match="SystemExit: enough, which ends programs"
    ) as failure:
        run(env, stream)
    assert "THE LINE" in str(failure.value)
    assert "\n  on record 4" in str(failure.value), str(failure.value)


@pytest.mark.finding("bugs 2")
@pytest.mark.wide(but=("-STREAMING",))
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("name", BUILDERS)
def test_the_job_fails_and_shows_the_line(name: str, mode: str) -> None:
    if mode == "BATCH" and name in IN_STREAMS_ONLY:
        pytest.skip("not called in BATCH")
    if mode == "STREAMING" and name in IN_BATCH_ONLY:
        pytest.skip("refused in STREAMING")
    env = embedded(mode)
    stream = BUILDERS[name](env, stops)
    with pytest.raises(JobExecutionError, match="StopIteration") as failure:
        run(env, stream)
    assert "THE LINE" in str(failure.value), str(failure.value)
    assert name in TELL_NO_RECORD or "\n  on record " in str(failure.value), str(failure.value)


def run(env: StreamExecutionEnvironment, stream: DataStream | None) -> None:
    if stream is None:
        env.execute()
        return
    with stream.execute_and_collect() as records:
        list(records)


def verbs() -> Iterator[tuple[str, Callable[..., Any]]]:
    """All public methods of streams and environments, by the class that has them."""
    classes = [
        each for module in FACADES for each in vars(module).values() if inspect.isclass(each)
    ]
    for facade in (*classes, AsyncDataStream):
        if facade.__module__.startswith("flinkpy.datastream") and not facade.__name__.startswith(
            ("Recorded", "_")
        ):
            for name, method in inspect.getmembers(facade, inspect.isfunction):
                if not name.startswith("_"):
                    yield method.__qualname__, method


def takes_a_function(method: Callable[..., Any]) -> bool:
    parameters = inspect.signature(method).parameters.values()
    return any(
        each.name in FUNCTION_NAMES or any(word in str(each.annotation) for word in TAKES_FUNCTIONS)
        for each in parameters
    )


def test_every_verb_that_takes_a_function_is_tried() -> None:
    tried = {name.split(" ")[0] for name in BUILDERS} | set(TAKE_NONE)
    found = {name for name, method in verbs() if takes_a_function(method)}
    assert found - tried == set(), "add a builder to functions_of_users.py"
