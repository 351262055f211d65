"""The contract of state holds for every backend: modules that use ``each_backend`` run once with
each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.state import helpers


@pytest.fixture(scope="module", params=sorted(helpers.KINDS))
def each_backend(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "rocksdb":
        pytest.importorskip("rocksdict")
    helpers.at_hand.append(request.param)
    yield request.param
    helpers.at_hand.pop()
    helpers.close_all()
