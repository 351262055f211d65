"""The examples in the docstrings of the windows run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import flinkpy.windowing
from flinkpy.operators.event_time import timestamps

pytestmark = pytest.mark.wide

MODULES = [
    module.name for module in pkgutil.iter_modules(flinkpy.windowing.__path__, "flinkpy.windowing.")
]


@pytest.mark.parametrize("name", [*MODULES, timestamps.__name__])
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
