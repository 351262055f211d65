"""Chooses the cluster for a program's jobs on Ray: a session, which other programs use too, or the
program's own."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from flinkpy.core.options.engine import CLUSTER_NAME, TARGET, Target
from flinkpy.core.options.schema import read

RAY_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"  # set by `ray job submit` for the program it runs


class Mode(Enum):
    SESSION = "session"
    APPLICATION = "application"


def choose_mode(
    configuration: Mapping[str, Any], environ: Mapping[str, str], *, has_environment: bool = False
) -> Mode:
    """Chooses as ``execution.target`` says. With plain ``ray``: the session that ``cluster.id``
    names, if it is set; else the program's own cluster, inside a Ray job or if the program has a
    runtime environment of its own; else the shared session.

    >>> (
    ...     choose_mode({"execution.target": "ray"}, {}),
    ...     choose_mode({"execution.target": "ray"}, {"RAY_JOB_CONFIG_JSON_ENV_VAR": "{}"}),
    ... )
    (<Mode.SESSION: 'session'>, <Mode.APPLICATION: 'application'>)
    """
    target = read(configuration, TARGET)
    if target in (Target.RAY_SESSION, Target.RAY_APPLICATION):
        return Mode.APPLICATION if target is Target.RAY_APPLICATION else Mode.SESSION
    if CLUSTER_NAME.key in configuration:
        return Mode.SESSION
    return Mode.APPLICATION if has_environment or RAY_JOB in environ else Mode.SESSION
