"""Serves the REST endpoint on a thread of its own, from its start to its stop."""

from __future__ import annotations

import contextlib
import errno
import secrets
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute

from flinkpy.actors.gateways import DispatcherGateway
from flinkpy.core.clock import Clock
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.metrics import MetricsConfig
from flinkpy.core.options.ports import Ports
from flinkpy.core.options.rest import RestConfig
from flinkpy.network.wire.outward_address import outward_address
from flinkpy.web.client_connection import accepting
from flinkpy.web.dispatcher_calls import DispatcherCalls
from flinkpy.web.failed_requests import HANDLERS
from flinkpy.web.guard import LOOPBACK, Guard
from flinkpy.web.inspector_calls import InspectorCalls
from flinkpy.web.metric_fetcher import LatestReading, MetricFetcher
from flinkpy.web.rest_services import RestServices, offer
from flinkpy.web.routes import ROUTES, page_routes
from flinkpy.web.tls import server_context

PORT = 8081
EVERYWHERE = ("0.0.0.0", "::", "")  # where it may listen; nobody can go there
START_S = STOP_S = 5.0
MOST_CONNECTIONS = 200
IDLE_S = 30  # how long a connection may stay open without a request


class RestServer:
    """The server of the REST endpoint. It binds its port when it is made and answers once it
    serves; requests that come earlier wait until then. ``token`` is None if requests need none. The
    server also serves the page, beside the ``routes``.

    Raises ConfigurationError if the address or the port cannot be had, or the certificate cannot be
    used."""

    def __init__(
        self,
        config: RestConfig,
        clock: Clock,
        metrics: MetricsConfig | None = None,
        routes: Sequence[BaseRoute] = ROUTES,
    ) -> None:
        self._metrics = metrics or MetricsConfig()
        self.token = (config.token or secrets.token_urlsafe(16)) if config.needs_token else None
        self._tls = None if config.tls is None else server_context(config.tls)
        self._socket = _bound(config)
        self.port: int = self._socket.getsockname()[1]
        self._host, self._clock = config.address, clock
        self._app = Starlette(routes=[*routes, *page_routes.ROUTES], exception_handlers=HANDLERS)
        self._app.router.redirect_slashes = False  # an unknown path is a 404, as in Flink
        guarded = Guard(
            self._app,
            self.token,
            LOOPBACK if config.address in LOOPBACK else (),
            page_routes.is_page,
        )
        serving = uvicorn.Config(
            guarded,
            log_config=None,
            log_level="error",
            access_log=False,
            lifespan="off",
            http=accepting(config.connections_per_client),
            ws="none",
            limit_concurrency=MOST_CONNECTIONS + 1,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=1,
            server_header=False,
        )
        serving.load()
        serving.ssl = self._tls
        self._server = uvicorn.Server(serving)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="rest", daemon=True
        )

    @property
    def url(self) -> str:
        host = (
            outward_address()
            if self._host in EVERYWHERE
            else f"[{self._host}]"
            if ":" in self._host
            else self._host
        )
        return f"{'http' if self._tls is None else 'https'}://{host}:{self.port}"

    @property
    def told(self) -> str:
        """How to reach it: the page's address, from which the page takes the token, and the header
        for others."""
        if self.token is None:
            return self.url
        return (
            f"{self.url}/#token={quote(self.token, safe='')} (for scripts: header "
            f"'Authorization: Bearer {self.token}')"
        )

    def serve(
        self,
        dispatcher: DispatcherGateway,
        inspectors: InspectorCalls | None = None,
        options: Mapping[str, Any] | None = None,
        latest: LatestReading | None = None,
    ) -> None:
        """``options`` are those of the cluster. Without ``inspectors`` no process can be looked
        into. ``latest`` is shared with others who fetch."""
        calls = DispatcherCalls(dispatcher, self._clock)
        interval_s = self._metrics.fetch_interval.total_seconds()
        metrics = MetricFetcher(calls, inspectors, interval_s, socket.gethostname(), latest)
        self.begin(RestServices(calls, metrics, inspectors, options or {}, self._metrics.reporters))

    def begin(self, services: object = None) -> None:
        """Answers from now on. ``services`` is what the handlers of its routes ask."""
        offer(self._app, services)
        self._thread.start()

    def stop(self) -> None:
        """Returns when the thread has ended, or after a few seconds."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(STOP_S)
        self._socket.close()

    def __repr__(self) -> str:
        return f"<RestServer at {self.url}>"


def _bound(config: RestConfig) -> socket.socket:
    """Listens. Raises ConfigurationError if the address or the port cannot be had."""
    if config.port is None:
        with contextlib.suppress(OSError):
            return _listening(config.address, PORT)
    try:
        return Ports.of(config.port or 0).first(lambda port: _listening(config.address, port))
    except OSError as error:
        is_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
        what = (
            f"{config.port_key}: {config.address}:{config.port}"
            if is_port
            else f"{config.address_key}: {config.address}"
        )
        raise ConfigurationError(f"option {what} cannot be had ({error.strerror})") from None


def _listening(address: str, port: int) -> socket.socket:
    family, kind, protocol, _, where = socket.getaddrinfo(
        address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    return listening
