"""What somebody who adds an operator must not forget: to decide how it runs in BATCH if it is
keyed, and to say that it parks."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

from flinkpy.operators.base import OneInputOperator, StreamOperator, TwoInputOperator
from flinkpy.operators.batch import batch_forms
from flinkpy.operators.keyed_state import KeyedStateOperator

ROOMS = (
    "flinkpy.operators",
    "flinkpy.windowing",
    "flinkpy.connectors",
    "flinkpy.relational",
    "flinkpy.cep",
)

# Their operators take input as it comes in BATCH, too: they hold the state of all keys, and the
# order of records does not matter to them.
NEED_NO_ORDER = (
    "flinkpy.operators.columnar.",
    "flinkpy.windowing.slices.",
    "flinkpy.windowing.joins.",
    "flinkpy.operators.process.interval_join",
)


def operators_of(base: type[StreamOperator]) -> Iterator[type[StreamOperator]]:
    """Every class of operators derived from ``base``, but for those which only others derive
    from."""
    for room in ROOMS:
        package = importlib.import_module(room)
        for module in pkgutil.walk_packages(package.__path__, f"{room}."):
            importlib.import_module(module.name)
    found: list[type[StreamOperator]] = [base]
    for kind in found:
        found += kind.__subclasses__()
        if (
            kind.__module__.startswith("flinkpy.")
            and not inspect.isabstract(kind)
            and issubclass(kind, (OneInputOperator, TwoInputOperator))
        ):
            yield kind


def test_how_a_keyed_operator_runs_in_batch_is_decided() -> None:
    """By declaring a ``batch_form``, by deriving from a class that ``batch_form`` knows, or by
    standing in a room whose operators need no order."""
    kinds = [
        value
        for value in vars(batch_forms).values()
        if inspect.isclass(value) and not hasattr(value, "__origin__")
    ]
    known = tuple(
        kind
        for kind in kinds
        if issubclass(kind, KeyedStateOperator) and kind is not KeyedStateOperator
    )
    undecided = [
        f"{kind.__module__}.{kind.__name__}"
        for kind in operators_of(KeyedStateOperator)
        if not hasattr(kind, "batch_form")
        and not issubclass(kind, known)
        and not kind.__module__.startswith(NEED_NO_ORDER)
    ]
    assert undecided == [], (
        "say in operators/batch/batch_forms.py how these run in BATCH, or add their room to "
        "NEED_NO_ORDER"
    )


def test_an_operator_that_counts_what_it_holds_says_how_many_bytes_that_is() -> None:
    """So that a worker that is full can name the one that fills it (``stateBytes``)."""
    silent = [
        f"{kind.__module__}.{kind.__name__}"
        for kind in operators_of(KeyedStateOperator)
        if issubclass(kind, KeyedStateOperator)
        and kind.entries_held is not KeyedStateOperator.entries_held
        and kind.bytes_held is KeyedStateOperator.bytes_held
    ]
    assert silent == [], "let these say in ``bytes_held`` what their ``entries_held`` take"


def test_an_operator_whose_calls_leave_work_says_that_it_parks() -> None:
    """Else the chain does all of it at once, and holds up the other tasks."""
    calls = ("process_batch", "process_batch1", "process_batch2")
    leaving = {
        kind
        for kind in operators_of(StreamOperator)
        if any(
            inspect.signature(getattr(kind, call)).return_annotation == "Work"
            for call in calls
            if hasattr(kind, call)
        )
    }
    assert len(leaving) > 3
    assert [kind.__name__ for kind in leaving if not kind.parks] == []
