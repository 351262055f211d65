"""Small programs as the API would record them, down to the job graph: for tests of where jobs run,
not of the API."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flinkpy.connectors.collect.collect_server import CollectServer
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.connectors.source_api.source_operator import SourceReaderOperator
from flinkpy.core.ids import IdFactory
from flinkpy.graph.job_graph import JobGraph
from flinkpy.graph.job_graph_generator import build_job_graph
from flinkpy.graph.partitioning import KeySpec, Partitioning, PartitioningKind
from flinkpy.graph.stream_graph import build_stream_graph
from flinkpy.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SourceTransformation,
    Transformation,
)
from flinkpy.operators.rows.keyed import KeyedReduceOperator
from flinkpy.operators.rows.stateless import FlatMapOperator, MapOperator
from flinkpy.operators.sinks.sink_operator import SinkOperator

_IDS = itertools.count(1)
LINES = ("to be or not to be", "that is the question", "be not afraid")
COUNTS = {
    "to": 2,
    "be": 3,
    "or": 1,
    "not": 2,
    "that": 1,
    "is": 1,
    "the": 1,
    "question": 1,
    "afraid": 1,
}


class Lines(PythonSource):
    """A split for each subtask, the lines shared out among them."""

    def __init__(self, lines: Iterable[Any], times: int = 1) -> None:
        self._lines, self._times = list(lines), times

    def splits(self, parallelism: int) -> list[tuple[int, int]]:
        return [(index, parallelism) for index in range(parallelism)]

    def read(self, split: tuple[int, int], position: int) -> Iterator[Any]:
        index, step = split
        return itertools.islice(
            itertools.chain.from_iterable(itertools.repeat(self._lines[index::step], self._times)),
            position,
            None,
        )


class Endless(PythonSource):
    """Counts until it is cancelled."""

    bounded = False

    def splits(self, parallelism: int) -> list[int]:
        return list(range(parallelism))

    def read(self, split: int, position: int) -> Iterator[int]:
        return itertools.count(position)


def source(of: PythonSource, name: str = "lines") -> Transformation:
    return SourceTransformation(
        id=next(_IDS),
        name=f"Source: {name}",
        operator=SourceReaderOperator(of),
        source=of,
        is_bounded=of.bounded,
    )


def then(stream: Transformation, operator: Any, name: str) -> Transformation:
    return OneInputTransformation(id=next(_IDS), name=name, input=stream, operator=operator)


def mapped(
    stream: Transformation, function: Callable[[Any], Any], name: str = "Map"
) -> Transformation:
    return then(stream, MapOperator(function), name)


def word_counts(lines: Transformation) -> Transformation:
    """Running counts, as (word, count)."""
    pairs = then(lines, FlatMapOperator(lambda line: [(word, 1) for word in line.split()]), "Split")
    key = KeySpec(lambda pair: pair[0])
    keyed = PartitionTransformation(
        id=next(_IDS),
        name="Key",
        input=pairs,
        partitioning=Partitioning(PartitioningKind.HASH, key),
    )
    return then(keyed, KeyedReduceOperator(lambda a, b: (a[0], a[1] + b[1]), key), "Count")


def collected(stream: Transformation, server: CollectServer) -> Transformation:
    return then(stream, SinkOperator(server.sink()), "Collect")


def dropped(stream: Transformation) -> Transformation:
    return then(stream, SinkOperator(lambda value: None), "Drop")


def graph(end: Transformation, name: str, parallelism: int = 1, **configuration: Any) -> JobGraph:
    return build_job_graph(
        build_stream_graph([end], parallelism=parallelism, name=name),
        IdFactory().job_id(),
        configuration,
    )
