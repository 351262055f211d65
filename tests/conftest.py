"""How all tests are run: how property tests draw their examples, which tests share a worker
process, and the one Ray cluster they share.

Examples are the same in every run, so that a run says something about the change and not about
luck. The environment variable HYPOTHESIS_PROFILE says how many there are, also where a test says
how many it wants. ``quick`` (``make test``) takes an eighth of them, ``ci`` (``.ci/run``, whose
time is limited) a third. ``explore`` (``make explore``) draws new ones, ten times as many; what
that finds becomes an ``@example`` of the test."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from flinkpy.core.program import code
from tests.cluster.ray_fixture import Eyes, RayCluster, eyes_on, joined, ray_cluster
from tests.waiting import eventually

pytest_plugins = [
    "tests.file_times",
    "tests.internal_errors",
    "tests.memory_leaks",
    "tests.spark_session",
]
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fixed")
TIMES_AS_MANY = {"quick": 1 / 8, "ci": 1 / 3, "fixed": 1, "explore": 10}[PROFILE]
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("quick", settings.get_profile("fixed"))
settings.register_profile("ci", settings.get_profile("fixed"))
settings.register_profile("explore", deadline=None)
settings.load_profile(PROFILE)


def _not_forced_to_disk(descriptor: int) -> None:
    """Instead of ``os.fsync`` in the processes of the tests: on a disk that still writes what an
    installation has left, it takes a minute, and a killed process loses nothing without it."""


os.fsync = _not_forced_to_disk  # type: ignore[assignment]


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("ray") is not None:
            item.add_marker(pytest.mark.xdist_group(_half_of(item.path)))
        item.own_markers = [mark for mark in item.own_markers if not _stays(item, mark)]
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=_begin_first)
    if TIMES_AS_MANY != 1:
        holders = {
            (id(holder), name): (holder, name)
            for item in items
            for holder, name in _holders_of_settings(item)
        }
        for holder, name in holders.values():
            own: settings = getattr(holder, name)
            setattr(
                holder,
                name,
                settings(own, max_examples=max(1, round(own.max_examples * TIMES_AS_MANY))),
            )


def _stays(item: pytest.Item, mark: pytest.Mark) -> bool:
    """Whether this marks a case of a wide test that stays in `make test`: one whose parameters are
    named in ``but``."""
    return mark.name == "wide" and any(
        text in item.name.partition("[")[2] for text in mark.kwargs.get("but", ())
    )


@pytest.fixture(autouse=True)
def modules_named_in_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that SQL names, and those beside it, travel by value as long as the process lives;
    what one test names is not to change how functions of other tests travel."""
    monkeypatch.setattr(code, "_further_homes", set(code._further_homes))


def _holders_of_settings(item: pytest.Item) -> Iterator[tuple[object, str]]:
    """Where hypothesis keeps the settings of a property test: at its function, or at the class of a
    state machine."""
    function, name = getattr(item, "function", None), "_hypothesis_internal_use_settings"
    if isinstance(getattr(function, name, None), settings):
        yield function, name
    if isinstance(getattr(getattr(item, "cls", None), "settings", None), settings):
        yield item.cls, "settings"  # type: ignore[attr-defined]


# -- several worker processes (``pytest -n auto --dist loadgroup --no-loadscope-reorder``) ---------

CLUSTER = Path(__file__).parent / "cluster"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One for each core, and two for the tests on Ray, which wait for processes to start for half
    of their time."""
    return min(os.cpu_count() or 1, 4) + 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A worker takes a group of tests, else a file, so that a module's fixtures are made once. The
    tests on Ray are two groups, each with one Ray cluster."""
    from xdist.scheduler import LoadGroupScheduling

    class GroupsAndFiles(LoadGroupScheduling):  # type: ignore[misc]  # it ships no types
        def _split_scope(self, nodeid: str) -> str:
            scope, file = super()._split_scope(nodeid), nodeid.partition("::")[0]
            return _group_on_ray(file) or (file if scope == nodeid else scope)

    return GroupsAndFiles(config, log) if config.getvalue("dist") == "loadgroup" else None


@cache
def _group_on_ray(file: str) -> str | None:
    """The group of a file with tests on Ray. (With pytest 9.2, xdist no longer sees the groups that
    are marked.)"""
    path = CLUSTER.parents[1] / file
    if not path.is_file() or "mark.ray" not in path.read_text():
        return None
    return _half_of(path)


def _half_of(path: Path) -> str:
    """Which of the two groups a file with tests on Ray belongs to: that of tests/cluster, or the
    others. They take equally long."""
    return "ray cluster" if CLUSTER in path.parents and path.name != "test_sessions.py" else "ray"


def _begin_first(item: pytest.Item) -> int:
    """The tests on Ray take longest; then files with slow tests, so that none of them is left for
    the end."""
    return 0 if item.get_closest_marker("ray") else 1 if item.get_closest_marker("slow") else 2


# -- one Ray cluster for all tests of a worker that need no more than that: starting one takes
# seconds


@pytest.fixture(scope="session")
def shared_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    with ray_cluster(tmp_path_factory.mktemp("ray")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def eyes(shared_ray: RayCluster) -> Iterator[Eyes]:
    with eyes_on(shared_ray) as eyes:
        yield eyes


@pytest.fixture(scope="module")
def ray(shared_ray: RayCluster, eyes: Eyes) -> Iterator[RayCluster]:
    """The cluster; whatever a module started there is gone when the module's session has been
    stopped."""
    before = eyes.look()
    yield shared_ray
    shared_ray.flinkpy("stop-cluster")
    eventually(lambda: not eyes.look().beyond(before))


@pytest.fixture(scope="module")
def on_ray(ray: RayCluster) -> Iterator[None]:
    """The tests' own process is a program on the cluster."""
    with joined(ray):
        yield


# Begun by a shell in the background, pytest ignores Ctrl-C, and so would every process the tests
# start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_ray_by_accident(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ray starts a cluster by itself where some of its functions are called. Programs of later
    tests would then run there."""
    may_use_ray = any(
        request.node.get_closest_marker(name) is not None for name in ("ray", "spark")
    )
    was_there = may_use_ray or _is_on_ray()
    yield
    if not was_there and _is_on_ray():
        sys.modules["ray"].shutdown()
        pytest.fail(
            "the test has started Ray in its own process: mark it with ray, and use the "
            "fixture on_ray"
        )


def _is_on_ray() -> bool:
    return bool(getattr(sys.modules.get("ray"), "is_initialized", lambda: False)())
