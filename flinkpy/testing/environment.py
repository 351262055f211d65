"""An environment for tests of whole jobs: in this process, with the options of the test and no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkpy.datastream import StreamExecutionEnvironment


def embedded_environment(configuration: Mapping[str, Any] | None = None, *, parallelism: int = 1) -> StreamExecutionEnvironment:
    """A new environment whose jobs run on threads of this process; whatever a configuration file or variable says about where jobs run is overruled.

    >>> env = embedded_environment({"execution.buffer-timeout": "5 ms"}, parallelism=2)
    >>> env.get_parallelism(), env.get_buffer_timeout()
    (2, 5)
    """
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded", "client.progress": False, **(configuration or {})})
    return env.set_parallelism(parallelism)
