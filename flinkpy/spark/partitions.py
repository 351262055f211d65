"""The partitions of a Spark DataFrame as blocks in Ray's object store.

Spark computes them once and keeps them, as Arrow bytes, in its executors (as RayDP's recoverable way has it); a call of the executor puts the bytes
of a partition into the store. So a block that is lost with its node is asked for again, and computed again where Spark has lost it too, for as long
as Spark runs and somebody needs it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ray

from flinkpy.core.errors import ResourceUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CALLS_PER_EXECUTOR = 2  # at once: one that runs, one that waits for it
_OUT_OF_MEMORY = "OutOfMemoryError"


@dataclass(frozen=True)
class Partitions:
    """What Spark keeps, and where each partition is to be asked for: a ``flinkpy.connectors.ray_store.Recipe``."""

    rdd: int
    schema_json: str
    agent: str
    executors: tuple[str, ...]
    namespace: str

    @property
    def count(self) -> int:
        return len(self.executors)

    @property
    def at_once(self) -> int:
        return CALLS_PER_EXECUTOR * max(1, len(set(self.executors)))

    def __call__(self, number: int) -> Any:
        from ray._private.worker import global_worker

        global_worker.set_load_code_from_local(True)  # to call an actor written in Java
        executor: Any = ray.get_actor(f"raydp-executor-{self.executors[number]}", self.namespace)
        return executor.getRDDPartition.remote(self.rdd, number, self.schema_json, self.agent)


def computed(frame: DataFrame) -> tuple[Partitions, Callable[[], None]]:
    """The partitions, computed when this returns, and what to call when they are needed no more. What Spark says of the frame passes through."""
    from pyspark.storagelevel import StorageLevel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is used here of Spark is old
        level = frame.sparkSession.sparkContext._getJavaStorageLevel(StorageLevel.DISK_ONLY)  # the heap is for what Spark computes
    writer: Any = frame.sparkSession.sparkContext._jvm.org.apache.spark.sql.raydp.ObjectStoreWriter
    info = writer.prepareRecoverableRDD(frame._jdf, level)
    kept = Partitions(info.rddId(), info.schemaJson(), info.driverAgentUrl(), tuple(info.locations()), ray.get_runtime_context().namespace)
    return kept, lambda: writer.releaseRecoverableRDD(kept.rdd)


def fetch_error(error: BaseException) -> ResourceUnavailableError:
    """Why the blocks could not be had, as text for the user."""
    text = str(error)
    if _OUT_OF_MEMORY in text:
        return ResourceUnavailableError("Spark's executor has too little memory to hand over a partition: give the DataFrame more partitions, "
                                        "df.repartition(n), or the executors more memory, spark_session(memory=)")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith("Caused by:")), lines[0] if lines else type(error).__name__)
    return ResourceUnavailableError(f"the DataFrame's partitions could not be handed over: {reason}; is Spark still running, and Ray?")
