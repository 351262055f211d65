"""Starts a small Ray cluster for the benchmarks that need several processes; stops it at the end of
the block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ray_cluster(cpus: int = 4) -> Iterator[None]:
    import ray

    ray.init(
        address="local",
        num_cpus=cpus,
        include_dashboard=False,
        logging_level="error",
        log_to_driver=False,
    )
    try:
        yield
    finally:
        ray.shutdown()
