"""The partitions of a Spark DataFrame as blocks in Ray's object store.

Spark computes them once and keeps them, as Arrow bytes, in its executors (RayDP's recoverable way); a Ray task for each fetches its bytes from there.
So a block that is lost with its node is fetched again, and computed again where Spark has lost it too, for as long as Spark runs and somebody needs it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import ray

from flinkpy.connectors.ray_store import sound
from flinkpy.core.errors import ResourceUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FETCHES_PER_EXECUTOR = 2  # at once: one on its way from Spark, one on its way into the store


@dataclass(frozen=True)
class _Kept:
    """What Spark keeps: the partitions' number, and where each is to be fetched."""

    rdd: int
    schema_json: str
    agent: str
    executors: tuple[str, ...]


def partitions_of(frame: DataFrame) -> tuple[list[Any], Callable[[], None]]:
    """References of the blocks, which are all in the store when this returns, and what to call when they are needed no more.

    Raises ResourceUnavailableError when Spark or Ray went away; what Spark itself says of the frame's program passes through.
    """
    kept = _computed(frame)
    limit = FETCHES_PER_EXECUTOR * max(1, len(set(kept.executors)))
    refs: list[Any] = []
    running: list[Any] = []
    try:
        for number in range(len(kept.executors)):
            if len(running) >= limit:
                done, running = ray.wait(running)
                ray.get(done)
            block, fetched = _task().remote(kept, number)
            refs.append(block)
            running.append(fetched)
        ray.get(running)
    except ray.exceptions.RayError as error:
        raise ResourceUnavailableError(f"the DataFrame's partitions could not be fetched: {_first_line(error)}") from error
    return refs, lambda: _writer(frame).releaseRecoverableRDD(kept.rdd)


def _computed(frame: DataFrame) -> _Kept:
    from pyspark.storagelevel import StorageLevel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is used here of Spark is old
        level = frame.sparkSession.sparkContext._getJavaStorageLevel(StorageLevel.MEMORY_AND_DISK)
    info = _writer(frame).prepareRecoverableRDD(frame._jdf, level)
    return _Kept(info.rddId(), info.schemaJson(), info.driverAgentUrl(), tuple(info.locations()))


def _writer(frame: DataFrame) -> Any:
    return frame.sparkSession.sparkContext._jvm.org.apache.spark.sql.raydp.ObjectStoreWriter


def _task() -> Any:
    # No CPU of its own: the work is Spark's executor's, and the streams' slots may hold all others.
    task: Any = ray.remote(_fetch)
    return task.options(num_cpus=0, max_retries=-1, num_returns=2)


def _fetch(kept: _Kept, number: int) -> tuple[pa.Table, None]:
    """In a Ray worker: one partition, from the executor that has it; and nothing, which says that it is there."""
    from ray._private.worker import global_worker

    global_worker.set_load_code_from_local(True)  # to call an actor written in Java
    executor = ray.get_actor(f"raydp-executor-{kept.executors[number]}")
    data = ray.get(executor.getRDDPartition.remote(kept.rdd, number, kept.schema_json, kept.agent))
    return sound(pa.ipc.open_stream(pa.BufferReader(data)).read_all().replace_schema_metadata()), None


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
