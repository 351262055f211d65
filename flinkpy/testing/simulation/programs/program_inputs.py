"""What the simulated programs read, and the functions that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flinkpy.common import WatermarkStrategy
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.testing.simulation.programs.outside_world import world_named
from flinkpy.testing.simulation.programs.simulated_ends import (
    ChangingTableSink,
    SimulatedInput,
    TwoPhaseSink,
)

WORLD = "the world outside"
STEP_MS = 10  # between two records of a list, in event time


class Fragile:
    """A map function that gives the record, or fails when the world outside says so."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __call__(self, record: object) -> Any:
        world_named(WORLD).maybe_fail(self._where)
        return record


def keyed_lists(lists: int, records: int, keys: int, first: int = 0) -> list[list[tuple[Any, int]]]:
    """Records (key, number) with event times that go up."""
    return [
        [
            ((f"key-{(3 * at + number) % keys}", first + 1000 * number + at), STEP_MS * at + number)
            for at in range(records)
        ]
        for number in range(lists)
    ]


def read(
    env: StreamExecutionEnvironment,
    name: str,
    lists: Sequence[Sequence[tuple[Any, int]]],
    *,
    timed: bool = False,
    columns: Sequence[str] = (),
) -> DataStream:
    """The records of these lists. ``timed``: with watermarks, and no record is ever late. With
    ``columns`` they are columns of those names."""
    strategy = (
        WatermarkStrategy.for_monotonous_timestamps()
        if timed
        else WatermarkStrategy.no_watermarks()
    )
    return env.from_source(SimulatedInput(WORLD, lists, timed, tuple(columns)), strategy, name).uid(
        name
    )


def write(stream: DataStream) -> None:
    """Commits the records in two phases."""
    stream.sink_to(TwoPhaseSink(WORLD)).uid("sink")


def write_changes(stream: DataStream, keys: Sequence[str] = ()) -> None:
    """Commits changes in two phases, to a table with this key or to one without."""
    stream.sink_to(ChangingTableSink(WORLD, keys)).uid("sink")
