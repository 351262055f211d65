"""An environment for tests of whole jobs: it runs them in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkpy.datastream import StreamExecutionEnvironment


def embedded_environment(
    configuration: Mapping[str, Any] | None = None, *, parallelism: int = 1
) -> StreamExecutionEnvironment:
    """Returns a new environment whose jobs run on threads of this process, whatever a configuration
    file or variable sets as the target.

    >>> env = embedded_environment({"execution.buffer-timeout": "5 ms"}, parallelism=2)
    >>> env.get_parallelism(), env.get_buffer_timeout()
    (2, 5)
    """
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded", "client.progress": False, **(configuration or {})}
    )
    return env.set_parallelism(parallelism)
