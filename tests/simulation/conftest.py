"""``pytest tests/simulation --seed 123`` plays one seed and no other."""

from __future__ import annotations

import gc
import logging
import warnings
from collections.abc import Iterator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=None, help="play this seed of the simulation only")


@pytest.fixture
def quiet_engine() -> Iterator[None]:
    """Keeps the engine's warnings out of the output: lost peers are the rule in a simulation."""
    engine = logging.getLogger("flinkpy")
    before = engine.level
    engine.setLevel(logging.CRITICAL)
    yield
    engine.setLevel(before)


@pytest.fixture(autouse=True, scope="module")
def _no_open_files_for_other_tests() -> Iterator[None]:
    """Files of a process that crashed in a simulation are closed by nobody."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
