"""What the handlers of routes ask: one typed value, which the server hands to its application when
it begins to answer."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request

from flinkpy.web.dispatcher_calls import DispatcherCalls
from flinkpy.web.inspector_calls import InspectorCalls
from flinkpy.web.metric_fetcher import MetricFetcher


@dataclass(frozen=True)
class RestServices:
    """Of one cluster, or of the archive of a job that has ended."""

    calls: DispatcherCalls
    metrics: MetricFetcher
    inspectors: InspectorCalls | None = None  # None: no process can be looked into
    options: Mapping[str, Any] = field(default_factory=dict)  # of the cluster
    reporters: frozenset[str] = frozenset()  # of metrics
    # the disposals of savepoints that were asked for here, by their trigger id
    disposals: OrderedDict[str, asyncio.Future[None]] = field(default_factory=OrderedDict)


def offer(app: Starlette, services: object) -> None:
    """The application's handlers ask these services from now on."""
    app.state.services = services


def services_of(request: Request) -> RestServices:
    """Those that a handler of a cluster's routes asks."""
    services: RestServices = request.app.state.services
    return services
