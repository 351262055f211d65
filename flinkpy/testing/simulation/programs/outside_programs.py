"""Programs whose functions and sinks work outside of flinkpy: asynchronous calls, and files."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from flinkpy.common import Time
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.connectors.files.writing.rolling import RollingPolicy
from flinkpy.datastream import AsyncDataStream, DataStream, StreamExecutionEnvironment
from flinkpy.graph.transformations import OneInputTransformation
from flinkpy.operators.async_io.async_wait import AsyncWaitOperator
from flinkpy.testing.simulation.programs.keyed_programs import key_of
from flinkpy.testing.simulation.programs.outside_world import world_named
from flinkpy.testing.simulation.programs.program_inputs import (
    WORLD,
    Fragile,
    keyed_lists,
    read,
    write,
)
from flinkpy.testing.simulation.programs.simulated_calls import Pause, simulated_calls
from flinkpy.testing.simulation.programs.simulated_ends import GloballyCommittedSink


async def ask(record: Any) -> list[Any]:
    """Takes a while, and may fail."""
    world = world_named(WORLD)
    await Pause(0.2 * world.chance.random())
    world.maybe_fail("a call")
    await Pause(0.1 * world.chance.random())
    return [(record[0], record[1], "answered")]


def _in_virtual_time(stream: DataStream) -> DataStream:
    """Makes the calls of the operator that was applied last part of the simulation."""
    transformation = stream.recorded.transformation
    assert isinstance(transformation, OneInputTransformation)
    applied = transformation.operator
    assert isinstance(applied, AsyncWaitOperator)
    transformation.operator = AsyncWaitOperator(applied.descriptor, simulated_calls)
    return stream


def unordered_calls(env: StreamExecutionEnvironment) -> None:
    """Asynchronous calls, whose results come in any order."""
    records = read(env, "input", keyed_lists(3, 30, 5), timed=True)
    asked = _in_virtual_time(
        AsyncDataStream.unordered_wait(records, ask, Time.seconds(600), 4)
    ).uid("calls")
    write(asked.key_by(key_of).map(lambda record: record).uid("keyed"))


def ordered_calls(env: StreamExecutionEnvironment) -> None:
    """Asynchronous calls, whose results keep the order of the records."""
    write(
        _in_virtual_time(
            AsyncDataStream.ordered_wait(
                read(env, "input", keyed_lists(3, 30, 5)), ask, Time.seconds(600), 3
            )
        ).uid("calls")
    )


def global_commits(env: StreamExecutionEnvironment) -> None:
    """Running counts, written by several writers and committed by one committer."""
    counts = (
        read(env, "input", keyed_lists(4, 30, 7))
        .map(Fragile("a map"))
        .uid("map")
        .map(lambda record: (record[0], 1))
        .uid("ones")
        .key_by(key_of)
        .reduce(lambda left, right: (left[0], left[1] + right[1]))
        .uid("counts")
    )
    counts.sink_to(GloballyCommittedSink(WORLD)).uid("sink")


def folder() -> Path:
    """This process's own folder, as several processes may play seeds at once."""
    return Path(
        "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir(),
        f"flinkpy-simulation-{os.getpid()}",
    )


def files(env: StreamExecutionEnvironment) -> None:
    """Part files, which are seen when their checkpoint is complete."""
    lines = (
        read(env, "input", keyed_lists(4, 30, 7))
        .map(Fragile("a map"))
        .uid("map")
        .key_by(key_of)
        .map(lambda record: f"{record[0]} {record[1]}")
        .uid("lines")
    )
    lines.sink_to(
        FileSink(folder(), rolling=RollingPolicy.default_rolling_policy(200, 1000, 500))
    ).uid("sink")


def clear_folder() -> None:
    """Removes what an earlier run has written."""
    shutil.rmtree(folder(), ignore_errors=True)


def visible_lines() -> list[str]:
    """What the part files have that can be seen."""
    parts = [
        file for file in folder().rglob("*") if file.is_file() and not file.name.startswith(".")
    ]
    return [line for file in parts for line in file.read_text(encoding="utf-8").splitlines()]
