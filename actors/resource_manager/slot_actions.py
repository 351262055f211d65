"""What the SlotManager wants done; the ResourceManager does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from flinkpy.actors.gateways import SlotRequest
from flinkpy.core.errors import ResourceUnavailableError
from flinkpy.core.ids import ResourceId, SlotId
from flinkpy.graph.resources import ResourceProfile


@dataclass(frozen=True)
class AllocateSlot:
    """Ask the TaskExecutor to allocate the slot to the request's job."""

    slot_id: SlotId
    request: SlotRequest


@dataclass(frozen=True)
class StartWorker:
    resource_id: ResourceId
    slots: int
    profile: ResourceProfile


@dataclass(frozen=True)
class StopWorker:
    resource_id: ResourceId
    reason: str


@dataclass(frozen=True)
class FailRequest:
    """The slot will never come: tell the JobMaster."""

    request: SlotRequest
    error: ResourceUnavailableError


Action: TypeAlias = AllocateSlot | StartWorker | StopWorker | FailRequest
