"""For tests. Of a user's program: harnesses that run a function without a job, a scripted source, a
sink that collects records (docs/testing.md). Of flinkpy itself: the simulated cluster, and a
reactor that the test steps."""

from flinkpy.core.elements import Watermark
from flinkpy.core.program.public_names import publish
from flinkpy.testing.collecting_sink import CollectingSink
from flinkpy.testing.environment import embedded_environment
from flinkpy.testing.function_harness import (
    KeyedOneInputHarness,
    KeyedTwoInputHarness,
    OneInputHarness,
    TwoInputHarness,
)
from flinkpy.testing.manual_time import ManualClock
from flinkpy.testing.pattern_harness import PatternHarness
from flinkpy.testing.scripted_source import ACTIVE, IDLE, At, Fail, ScriptedFailure, ScriptedSource

__all__ = [
    "OneInputHarness",
    "KeyedOneInputHarness",
    "TwoInputHarness",
    "KeyedTwoInputHarness",
    "PatternHarness",
    "ManualClock",
    "ScriptedSource",
    "At",
    "Watermark",
    "IDLE",
    "ACTIVE",
    "Fail",
    "ScriptedFailure",
    "CollectingSink",
    "embedded_environment",
]

publish(__name__)
