"""Flink's v1 routes, a file for each thing they tell of. Each is served with and without ``/v1`` in
front. And the page that asks them."""

from __future__ import annotations

from starlette.routing import Mount, Router

from flinkpy.web.routes import (
    accumulator_routes,
    application_routes,
    checkpoint_routes,
    cluster_routes,
    disposal_routes,
    job_routes,
    metric_routes,
    process_routes,
    savepoint_routes,
    vertex_routes,
)

V1 = [
    *metric_routes.ROUTES,  # before those of jobs: /jobs/metrics is no job
    *cluster_routes.ROUTES,
    *job_routes.ROUTES,
    *checkpoint_routes.ROUTES,
    *savepoint_routes.ROUTES,
    *disposal_routes.ROUTES,
    *vertex_routes.ROUTES,
    *accumulator_routes.ROUTES,
    *application_routes.ROUTES,
    *process_routes.ROUTES,
]
_ALL = [*V1, *job_routes.CHANGING_BY_GET]
ROUTES = [
    Mount("/v1", Router(_ALL, redirect_slashes=False)),
    *_ALL,
    *metric_routes.PROMETHEUS_ROUTES,
]
