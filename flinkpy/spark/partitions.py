"""The partitions of a Spark DataFrame as blocks in Ray's object store.

Spark computes them once and keeps them, as Arrow bytes, in its executors (as RayDP's recoverable way has it); a call of the executor puts the bytes
of a partition into the store. So a block that is lost with its node is asked for again, and computed again where Spark has lost it too, for as long
as Spark runs and somebody needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ray

CALLS_PER_EXECUTOR = 8  # at once: RayDP's executors carry out two, the others wait there, so that small partitions follow one another


@dataclass(frozen=True)
class Partitions:
    """What Spark keeps, as a ``flinkpy.connectors.ray.block_keeper.Recipe``: a place is the id an executor was started with."""

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
    """The nodes of this program's executors."""
    name: str = ray.get_runtime_context().namespace
    return name
