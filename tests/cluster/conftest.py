"""One light Ray cluster for all tests that need no more than that: starting one takes seconds. Every module leaves it as it found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.ray_fixture import Eyes, RayCluster, eyes_on, ray_cluster
from tests.waiting import eventually


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
    """The cluster; whatever a module started there is gone when it has stopped its sessions."""
    before = eyes.look()
    yield shared_ray
    shared_ray.flinkpy("stop-cluster")
    eventually(lambda: not eyes.look().beyond(before))
