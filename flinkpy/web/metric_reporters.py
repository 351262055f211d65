"""Brings metrics to those who do not ask by REST: Prometheus at a port of its own, OpenTelemetry,
Ray. It has a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette

from flinkpy.actors.gateways import DispatcherGateway
from flinkpy.core.clock import Clock
from flinkpy.core.errors import ConfigurationError, FlinkpyError
from flinkpy.core.options.metrics import OTEL, PROMETHEUS_PORT, RAY, MetricsConfig
from flinkpy.core.options.ports import Ports
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.metrics.samples import Sample
from flinkpy.web.client_connection import Connection
from flinkpy.web.dispatcher_calls import DispatcherCalls
from flinkpy.web.failed_requests import HANDLERS
from flinkpy.web.inspector_calls import InspectorCalls
from flinkpy.web.metric_fetcher import LatestReading, MetricFetcher
from flinkpy.web.rest_services import RestServices, offer
from flinkpy.web.routes.metric_routes import PROMETHEUS_ROUTES

LOG = engine_logger(__name__)

STOP_S = 5.0
MOST_CONNECTIONS = 100

Export = Callable[[list[Sample]], None]


class MetricReporters:
    """From ``serve`` to ``stop``. ``port`` is that of Prometheus, None without one of its own.

    Raises ConfigurationError if the port cannot be had, or if what a reporter needs is not
    installed."""

    def __init__(self, config: MetricsConfig, address: str, clock: Clock) -> None:
        self._config, self._clock = config, clock
        self._exports = [(each, interval.total_seconds()) for each, interval in _exports(config)]
        self._socket = (
            None if config.prometheus_port is None else _listening(address, config.prometheus_port)
        )
        self.port: int | None = None if self._socket is None else self._socket.getsockname()[1]
        self._stopped = threading.Event()
        self._end: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._thread: threading.Thread | None = None

    def serve(
        self,
        dispatcher: DispatcherGateway,
        inspectors: InspectorCalls,
        latest: LatestReading | None = None,
    ) -> None:
        """``latest`` is shared with others who fetch."""
        calls = DispatcherCalls(dispatcher, self._clock)
        fetcher = MetricFetcher(
            calls,
            inspectors,
            self._config.fetch_interval.total_seconds(),
            socket.gethostname(),
            latest,
        )
        self._thread = threading.Thread(
            target=asyncio.run,
            args=(self._report(calls, fetcher),),
            name="metric reporters",
            daemon=True,
        )
        self._thread.start()

    async def _report(self, calls: DispatcherCalls, fetcher: MetricFetcher) -> None:
        end = asyncio.Event()
        self._end = asyncio.get_running_loop(), end
        pushing = [
            asyncio.ensure_future(self._push(fetcher, export, interval_s))
            for export, interval_s in self._exports
        ]
        server = self._prometheus_server(calls, fetcher)
        serving = (
            None if self._socket is None else asyncio.ensure_future(server.serve([self._socket]))
        )
        if not self._stopped.is_set():
            await end.wait()
        server.should_exit = True  # it closes its connections
        for push in pushing:
            push.cancel()
        await asyncio.gather(
            *pushing, *([] if serving is None else [serving]), return_exceptions=True
        )

    def _prometheus_server(self, calls: DispatcherCalls, fetcher: MetricFetcher) -> uvicorn.Server:
        app = Starlette(routes=PROMETHEUS_ROUTES, exception_handlers=HANDLERS)
        offer(app, RestServices(calls, fetcher, reporters=self._config.reporters))
        return _Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                http=Connection,
                ws="none",
                limit_concurrency=MOST_CONNECTIONS,
                timeout_graceful_shutdown=1,
                server_header=False,
            )
        )

    async def _push(self, fetcher: MetricFetcher, export: Export, interval_s: float) -> None:
        """What goes wrong is logged, and tried again the next time."""
        while True:
            try:
                samples = await fetcher.samples()
                await asyncio.to_thread(export, samples)
            except FlinkpyError as error:
                LOG.warning("metrics were not reported: %s", error)
            except Exception:
                LOG.warning("metrics were not reported", exc_info=True)
            await asyncio.sleep(interval_s)

    def stop(self) -> None:
        """Returns when the thread has ended, or after a few seconds."""
        self._stopped.set()
        if self._end is not None:
            loop, end = self._end
            with contextlib.suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(end.set)
        if self._thread is not None:
            self._thread.join(STOP_S)
        if self._socket is not None:
            self._socket.close()

    def __repr__(self) -> str:
        return f"<MetricReporters {', '.join(sorted(self._config.reporters))}>"


class _Server(uvicorn.Server):
    """Leaves the signals of the process alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _exports(config: MetricsConfig) -> list[tuple[Export, Any]]:
    found: list[tuple[Export, Any]] = []
    if OTEL in config.reporters:
        from flinkpy.metrics.otel import OtelExport

        found.append((OtelExport(config.otel_endpoint, config.otel_service), config.otel_interval))
    if RAY in config.reporters:
        from flinkpy.metrics.ray_export import RayExport

        found.append((RayExport(), config.ray_interval))
    return found


def _listening(address: str, port: int | Ports) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return Ports.of(port).first(
            lambda number: socket.create_server((address, number), family=family)
        )
    except OSError as error:
        raise ConfigurationError(
            f"option {PROMETHEUS_PORT.key}: {address}:{port} cannot be had ({error.strerror})"
        ) from None
