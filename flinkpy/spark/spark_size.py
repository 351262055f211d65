"""Computes how much of a Ray cluster Spark gets, so that the stream's slots have room beside it."""

from __future__ import annotations

from dataclasses import dataclass

from flinkpy.core.errors import ResourceUnavailableError
from flinkpy.core.options.engine import TASK_CPUS

MASTER_CPUS = 0.0  # for RayDP's master, which only manages


@dataclass(frozen=True)
class SparkSize:
    """The number of executors and the cores of each."""

    executors: int
    cores: int

    @property
    def cpus(self) -> int:
        return self.executors * self.cores


def fit(
    node_cpus: list[float],
    stream_cpus: float,
    executors: int | None = None,
    cores: int | None = None,
) -> SparkSize:
    """Returns the size asked for, or all that the stream leaves, one executor on each node. Raises
    ResourceUnavailableError, with the numbers and what to change, when Spark and the stream's slots
    do not fit side by side.

    >>> fit([4.0], stream_cpus=2)
    SparkSize(executors=1, cores=2)
    >>> fit([8.0, 8.0], stream_cpus=4, cores=2)
    SparkSize(executors=2, cores=2)
    """
    for name, number in (("executors", executors), ("cores", cores)):
        if number is not None and number < 1:
            raise ResourceUnavailableError(
                f"spark_session({name}={number}): Spark needs at least 1"
            )
    total = sum(node_cpus)
    size = SparkSize(executors or _default_executors(node_cpus, stream_cpus), cores or 1)
    if cores is None:
        size = SparkSize(
            size.executors,
            max(
                1,
                min(
                    _largest_fit(node_cpus, size.executors),
                    int((total - stream_cpus) // size.executors),
                ),
            ),
        )
    if size.cpus + stream_cpus > total + 1e-6 or _places(node_cpus, size.cores) < size.executors:
        raise ResourceUnavailableError(
            f"Spark asks for {size.executors} "
            f"executor{'s' if size.executors != 1 else ''} of {size.cores} "
            f"core{'s' if size.cores != 1 else ''}, and "
            f"the stream's slots for {stream_cpus:g} CPUs; this Ray cluster has {total:g} in all"
            + (f" on {len(node_cpus)} nodes" if len(node_cpus) > 1 else "")
            + ": lower executors= or cores= of spark_session(), "
            "the stream's parallelism (stream_cpus=), or let a slot take less with -D "
            f"{TASK_CPUS.key}=0.5"
        )
    return size


def _default_executors(node_cpus: list[float], stream_cpus: float) -> int:
    roomy = [cpus for cpus in node_cpus if cpus >= 1]
    return max(1, min(len(roomy), int(sum(node_cpus) - stream_cpus)))


def _largest_fit(node_cpus: list[float], executors: int) -> int:
    """Returns the most cores an executor can have if all ``executors`` must find a node."""
    cores = int(max(node_cpus, default=0))
    while cores > 1 and _places(node_cpus, cores) < executors:
        cores -= 1
    return cores


def _places(node_cpus: list[float], cores: int) -> int:
    return sum(int(cpus // cores) for cpus in node_cpus)
