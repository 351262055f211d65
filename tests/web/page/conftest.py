"""One browser for the tests of a file. Playwright keeps an event loop in the tests' thread while it
is open, and other files have their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.page.browser import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started
