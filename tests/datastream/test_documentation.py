"""Every public name says what it is, and shows how it is used; the examples run."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from flinkpy.core.program.public_names import module_of_definition

PUBLIC = [
    "flinkpy.common",
    "flinkpy.datastream",
    "flinkpy.datastream.window",
    "flinkpy.datastream.state",
    "flinkpy.datastream.functions",
    "flinkpy.datastream.connectors",
    "flinkpy.datastream.connectors.base",
    "flinkpy.datastream.connectors.file_system",
    "flinkpy.datastream.connectors.hybrid_source",
    "flinkpy.datastream.connectors.number_seq",
    *[
        f"flinkpy.datastream.formats.{name}"
        for name in ("avro", "csv", "json", "protobuf", "raw", "schema_registry")
    ],
    "flinkpy.table.expressions",
    "flinkpy.state_processor",
    "flinkpy.testing",
]
PACKAGES = ["flinkpy.common", "flinkpy.datastream", "flinkpy.table"]

# What programs get, name in a type or derive from in special cases, without making it: the example
# is that of what gives it.
GIVEN = {
    "AppendingState",
    "MergingState",
    "State",
    "StateDescriptor",
    "AggregatingState",
    "BroadcastState",
    "ReadOnlyBroadcastState",
    "BroadcastStream",
    "BroadcastConnectedStream",
    "CloseableIterator",
    "ConfigOption",
    "DataStreamSink",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "JobExecutionResult",
    "JobID",
    "RestartStrategyConfiguration",
    "StateBackend",
    "TimerService",
    "TypeInformation",
    "WatermarkOutput",
    "Function",
    "BaseBroadcastProcessFunction",
    "AsyncFunctionDescriptor",
    "AsyncRetryPredicate",
    "Window",
    "MergingWindowAssigner",
    "HybridSourceBuilder",
    "FileSplitAssignerProvider",
    "Source",
    "StreamTransformer",
    "Watermark",
    "BootstrapContext",
    "KeyedEntry",
    "KeyedStateReaderContext",
    "ReadState",
    "SavepointFormatType",
    "StateBootstrapTransformation",
}


def public_names() -> Iterator[tuple[str, str, Any]]:
    """(module, name, object) of the classes and functions that are flinkpy's own, each once."""
    seen: set[int] = set()
    for path in PUBLIC:
        module = importlib.import_module(path)
        for name in getattr(module, "__all__", None) or [
            name for name in vars(module) if not name.startswith("_")
        ]:
            value = getattr(module, name)
            if (
                (inspect.isclass(value) or inspect.isfunction(value))
                and value.__module__.startswith("flinkpy")
                and id(value) not in seen
            ):
                seen.add(id(value))
                yield path, name, value


NAMES = list(public_names())


def own_docstring(value: Any) -> str:
    return (vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__) or ""


def docstrings(value: Any) -> Iterator[str]:
    """Its own, and its methods'."""
    yield own_docstring(value)
    for member in vars(value).values() if inspect.isclass(value) else ():
        function = (
            member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        )
        if inspect.isfunction(function):
            yield function.__doc__ or ""


@cache
def examples_of(module: str) -> str:
    """The source of the examples in a module's own docstring."""
    return "".join(
        example.source
        for example in doctest.DocTestParser().get_examples(
            importlib.import_module(module).__doc__ or ""
        )
    )


def test_every_public_name_says_what_it_is() -> None:
    assert [
        f"{value.__module__}.{name}" for _, name, value in NAMES if not own_docstring(value).strip()
    ] == []


def has_example(path: str, name: str, value: Any) -> bool:
    """In its docstring, in one of its methods', or by name in that of a module it is public in."""
    if any(">>>" in text for text in docstrings(value)):
        return True
    return any(
        re.search(rf"\b{name}\b", examples_of(module))
        for module in (path, module_of_definition(value), "flinkpy.datastream.functions")
    )


def test_what_a_program_calls_is_shown_in_an_example() -> None:
    def is_only_told(value: Any) -> bool:
        return inspect.isclass(value) and issubclass(value, (Enum, Exception))

    assert [
        f"{value.__module__}.{name}"
        for path, name, value in NAMES
        if name not in GIVEN and not is_only_told(value) and not has_example(path, name, value)
    ] == []


def test_no_name_is_excused_that_has_an_example_or_is_not_there() -> None:
    needing = {name for path, name, value in NAMES if not has_example(path, name, value)}
    assert GIVEN - needing == set()


def modules() -> list[str]:
    """All of the API's, and those its names are defined in."""
    found = {*PUBLIC, *PACKAGES, *(module_of_definition(value) for _, _, value in NAMES)}
    for package in PACKAGES:
        found |= {
            module.name
            for module in pkgutil.iter_modules(
                importlib.import_module(package).__path__, package + "."
            )
        }
    return sorted(found)


class DefinedHere(doctest.DocTestFinder):
    """Finds the examples of all that a module defines, also of what shows another module."""

    def _from_module(self, module: ModuleType | None, value: Any) -> bool:
        if inspect.isclass(value) or inspect.isfunction(value):
            return module is None or module_of_definition(value) == module.__name__
        return bool(super()._from_module(module, value))  # type: ignore[misc]


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_run(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    runner = doctest.DocTestRunner()
    for each in DefinedHere(exclude_empty=True).find(module, name):
        runner.run(each)
    assert runner.summarize().failed == 0


def test_what_spark_needs_says_what_it_is() -> None:
    spark = importlib.import_module("flinkpy.spark")
    assert [name for name in spark.__all__ if not own_docstring(getattr(spark, name)).strip()] == []
