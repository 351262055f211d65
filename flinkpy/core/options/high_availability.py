"""High availability: whether a JobManager that dies comes back with its jobs, and where it finds
them, under Flink's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.checkpointing import CHECKPOINT_DIRECTORY
from flinkpy.core.options.schema import SCHEMA, Option, option, read


class HighAvailabilityType(Enum):
    NONE = "NONE"
    FILESYSTEM = "filesystem"


class _TypeOption(Option[Any]):
    def _parsed(self, value: object) -> Any:
        try:
            return super()._parsed(value)
        except ValueError:
            raise ValueError(
                f"{value!r} is not there: flinkpy keeps jobs in files, and Ray starts the "
                "JobManager again; write filesystem, and name a folder "
                "with high-availability.storageDir. NONE turns it off"
            ) from None


HA_TYPE: Option[Any] = SCHEMA.add(
    _TypeOption(
        "high-availability.type",
        HighAvailabilityType,
        HighAvailabilityType.NONE,
        (
            "NONE, or filesystem: a JobManager on Ray that dies is started again, and its jobs go "
            "on from their last checkpoint."
        ),
        aliases=("high-availability", "high-availability.mode"),
    )
)
HA_STORAGE_DIR = option(
    "high-availability.storageDir",
    str,
    None,
    (
        "The folder or URL in which the JobManager keeps what it needs to come back; without "
        "it, the folder of the checkpoints."
    ),
)
HA_CLUSTER_ID = option(
    "high-availability.cluster-id",
    str,
    None,
    (
        "The name of this cluster in that folder; without it, the session's name. Two "
        "clusters must not share one."
    ),
)
CLIENT_TIMEOUT = option(
    "client.timeout",
    timedelta,
    timedelta(seconds=60),
    "How long a program waits for a JobManager that starts, that does not answer, "
    "or that died and comes back (with high-availability.type).",
    at_least=timedelta(milliseconds=1),
)


@dataclass(frozen=True)
class HighAvailability:
    """Where a JobManager keeps what it needs to come back."""

    storage_dir: str
    cluster_id: str

    @staticmethod
    def of(values: Mapping[str, Any], cluster: str) -> HighAvailability | None:
        """None if it is turned off. ``cluster`` is the name of a cluster that was given none.
        Raises ConfigurationError if no folder is named.

        >>> HighAvailability.of(
        ...     {
        ...         "high-availability.type": "filesystem",
        ...         "high-availability.storageDir": "/shared/ha",
        ...     },
        ...     "default",
        ... )
        HighAvailability(storage_dir='/shared/ha', cluster_id='default')
        """
        if not is_highly_available(values):
            return None
        storage_dir = read(values, HA_STORAGE_DIR) or read(values, CHECKPOINT_DIRECTORY)
        if storage_dir is None:
            raise ConfigurationError(
                f"option {HA_TYPE.key}: filesystem needs a folder that all nodes see; set "
                f"{HA_STORAGE_DIR.key}"
            )
        return HighAvailability(storage_dir, read(values, HA_CLUSTER_ID) or cluster)


def is_highly_available(values: Mapping[str, Any]) -> bool:
    """Whether a JobManager that dies is to come back."""
    return read(values, HA_TYPE) is not HighAvailabilityType.NONE
