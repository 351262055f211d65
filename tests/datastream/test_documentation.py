"""The examples in the docstrings of the API run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

PACKAGES = ("flinkpy.common", "flinkpy.datastream", "flinkpy.table")
MODULES = [module.name for package in PACKAGES for module in pkgutil.iter_modules(importlib.import_module(package).__path__, package + ".")]


@pytest.mark.parametrize("name", [*PACKAGES, *MODULES])
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
