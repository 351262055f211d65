"""Clusters on Ray: how client processes find, start and end them. There are two kinds, with the
same actors (``workers``):

*session*      a detached actor of a known name (``cluster.id``). It outlives the program that
started it: the next program finds it and reuses it. *application*  the program's own. Its actor
belongs to the program's Ray job, so it ends with the program, however that ends.

A job's runtime environment is part of its slots' resource profile, so a session serves jobs with
different ones, each in its own workers. The JobManager must have none, or all programs would get
the first one's: a program with an environment runs as an application, unless it names a session
that exists."""

from __future__ import annotations

import atexit
import itertools
import os
import secrets
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import ray

from flinkpy import __version__
from flinkpy.actors.gateways import ClusterOverview, DispatcherGateway
from flinkpy.actors.rpc.ray_service import (
    NAMESPACE,
    JobManagerProcess,
    RayHost,
    RayRpcService,
    find_host,
    living_hosts,
    start_host,
    start_process_ahead,
)
from flinkpy.cluster.client import ClientConfig, ClientSession, ClusterClient, Leaders, Output
from flinkpy.cluster.deployment_mode import Mode, choose_mode
from flinkpy.cluster.display.display_choice import make_progress
from flinkpy.cluster.display.output_listener import make_printer, output_wanted
from flinkpy.cluster.display.watcher import Watcher
from flinkpy.cluster.files.job_files import with_cached_files
from flinkpy.cluster.installation import fingerprint
from flinkpy.cluster.ray.head_node import RayHead
from flinkpy.cluster.ray.ray_connection import connect_ray
from flinkpy.cluster.ray.registered_files import content_for_workers
from flinkpy.cluster.ray.runtime_environment import job_environment, program_environment
from flinkpy.cluster.ray.workers import JobManagerSetup, first_line, why_not_started
from flinkpy.cluster.session import (
    SessionConfig,
    SessionGateway,
    SessionInfo,
    SessionMemory,
    session_options,
)
from flinkpy.connectors.ray.stored_pieces import handed_over
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import (
    ConfigurationError,
    FencingError,
    FlinkpyError,
    RecipientUnreachableError,
    ResourceUnavailableError,
    RpcTimeoutError,
)
from flinkpy.core.futures import Future
from flinkpy.core.ids import IdFactory
from flinkpy.core.options.engine import ATTACHED, CLUSTER_NAME, ON_HEAD_NODE, RAY_ADDRESS, TASK_CPUS
from flinkpy.core.options.high_availability import (
    CLIENT_TIMEOUT,
    HighAvailability,
    is_highly_available,
)
from flinkpy.core.options.schema import read
from flinkpy.core.secrets.hidden_secrets import shown_value
from flinkpy.graph.job_graph import JobGraph
from flinkpy.state.checkpoints.locations import absolute

STOP_TIMEOUT_S = 20.0
END_TIMEOUT_S = 5.0  # for a program's own cluster when the program ends
LOOK_TIMEOUT_S = 3.0
LOOK_PAUSE_S = 0.2
WHO_HOLDS_SLOTS = "`flinkpy list` shows the jobs that hold slots, `ray status` who else holds CPUs"
_PREFIX = "jobmanager-"


@dataclass(frozen=True)
class SessionKey:
    """One cluster, over one connection of this process to Ray."""

    ray_job: str
    cluster_id: str
    is_application: bool = False

    @property
    def process(self) -> str:
        return f"{_PREFIX}{self.cluster_id}"

    @property
    def label(self) -> str:
        return f"flinkpy {'application' if self.is_application else 'session'} {self.cluster_id!r}"


class _RayClientSession(ClientSession):
    """A session on Ray, as the clients of one program see it."""

    def __init__(self, session: RaySession, configuration: Mapping[str, Any]) -> None:
        self._configuration = configuration
        self.head = session.ray_head
        self.leaders = session

    def prepare(self, job_graph: JobGraph) -> JobGraph:
        return prepared(self._configuration, job_graph)

    def watcher(self) -> Watcher | None:
        return make_progress(self._configuration, WHO_HOLDS_SLOTS)

    def output(self) -> Output | None:
        if not output_wanted(self._configuration):
            return None
        return make_printer(ray.util.get_node_ip_address(), self._configuration)


class RaySession(Leaders):
    """A session or application on Ray, as one client process sees it."""

    def __init__(
        self,
        key: SessionKey,
        host: RayHost,
        configuration: Mapping[str, Any],
        timeout_s: float | None = None,
    ) -> None:
        config = SessionConfig.of(configuration)
        self.key = key
        self.host = host
        self.page_was_shown = False
        ids = IdFactory()
        self.service = RayRpcService(
            f"client-{ids.hex(8)}", namespace=NAMESPACE, config=config.rpc, ids=ids
        )
        gone = f"the {key.label} on Ray is gone: "
        anew = "(`ray status` tells); run the program again to start anew"
        self._config = ClientConfig(
            config.rpc.ask_timeout.total_seconds(),
            f"{gone}its JobManager died, or Ray ended {anew}",
            ends_with_program=key.is_application,
            reached_by=_named(configuration),
            patience_s=read(configuration, CLIENT_TIMEOUT).total_seconds(),
        )
        address = ray.get_runtime_context().gcs_address
        self.ray_head = RayHead(address, f"{gone}no Ray answers at {address} any more {anew}")
        answer_s = timeout_s or self._config.ask_timeout_s
        try:
            self.info: SessionInfo = self._describe().result(answer_s)
            self.dispatcher = self._connect(self.info).result(answer_s)
        except FlinkpyError:
            self.close()
            raise

    def _describe(self) -> Future[SessionInfo]:
        return self.service.connect(None, f"{self.key.process}/session", SessionGateway).compose(
            lambda session: session.describe()
        )

    def _connect(self, info: SessionInfo) -> Future[DispatcherGateway]:
        address, token = info.dispatcher
        return self.service.connect(
            None, address or f"{self.key.process}/dispatcher", DispatcherGateway, token
        )

    # -- a JobManager that comes back --------------------------------------------------------------

    @property
    def may_come_back(self) -> bool:
        return is_highly_available(self.info.options) and find_host(self.key.process) is not None

    def find_leader(self) -> Future[DispatcherGateway]:
        return self._describe().compose(self._connect).then(self._found)

    def _found(self, dispatcher: DispatcherGateway) -> DispatcherGateway:
        self.dispatcher = dispatcher
        return dispatcher

    def client(self, configuration: Mapping[str, Any]) -> ClusterClient:
        return ClusterClient(
            self.dispatcher, self._config, session=_RayClientSession(self, configuration)
        )

    def close(self) -> None:
        """Closes the client's side only."""
        self.service.stop()


_LOCK = threading.Lock()
_sessions: dict[str, RaySession] = {}
_applications: dict[frozenset[tuple[str, str]], RaySession] = {}
_numbers = itertools.count(1)


# -- jobs ------------------------------------------------------------------------------------------


def connect_program(configuration: Mapping[str, Any], job_graph: JobGraph) -> ClusterClient:
    """Returns a client of the cluster for this job of the program; starts the cluster, and Ray, if
    they do not exist."""
    with _LOCK:
        connect_ray(configuration, start=True)
        has_environment = bool(program_environment())
        if (
            choose_mode(configuration, os.environ, has_environment=has_environment)
            is Mode.APPLICATION
        ):
            if not read(configuration, ATTACHED):
                raise ConfigurationError(
                    "a program's own cluster ends with the program, so its jobs cannot be "
                    "detached: name a session "
                    "(`flinkpy session start NAME`, -D "
                    f"{CLUSTER_NAME.key}=NAME), or drop -d"
                )
            session = _application(configuration, job_graph)
        else:
            session = _session(configuration, start=not has_environment, job_graph=job_graph)
        _show_page(session)
        return session.client(configuration)


def connect_session(configuration: Mapping[str, Any], *, start: bool) -> ClusterClient:
    """Returns a client of the session (or application) that ``cluster.id`` names. With ``start``,
    starts a Ray cluster and a session if they do not exist."""
    with _LOCK:
        connect_ray(configuration, start=start)
        return _session(configuration, start).client(configuration)


def _show_page(session: RaySession) -> None:
    """Prints the page's address, once for each session. Not the token: in a Ray job, whoever reads
    its log would have it."""
    if session.info.page and not session.page_was_shown and sys.stderr is not None:
        session.page_was_shown = True
        token = (
            ""
            if session.info.rest == session.info.page
            else " (`flinkpy session list` tells the token)"
        )
        print(f"in the browser: {session.info.page}{token}", file=sys.stderr, flush=True)


def prepared(configuration: Mapping[str, Any], job_graph: JobGraph) -> JobGraph:
    """Returns the job with its slots' resources, and with the program's data in a form that Ray's
    workers can reach."""
    outlives_program = not read(configuration, ATTACHED)
    job_graph = with_resources(configuration, job_graph)
    job_graph = replace(
        job_graph,
        vertices=[
            replace(
                vertex,
                out_of_band=tuple(
                    [
                        handed_over(data, outlives_program=outlives_program)
                        for data in vertex.out_of_band
                    ]
                ),
            )
            for vertex in job_graph.vertices
        ],
    )
    return with_cached_files(job_graph, content_for_workers(outlives_program=outlives_program))


def with_resources(configuration: Mapping[str, Any], job_graph: JobGraph) -> JobGraph:
    """Adds the CPUs and the runtime environment to the slots' profiles, so that each job may ask
    the same session for different ones."""
    cpus, environment = read(configuration, TASK_CPUS), job_environment(configuration)
    return replace(
        job_graph,
        vertices=[
            replace(
                vertex,
                resources=replace(
                    vertex.resources, cpus=vertex.resources.cpus or cpus, environment=environment
                ),
            )
            for vertex in job_graph.vertices
        ],
    )


# -- sessions --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunningCluster:
    """A session or application that exists; without an ``overview`` when it does not answer, or is
    of another version of flinkpy."""

    name: str
    info: SessionInfo | None
    overview: ClusterOverview | None


def running_clusters(configuration: Mapping[str, Any]) -> list[RunningCluster]:
    """Returns all sessions and applications on this Ray cluster, sorted by name."""
    connect_ray(configuration, start=False)
    names = sorted(
        host.removeprefix(_PREFIX) for host in living_hosts() if host.startswith(_PREFIX)
    )
    return [_looked_at(name, configuration) for name in names]


def start_session(configuration: Mapping[str, Any]) -> bool:
    """Starts the session that ``cluster.id`` names unless it exists; returns whether it was
    started."""
    with _LOCK:
        connect_ray(configuration, start=True)
        fresh = find_host(_key(configuration).process) is None
        if fresh and program_environment():
            raise ConfigurationError(
                "a session serves many programs, so it cannot be started with the runtime "
                "environment of one: submit "
                "`flinkpy session start` without --working-dir and "
                "--runtime-env"
            )
        _session(configuration, start=True)
        return fresh


def stop_session(configuration: Mapping[str, Any]) -> bool:
    """Cancels the session's jobs and ends it and its workers; kills it if it does not answer.
    Returns False when there is none."""
    connect_ray(configuration, start=False)
    key = _key(configuration)
    host = find_host(key.process)
    if host is None:
        return False
    try:
        with _LOCK:
            session = _session(configuration, start=False)
        # perhaps another one than when this program connected
        dispatcher = session.find_leader().result(STOP_TIMEOUT_S)
        dispatcher.shut_down_cluster().result(STOP_TIMEOUT_S)
        host.stop().result(STOP_TIMEOUT_S)
    except FlinkpyError:
        pass
    # in any case: an actor that was out of reach for a moment passes for one that has ended
    host.kill()
    with _LOCK:
        _forget(key.cluster_id)
    return True


def _looked_at(name: str, configuration: Mapping[str, Any]) -> RunningCluster:
    key = SessionKey("", name)
    host = find_host(key.process)
    try:
        session = RaySession(key, host, configuration, LOOK_TIMEOUT_S) if host is not None else None
    except FlinkpyError:
        session = None
    if session is None:
        return RunningCluster(name, None, None)
    try:
        return RunningCluster(
            name, session.info, session.dispatcher.request_cluster_overview().result(LOOK_TIMEOUT_S)
        )
    except FlinkpyError:
        return RunningCluster(name, session.info, None)
    finally:
        session.close()


def _session(
    configuration: Mapping[str, Any], start: bool, job_graph: JobGraph | None = None
) -> RaySession:
    key = _key(configuration)
    host = find_host(key.process)
    if host is None and not start:
        raise ResourceUnavailableError(_no_session(key))
    known = _sessions.get(key.cluster_id)
    if known is not None and known.key == key and host is not None:
        return known
    _forget(key.cluster_id)
    fresh = host is None
    host = host if host is not None else _start(key, configuration, job_graph)
    session = _checked(_connected(key, host, configuration), configuration, fresh)
    _sessions[key.cluster_id] = session
    return session


def _no_session(key: SessionKey) -> str:
    others = sorted(
        host.removeprefix(_PREFIX) for host in living_hosts() if host.startswith(_PREFIX)
    )
    if not program_environment():
        text = f"there is no flinkpy session {key.cluster_id!r} on this Ray cluster"
        if not others:
            return f"{text}, so no jobs"
        return (
            f"{text}; there is {', '.join(map(repr, others))}: choose with -D "
            f"{CLUSTER_NAME.key}={others[0]}"
        )
    return (
        f"there is no flinkpy session {key.cluster_id!r} on this Ray cluster, and a program "
        "with its own runtime environment starts none, as "
        f"others would get it too: `flinkpy session start {key.cluster_id}` first, or "
        "-t ray-application"
    )


def _named(configuration: Mapping[str, Any]) -> str:
    """Returns the ``-D`` options that select the Ray cluster and the session of a command, where
    they are not the defaults."""
    return "".join(
        f" -D {option.key}={value}"
        for option in (RAY_ADDRESS, CLUSTER_NAME)
        if (value := read(configuration, option)) != option.default
    )


def _key(configuration: Mapping[str, Any]) -> SessionKey:
    return SessionKey(_ray_job(), read(configuration, CLUSTER_NAME))


def _ray_job() -> str:
    return str(ray.get_runtime_context().get_job_id())


def _start(
    key: SessionKey, configuration: Mapping[str, Any], job_graph: JobGraph | None
) -> RayHost:
    """Starts the cluster's actor. Two clients that start a session at the same time get the same
    one. Ray ends an application with this process. If the job is known, its first worker starts at
    the same time."""
    first_slot = (
        with_resources(configuration, job_graph).vertices[0].resources
        if job_graph is not None
        else None
    )
    high_availability = HighAvailability.of(configuration, key.cluster_id)
    options: dict[str, Any] = {"num_cpus": 0}
    memory = SessionMemory.of(configuration).job_manager
    if memory is not None:
        options["memory"] = memory.process
    if read(configuration, ON_HEAD_NODE):
        # of which Ray gives its head node one
        options["resources"] = {"node:__internal_head__": 0.001}
    if not key.is_application:
        options |= {"lifetime": "detached", "get_if_exists": True}
    if high_availability is not None:
        high_availability = replace(
            high_availability, storage_dir=absolute(high_availability.storage_dir)
        )
        options["max_restarts"] = -1
    patience_s = read(configuration, CLIENT_TIMEOUT).total_seconds()
    try:
        setup = JobManagerSetup(
            key.cluster_id,
            session_options(configuration),
            key.is_application,
            first_slot,
            high_availability,
            secrets.token_bytes(32),
            secrets.token_hex(4),
        )
        host = start_host(
            key.process,
            setup,
            namespace=NAMESPACE,
            config=SessionConfig.of(configuration).rpc,
            options=options,
            kind=JobManagerProcess,
        )
        if job_graph is not None:
            start_process_ahead()  # for the first worker, at the same time as the JobManager's
        host.ready().result(patience_s)
    except ValueError:  # from Ray: the name is taken
        raise ResourceUnavailableError(
            f"there is a cluster named {key.cluster_id!r} on Ray already; choose another "
            f"{CLUSTER_NAME.key}"
        ) from None
    except RpcTimeoutError:
        raise ResourceUnavailableError(
            f"the {key.label} has not started on Ray within {patience_s:g} s "
            f"({CLIENT_TIMEOUT.key}): `ray status` shows whether Ray has room for it"
        ) from None
    except FlinkpyError as error:
        raise ResourceUnavailableError(
            f"the {key.label} did not start on Ray: {why_not_started(error)}"
        ) from error
    return host


def _connected(key: SessionKey, host: RayHost, configuration: Mapping[str, Any]) -> RaySession:
    try:
        return _connected_in_time(
            key,
            host,
            configuration,
            SYSTEM_CLOCK.monotonic() + read(configuration, CLIENT_TIMEOUT).total_seconds(),
        )
    except FlinkpyError as error:
        raise ResourceUnavailableError(
            f"the {key.label} on Ray does not answer ({first_line(error)}); if it was "
            "started by another version of flinkpy, "
            f"or hangs, `flinkpy session stop {key.cluster_id}` ends it"
        ) from error


def _connected_in_time(
    key: SessionKey, host: RayHost, configuration: Mapping[str, Any], end: float
) -> RaySession:
    """Repeats while Ray starts the JobManager again, and while it is too busy to answer."""
    while True:
        try:
            return RaySession(key, host, configuration)
        except (RecipientUnreachableError, FencingError, RpcTimeoutError):
            if SYSTEM_CLOCK.monotonic() > end or find_host(key.process) is None:
                raise
        threading.Event().wait(LOOK_PAUSE_S)


def _checked(session: RaySession, configuration: Mapping[str, Any], fresh: bool) -> RaySession:
    stranger = is_another_installation(session.info)
    if stranger is not None:
        session.close()
        raise ResourceUnavailableError(
            f"the {session.key.label} {stranger}: end it with `flinkpy session stop "
            f"{session.key.cluster_id}`, "
            f"or use another one with -D {CLUSTER_NAME.key}=NAME"
        )
    differing = [
        f"{name}={shown_value(name, value)}"
        for name, value in session_options(configuration).items()
        if str(session.info.options.get(name)) != str(value)
    ]
    if differing and not fresh:
        print(
            f"the session {session.key.cluster_id!r} runs already and keeps its own options; "
            f"without effect: {', '.join(differing)} "
            f"(`flinkpy session stop {session.key.cluster_id}` ends it)",
            file=sys.stderr,
        )
    return session


def is_another_installation(info: SessionInfo) -> str | None:
    """Returns how the session's flinkpy differs from this program's; None when it is the same."""
    if info.version != __version__:
        return f"was started by flinkpy {info.version}, this is {__version__}"
    if not info.is_intact:
        return (
            "was started from an installation of flinkpy that has gone or changed since, so "
            "it can start no worker"
        )
    if info.installation != fingerprint():
        return f"was started by another build of flinkpy {info.version}"
    return None


def _forget(cluster_id: str) -> None:
    session = _sessions.pop(cluster_id, None)
    if session is not None:
        session.close()


# -- applications ----------------------------------------------------------------------------------


def _application(configuration: Mapping[str, Any], job_graph: JobGraph) -> RaySession:
    """Returns this program's own cluster. Jobs with other options for workers and calls get another
    one."""
    kind = frozenset((name, str(value)) for name, value in session_options(configuration).items())
    known = _applications.get(kind)
    if (
        known is not None
        and known.key.ray_job == _ray_job()
        and find_host(known.key.process) is not None
    ):
        return known
    ray_job = _ray_job()
    name = (
        read(configuration, CLUSTER_NAME)
        if CLUSTER_NAME.key in configuration
        else f"application-{ray_job}-{next(_numbers)}"
    )
    key = SessionKey(ray_job, name, is_application=True)
    _applications[kind] = application = _connected(
        key, _start(key, configuration, job_graph), configuration
    )
    return application


def _end(application: RaySession) -> None:
    """Ends the application. Jobs for which the program did not wait are cancelled."""
    try:
        application.dispatcher.shut_down_cluster().result(END_TIMEOUT_S)
    except FlinkpyError:
        pass  # it is gone already, or hangs
    try:
        application.host.kill()  # workers end with it
    except Exception:  # Ray is gone, and the cluster with it
        pass
    application.close()


@atexit.register
def _close_all() -> None:
    for application in _applications.values():
        _end(application)
    _applications.clear()
    for cluster_id in list(_sessions):
        _forget(cluster_id)
