"""How property tests draw their examples: the same ones in every run, so that a run says something about the change and not about luck.

``HYPOTHESIS_PROFILE=explore pytest`` (``make explore``) draws new ones, ten times as many, also where a test says how many it wants; what that
finds becomes an ``@example`` of the test.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fixed")
TIMES_AS_MANY = 10
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(PROFILE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if PROFILE == "explore":
        holders = {(id(holder), name): (holder, name) for item in items for holder, name in _holders_of_settings(item)}
        for holder, name in holders.values():
            own: settings = getattr(holder, name)
            setattr(holder, name, settings(own, max_examples=own.max_examples * TIMES_AS_MANY))


def _holders_of_settings(item: pytest.Item) -> Iterator[tuple[object, str]]:
    """Where hypothesis keeps the settings of a property test: at its function, or at the class of a state machine."""
    function, name = getattr(item, "function", None), "_hypothesis_internal_use_settings"
    if isinstance(getattr(function, name, None), settings):
        yield function, name
    if isinstance(getattr(getattr(item, "cls", None), "settings", None), settings):
        yield item.cls, "settings"  # type: ignore[attr-defined]

# Begun by a shell in the background, pytest ignores Ctrl-C, and so would every process the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
