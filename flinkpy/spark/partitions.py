"""The partitions of a Spark DataFrame as blocks in Ray's object store.

Spark computes them once and keeps them, as Arrow bytes, in its executors (RayDP's recoverable way
does the same); a call to the executor puts the bytes of a partition into the store. So a block that
is lost with its node is fetched again, and computed again if Spark has lost it too, as long as
Spark runs and somebody needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ray

# At once: RayDP's executors carry out two while the others wait, so that small partitions need no
# pause
CALLS_PER_EXECUTOR = 8


@dataclass(frozen=True)
class Partitions:
    """The partitions that Spark keeps, as a ``flinkpy.connectors.ray.block_keeper.Recipe``. A place
    is the id that an executor was started with."""

    rdd: int
    count: int
    schema_json: str
    agent: str
    namespace: str
    at_once: int = CALLS_PER_EXECUTOR

    def __call__(self, number: int, place: str) -> Any:
        from ray._private.worker import global_worker

        global_worker.set_load_code_from_local(True)  # to call an actor written in Java
        executor: Any = ray.get_actor(f"raydp-executor-{place}", self.namespace)
        return executor.getRDDPartition.remote(self.rdd, number, self.schema_json, self.agent)


def own_namespace() -> str:
    """Returns the Ray namespace of this program's executors."""
    name: str = ray.get_runtime_context().namespace
    return name
