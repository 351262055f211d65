"""The contract between clients and sessions: the options a session is started with, and its
description. It is cheap to import for clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from flinkpy import __version__
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.leadership import NO_LEADER, LeaderInformation
from flinkpy.actors.rpc.service import RpcService
from flinkpy.cluster.installation import fingerprint, state
from flinkpy.core.futures import Future
from flinkpy.core.options.engine import TASK_CPUS, RpcConfig, SlotConfig
from flinkpy.core.options.events import WebhookConfig
from flinkpy.core.options.history import ARCHIVE_FOLDER
from flinkpy.core.options.logs import LogConfig
from flinkpy.core.options.memory_sizes import MemoryKind, consumer_weights
from flinkpy.core.options.metrics import MetricsConfig
from flinkpy.core.options.process_memory import JobManagerMemory, WorkerMemory
from flinkpy.core.options.rest import RestConfig
from flinkpy.core.options.schema import SCHEMA, read

_OF_SESSION = (
    "taskmanager.",
    "io.",
    "slot",
    "resourcemanager.",
    "heartbeat.",
    "rpc.",
    "cluster.registration.",
    "high-availability",
    "rest.",
    "security.ssl.",
    "jobmanager.archive.",
    "events.",
    "jobmanager.memory.",
    "log.",
    "metrics.reporter",
    "metrics.fetcher.",
)


@dataclass(frozen=True)
class SessionMemory:
    """How large the processes of a session are; None where no option says it. ``of_kinds`` says
    how the managed memory is divided."""

    worker: WorkerMemory | None = None
    job_manager: JobManagerMemory | None = None
    of_kinds: Mapping[MemoryKind, int] = field(default_factory=partial(consumer_weights, {}))

    @staticmethod
    def of(values: Mapping[str, Any]) -> SessionMemory:
        """Raises ConfigurationError if options contradict each other."""
        return SessionMemory(
            WorkerMemory.of(values) if WorkerMemory.is_given(values) else None,
            JobManagerMemory.of(values) if JobManagerMemory.is_given(values) else None,
            consumer_weights(values),
        )


@dataclass(frozen=True)
class SessionConfig:
    """The configuration of a session's endpoints; read once, when it starts."""

    rpc: RpcConfig
    slots: SlotConfig
    rest: RestConfig = field(default_factory=RestConfig)
    archive_folder: str | None = None
    webhook: WebhookConfig | None = None
    logs: LogConfig = field(default_factory=LogConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    memory: SessionMemory = field(default_factory=SessionMemory)
    # all of the session's, as they were given
    options: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(values: Mapping[str, Any], default_slots: int = 1) -> SessionConfig:
        return SessionConfig(
            RpcConfig.of(values),
            SlotConfig.of(values, default_slots),
            RestConfig.of(values),
            read(values, ARCHIVE_FOLDER),
            WebhookConfig.of(values),
            LogConfig.of(values),
            MetricsConfig.of(values),
            SessionMemory.of(values),
            session_options(values),
        )

    def with_free_ports(self) -> SessionConfig:
        """The same, listening at free ports in place of those that were asked for."""
        metrics = (
            self.metrics
            if self.metrics.prometheus_port is None
            else replace(self.metrics, prometheus_port=0)
        )
        return replace(self, rest=replace(self.rest, port=0), metrics=metrics)


def session_options(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a session reads once, when it starts; the others belong to each job."""
    keys = {key: SCHEMA.get(key).key for key in configuration if key in SCHEMA}
    return {
        name: configuration[key]
        for key, name in keys.items()
        if name.startswith(_OF_SESSION) and name != TASK_CPUS.key
    }


class RestPlace(NamedTuple):
    """Where the REST endpoint is; empty texts if there is none."""

    page: str = ""  # the page's address, without the token: it may be shown to everybody
    told: str = ""  # how to reach it, in words, with the token


@dataclass(frozen=True)
class SessionInfo:
    """The description of a session."""

    version: str
    options: dict[str, Any]
    is_application: bool = False  # belongs to one program, and ends with it
    dispatcher: LeaderInformation = NO_LEADER  # where jobs are submitted, and under which token
    installation: str | None = None  # fingerprint of the flinkpy it was started from; None: unknown
    is_intact: bool = True  # whether that installation is still there, for the next worker
    resource_manager: LeaderInformation = NO_LEADER  # where workers register
    session_id: str = ""  # another one when a session of the same name is started later
    rest: str = ""  # how to reach the REST endpoint, in words, with the token; empty: there is none
    page: str = ""  # the page's address, without the token


class SessionGateway(Protocol):
    """Every client calls it first. It must never change: with it, clients of another version
    recognise that the versions differ."""

    def describe(self) -> Future[SessionInfo]: ...


class SessionEndpoint(RpcEndpoint):
    """Describes the session: its flinkpy and its options."""

    gateway = SessionGateway

    def __init__(
        self,
        service: RpcService,
        configuration: Mapping[str, Any],
        dispatcher: Future[LeaderInformation],
        resource_manager: Future[LeaderInformation],
        rest: RestPlace,
        is_application: bool = False,
        session_id: str = "",
    ) -> None:
        super().__init__(service, "session")
        self._dispatcher, self._resource_manager = dispatcher, resource_manager
        self._info = SessionInfo(
            __version__,
            session_options(configuration),
            is_application,
            installation=fingerprint(),
            session_id=session_id,
            rest=rest.told,
            page=rest.page,
        )
        self._state = state()

    async def describe(self) -> SessionInfo:
        dispatcher = await self.in_main_thread(self._dispatcher)
        resource_manager = await self.in_main_thread(self._resource_manager)
        return replace(
            self._info,
            dispatcher=dispatcher,
            resource_manager=resource_manager,
            is_intact=state() == self._state,
        )
