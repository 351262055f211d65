"""Which tests share a worker process (``make tests``): whatever shares a fixture that is slow to
make."""

from __future__ import annotations

import pytest

from tests.conftest import pytest_xdist_make_scheduler


@pytest.mark.parametrize(
    ("test", "scope"),
    [
        ("tests/a/test_b.py::test_c[1-x@y]", "tests/a/test_b.py"),
        ("tests/a/test_b.py::test_d", "tests/a/test_b.py"),
        ("tests/a/test_b.py::test_c[1]@ray", "ray"),
        ("tests/cluster/test_b.py::test_c@ray cluster", "ray cluster"),
    ],
)
def test_a_worker_takes_a_group_or_else_a_file(
    test: str, scope: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request.config.option, "dist", "loadgroup")
    monkeypatch.setattr(request.config.option, "tx", ["popen"])
    assert pytest_xdist_make_scheduler(request.config, None)._split_scope(test) == scope


def test_the_tests_on_ray_are_in_a_group_that_shares_a_cluster(
    request: pytest.FixtureRequest,
) -> None:
    for item in request.session.items:
        groups = {mark.args[0] for mark in item.iter_markers("xdist_group")}
        assert (item.get_closest_marker("ray") is None) == groups.isdisjoint(
            {"ray", "ray cluster"}
        ), item.nodeid
