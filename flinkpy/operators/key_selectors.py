"""Opens and closes an operator's key selectors, each once, even if two inputs share one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.functions import close_function, open_function


def open_selectors(keys: Iterable[KeySpec], context: OperatorContext) -> None:
    """Calls ``open`` of the selectors that have one."""
    for selector in _distinct(keys):
        open_function(selector, context)


def close_selectors(keys: Iterable[KeySpec]) -> None:
    """Calls ``close`` of the selectors that have one."""
    for selector in _distinct(keys):
        close_function(selector)


def _distinct(keys: Iterable[KeySpec]) -> Iterable[Any]:
    return {id(key.selector): key.selector for key in keys}.values()
