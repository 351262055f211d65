"""Job graphs of programs, made once for each parallelism."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from flinkpy.core.ids import JobId
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.env.submission import job_graph
from flinkpy.graph.job_graph import JobGraph
from flinkpy.testing.simulation.programs.programs import PROGRAMS

MAX_PARALLELISM = 16


@lru_cache(maxsize=256)
def _pickled(name: str, parallelism: int, chaining: bool) -> bytes:
    values = {
        "client.progress": False,
        "pipeline.operator-chaining.enabled": chaining,
        "pipeline.max-parallelism": MAX_PARALLELISM,
    }
    env = StreamExecutionEnvironment.get_execution_environment(values)
    env.set_parallelism(parallelism)
    PROGRAMS[name].build(env)
    return pickle.dumps(job_graph(env.program, name))


def graph_of(
    name: str,
    parallelism: int,
    job_id: JobId,
    configuration: Mapping[str, Any],
    chaining: bool = True,
) -> JobGraph:
    """The program's graph under that id, with these options."""
    graph: JobGraph = pickle.loads(_pickled(name, parallelism, chaining))
    graph.job_id = job_id
    graph.configuration = {**graph.configuration, **configuration}
    return graph
