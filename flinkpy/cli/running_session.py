"""The session on Ray that commands speak to from another process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flinkpy.cli.run import gather
from flinkpy.cluster.client import ClusterClient
from flinkpy.cluster.launch import connect
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.engine import TARGET, Target


def reach_session(
    target: str | None, definitions: Sequence[str], conf: Path | None
) -> ClusterClient:
    """The session on Ray that the options name. Raises an error if there is none: these commands
    start nothing."""
    settings: dict[str, Any] = gather(conf, definitions, None, target)
    if settings.setdefault(TARGET.key, Target.RAY.value) in (
        Target.EMBEDDED,
        Target.EMBEDDED.value,
    ):
        raise ConfigurationError(
            "embedded jobs live in the process that started them: end that one (Ctrl-C); -t "
            "ray reaches sessions on Ray"
        )
    return connect(settings, start=False)
