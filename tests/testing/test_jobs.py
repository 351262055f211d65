"""Whole jobs with a scripted source and a collecting sink; and the examples of the testing kit."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path
from typing import Any

import pytest

from flinkpy.core.errors import FlinkpyError, ProgramError
from flinkpy.core.program.code import dumps, loads
from flinkpy.datastream import ProcessFunction
from flinkpy.testing import (
    ACTIVE,
    IDLE,
    At,
    CollectingSink,
    Fail,
    ScriptedSource,
    Watermark,
    embedded_environment,
)


class Times(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_a_script_is_played_in_its_order() -> None:
    env, sink = embedded_environment(), CollectingSink()
    script = [
        At(10, "a"),
        At(11, "b"),
        Watermark(10),
        At(12, "c"),
        IDLE,
        ACTIVE,
        Watermark(12),
        ("plain", 1),
    ]
    env.from_source(ScriptedSource(script)).process(Times()).sink_to(sink)
    env.execute()
    low = -(2**63)
    assert sink.values == [("a", 10, low), ("b", 11, low), ("c", 12, 10), (("plain", 1), None, 12)]
    assert sink.stamped[0] == (("a", 10, low), 10)
    sink.clear()
    assert sink.values == []


def test_an_idle_script_does_not_hold_event_time_back() -> None:
    env, sink = embedded_environment(parallelism=2), CollectingSink()
    source = ScriptedSource.several(
        [At(5, "x"), Watermark(100), At(101, "x")], [IDLE], bounded=True
    )
    env.from_source(source).key_by(lambda value: value).map(lambda value: value).sink_to(sink)
    env.execute()
    assert sink.values == ["x", "x"]


def test_a_failure_in_the_script_fails_the_job_and_is_over_after_a_restart() -> None:
    env = embedded_environment()
    env.from_source(ScriptedSource([1, Fail("no more"), 2])).print()
    with pytest.raises(FlinkpyError, match="no more"):
        env.execute()
    env = embedded_environment(
        {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "1 ms"}
    )
    sink = CollectingSink()
    env.from_source(ScriptedSource([1, Fail("once"), 2], batch=1)).sink_to(sink)
    env.execute()
    assert sink.values[-2:] == [1, 2]


def test_an_unbounded_script_leaves_the_job_running() -> None:
    env = embedded_environment()
    assert env.from_source(ScriptedSource([1, 2, 3], bounded=False)).execute_and_collect(
        limit=3
    ) == [1, 2, 3]


def test_a_sink_that_is_not_here_is_refused() -> None:
    travelled = loads(dumps(CollectingSink()))
    with pytest.raises(ProgramError, match=r"execution\.target: embedded"):
        travelled.create_writer(None)


@pytest.mark.parametrize(
    "name",
    [
        "manual_time",
        "collecting_sink",
        "environment",
        "function_harness",
        "harness",
        "scripted_source",
    ],
)
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"flinkpy.testing.{name}")).failed == 0


def test_the_page_about_testing_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "testing.md"
    assert doctest.testfile(str(page), module_relative=False).failed == 0
