"""``submit`` chooses the session of a job and submits it; ``env.execute()`` calls it.

The target is the option ``execution.target``; without it, Ray if the program runs inside a Ray job
or has initialised Ray; else this process. On Ray, ``modes`` chooses between a session and the
program's own cluster."""

from __future__ import annotations

import logging
import os
import sys
from collections import deque
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from flinkpy.cluster.client import ClusterClient, ClusterJob
from flinkpy.cluster.deployment_mode import RAY_JOB
from flinkpy.core.options.engine import TARGET, Target
from flinkpy.core.options.schema import read
from flinkpy.graph.job_graph import JobGraph

_RAY_ADDRESS = "RAY_ADDRESS"


def submit(job_graph: JobGraph, configuration: Mapping[str, Any]) -> ClusterJob:
    """Submits the job to the session that the configuration chooses, which is started if necessary;
    the job runs when this returns.

    Raises ResourceUnavailableError when there is no such cluster or it can never hold the job,
    ConfigurationError for a bad option."""
    job = connect(configuration, for_job=job_graph).submit(job_graph)
    _submitted.append(job)
    return job


_submitted: deque[ClusterJob] = deque(maxlen=1000)


def submitted_jobs() -> list[ClusterJob]:
    """The jobs this process has submitted, oldest first."""
    return list(_submitted)


def connect(
    configuration: Mapping[str, Any], *, for_job: JobGraph | None = None, start: bool = True
) -> ClusterClient:
    """Returns a client of the cluster that the configuration chooses: for a job, the cluster of
    this program's jobs; else the session of that name. Without ``start``, a session that does not
    exist is an error."""
    if choose_target(configuration) is Target.RAY:
        # In notebooks `import ray` asks for a package not needed here
        logging.getLogger("ray.widgets.util").setLevel(logging.WARNING)
        from flinkpy.cluster.ray.ray_sessions import connect_program, connect_session

        return (
            connect_program(configuration, for_job)
            if for_job is not None
            else connect_session(configuration, start=start)
        )
    from flinkpy.cluster.embedded import embedded_client
    from flinkpy.cluster.files.program_files import use_program_files

    if for_job is not None:
        use_program_files(configuration)

    return embedded_client(configuration, for_job.slots_needed if for_job is not None else 1)


def choose_target(
    configuration: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
    modules: Mapping[str, ModuleType] | None = None,
) -> Target:
    """Where jobs of this program run: EMBEDDED or RAY.

    >>> choose_target({"execution.target": "embedded"})
    <Target.EMBEDDED: 'embedded'>
    """
    explicit: Target | None = read(configuration, TARGET)
    if explicit is not None:
        return Target.EMBEDDED if explicit is Target.EMBEDDED else Target.RAY
    environ = os.environ if environ is None else environ
    if RAY_JOB in environ or environ.get(_RAY_ADDRESS):
        return Target.RAY
    ray = (sys.modules if modules is None else modules).get("ray")
    is_initialized = getattr(ray, "is_initialized", None)
    return Target.RAY if is_initialized is not None and is_initialized() else Target.EMBEDDED
