"""Spark on the same Ray cluster as the streams, through RayDP, with all settings that Java 17
needs, so that users need not know them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import ray

from flinkpy.cluster.option_sources import program_settings
from flinkpy.cluster.ray.ray_connection import connect_ray, tell_what_stays
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import ProgramError, ResourceUnavailableError
from flinkpy.core.ids import IdFactory
from flinkpy.core.options.engine import PARALLELISM, TASK_CPUS
from flinkpy.core.options.schema import read
from flinkpy.spark.computation import reason_of
from flinkpy.spark.hand_over import wait_for_all
from flinkpy.spark.java import trouble_on_node, use_java
from flinkpy.spark.spark_size import SparkSize, fit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDS_WITHIN_S, LOOK_S = 15.0, 0.05
_MASTER = "RAY_APP_MASTER"
EXTRA = "Spark is not installed: `pip install 'flinkpy[spark]'` brings pyspark, raydp and a Java"
# Java 17 hides these packages, which RayDP and Spark access.
_OPENED = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "java.math",
    "java.text",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)
_JVMS = (
    "spark.ray.raydp_app_master.extraJavaOptions",
    "spark.driver.extraJavaOptions",
    "spark.executor.extraJavaOptions",
)
# throughput matters here, not short pauses
_BY_DEFAULT = {"spark.executor.extraJavaOptions": "-XX:+UseParallelGC"}
_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}

_began = threading.Event()  # in this program, at least once


def spark_session(
    app_name: str = "flinkpy",
    *,
    executors: int | None = None,
    cores: int | None = None,
    memory: str = "1g",
    stream_cpus: float | None = None,
    configs: Mapping[str, str] | None = None,
) -> SparkSession:
    """Starts Spark, with executors that are actors of this program's Ray cluster; without a
    cluster, one is started on this machine.

    There are ``executors`` of ``cores`` cores and ``memory`` each. By default they take what the
    streams leave, which are assumed to need ``stream_cpus`` CPUs (default: the default parallelism
    times the CPUs per slot). ``configs`` are Spark's own options. The session's time zone is UTC
    unless they set another one.

    Raises ResourceUnavailableError when the cluster is too small for Spark and the streams
    together, or has no Java that Spark runs on; ProgramError when the program has a session
    already.

    >>> spark = spark_session(executors=1, cores=1)  # doctest: +SKIP
    """
    _require_packages()
    import raydp
    from pyspark.sql import SparkSession as Session

    if Session.getActiveSession() is not None:
        raise ProgramError(
            "there is a Spark session in this program already: use it, or end it with "
            "stop_spark() first"
        )
    settings = program_settings()
    use_java()
    connect_ray(settings, start=True)
    needed = (
        read(settings, PARALLELISM) * read(settings, TASK_CPUS)
        if stream_cpus is None
        else stream_cpus
    )
    _forget_stopped()
    _refuse_two_in_one_namespace()
    size = _size(needed, executors, cores)
    _check_nodes()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    options = spark_configs(configs or {})
    _began.set()
    try:
        return raydp.init_spark(
            f"{app_name}-{IdFactory().hex(6)}", size.executors, size.cores, memory, configs=options
        )
    except Exception as error:
        # Ray's own text describes the failed call, not the reason
        cause = getattr(error, "cause", None) or error
        raise ResourceUnavailableError(
            f"Spark did not start on Ray: {reason_of(str(cause)) or type(cause).__name__}"
        ) from error


def stop_spark() -> None:
    """Ends Spark and returns its CPUs. A DataFrame handed over to a stream stays until that stream
    has ended; if Spark still computes it, this waits for that."""
    _require_packages()
    import raydp

    if ray.is_initialized():
        wait_for_all()
        raydp.stop_spark()
        tell_what_stays()
    else:
        _stop_without_ray()


def _forget_stopped() -> None:
    """Forgets a session that was ended by its own ``stop()``: RayDP would not start another one."""
    import raydp
    from raydp import context

    if context._global_spark_context is not None:
        raydp.stop_spark()


def _refuse_two_in_one_namespace() -> None:
    """RayDP's master has one fixed name, so each Ray namespace can have only one Spark."""
    own = ray.get_runtime_context().namespace
    deadline = SYSTEM_CLOCK.monotonic() + (ENDS_WITHIN_S if _began.is_set() else 0)
    while {"name": _MASTER, "namespace": own} in ray.util.list_named_actors(all_namespaces=True):
        if SYSTEM_CLOCK.monotonic() < deadline:  # this program's last one is about to end
            threading.Event().wait(LOOK_S)
            continue
        raise ResourceUnavailableError(
            f"another program's Spark runs in the Ray namespace {own!r}, and there can be one "
            "in each: give ray.init() "
            "another namespace, or none"
        )


def _stop_without_ray() -> None:
    """Stops the session when Ray is gone, and the executors with it; RayDP would start another Ray
    to stop them."""
    from pyspark.sql import SparkSession as Session
    from raydp import context

    session = Session.getActiveSession()
    context._global_spark_context = None
    if session is not None:
        session.stop()


def spark_configs(own: Mapping[str, str]) -> dict[str, str]:
    """Returns Spark's options: flinkpy's, then the user's. The modules that Java must open come
    before the user's own Java options."""
    opened = " ".join(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED)
    merged = {**_DEFAULTS, **own}
    for key in _JVMS:
        merged[key] = f"{opened} {own.get(key, _BY_DEFAULT.get(key, ''))}".strip()
    return merged


def _require_packages() -> None:
    try:
        import pyspark  # noqa: F401
        import raydp  # noqa: F401
    except ImportError as error:
        raise ProgramError(f"{EXTRA} ({error})") from None


def _size(stream_cpus: float, executors: int | None, cores: int | None) -> SparkSize:
    nodes = [float(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    return fit(nodes, stream_cpus, executors, cores)


def _check_nodes() -> None:
    """Checks that every node that could hold an executor can run Java."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    check: Any = ray.remote(trouble_on_node)
    nodes = [node for node in ray.nodes() if node["Alive"]]
    asked = [
        check.options(
            num_cpus=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        ).remote()
        for node in nodes
    ]
    for node, trouble in zip(nodes, ray.get(asked)):
        if trouble is not None:
            raise ResourceUnavailableError(f"on node {node['NodeManagerHostname']}: {trouble}")
