"""What somebody who adds a keyed operator must not forget: to decide how it runs in BATCH."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

from flinkpy.operators.base import StreamOperator
from flinkpy.operators.batch import batch_forms
from flinkpy.operators.keyed_state import KeyedStateOperator

ROOMS = ("flinkpy.operators", "flinkpy.windowing", "flinkpy.connectors")

# Their operators take input as it comes in BATCH, too: they hold the state of all keys, and the order of records does not matter to them.
NEED_NO_ORDER = ("flinkpy.operators.columnar.", "flinkpy.windowing.slices.", "flinkpy.windowing.joins.", "flinkpy.operators.process.interval_join")


def keyed_operators() -> Iterator[type[StreamOperator]]:
    """Every class of a keyed operator, but for those which only others derive from."""
    for room in ROOMS:
        package = importlib.import_module(room)
        for module in pkgutil.walk_packages(package.__path__, f"{room}."):
            importlib.import_module(module.name)
    found: list[type[StreamOperator]] = [KeyedStateOperator]
    for kind in found:
        found += kind.__subclasses__()
        if kind.__module__.startswith("flinkpy.") and not inspect.isabstract(kind) and hasattr(kind, "process_batch"):
            yield kind


def test_how_a_keyed_operator_runs_in_batch_is_decided() -> None:
    """By declaring a ``batch_form``, by deriving from a class that ``batch_form`` knows, or by standing in a room whose operators need no order."""
    kinds = [value for value in vars(batch_forms).values() if inspect.isclass(value) and not hasattr(value, "__origin__")]
    known = tuple(kind for kind in kinds if issubclass(kind, KeyedStateOperator) and kind is not KeyedStateOperator)
    undecided = [f"{kind.__module__}.{kind.__name__}" for kind in keyed_operators()
                 if not hasattr(kind, "batch_form") and not issubclass(kind, known) and not kind.__module__.startswith(NEED_NO_ORDER)]
    assert undecided == [], "say in operators/batch/batch_forms.py how these run in BATCH, or add their room to NEED_NO_ORDER"
