"""Job graphs of programs, made once for each parallelism, and for what they find in flight."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from flinkpy.core.ids import JobId, JobVertexId
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.env.program_phases import found_in_flight
from flinkpy.datastream.env.submission import job_graph
from flinkpy.graph.job_graph import JobGraph
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.testing.simulation.programs.programs import PROGRAMS

MAX_PARALLELISM = 16


@lru_cache(maxsize=256)
def _pickled(
    name: str, parallelism: int, chaining: bool, in_flight: frozenset[tuple[JobVertexId, bool]]
) -> bytes:
    values = {
        "client.progress": False,
        "pipeline.operator-chaining.enabled": chaining,
        "pipeline.max-parallelism": MAX_PARALLELISM,
    }
    env = StreamExecutionEnvironment.get_execution_environment(values)
    env.set_parallelism(parallelism)
    PROGRAMS[name].build(env)
    return pickle.dumps(job_graph(env.program, name, lambda: dict(in_flight)))


def graph_of(
    name: str,
    parallelism: int,
    job_id: JobId,
    configuration: Mapping[str, Any],
    chaining: bool = True,
    files: FileStore | None = None,
) -> JobGraph:
    """The program's graph under that id, with these options. In ``files`` is the checkpoint that it
    starts from, if there is one."""
    in_flight = {} if files is None else found_in_flight(configuration, lambda location: files)
    found = frozenset(in_flight.items())
    graph: JobGraph = pickle.loads(_pickled(name, parallelism, chaining, found))
    graph.job_id = job_id
    graph.configuration = {**graph.configuration, **configuration}
    return graph
