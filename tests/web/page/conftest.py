"""One browser for all tests of the page in a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.page.browser import chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started
