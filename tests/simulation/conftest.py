"""``pytest tests/simulation --seed 123`` plays one seed and no other."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=None, help="play this seed of the simulation only")
