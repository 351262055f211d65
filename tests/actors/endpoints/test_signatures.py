"""Each gateway and its endpoint say the same: names, parameters, and whether there is an answer."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from flinkpy.actors.dispatcher import Dispatcher
from flinkpy.actors.inspector.process_inspector import ProcessInspector
from flinkpy.actors.job_master.job_master import JobMaster
from flinkpy.actors.resource_manager.resource_manager import ResourceManager
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.gateway_proxy import gateway_methods
from flinkpy.actors.task_executor.task_executor import TaskExecutor

ENDPOINTS: list[type[RpcEndpoint]] = [
    Dispatcher,
    ResourceManager,
    JobMaster,
    TaskExecutor,
    ProcessInspector,
]
METHODS = [
    pytest.param(endpoint, name, id=f"{endpoint.__name__}.{name}")
    for endpoint in ENDPOINTS
    for name in gateway_methods(endpoint.gateway)
]


def answer_of(annotation: Any) -> str:
    """What arrives at the caller in the end: ``Future[X]`` and ``X`` are the same to him."""
    text = str(annotation)
    return text[len("Future[") : -1] if text.startswith("Future[") else text


@pytest.mark.parametrize(("endpoint", "name"), METHODS)
def test_the_endpoint_has_the_gateways_method_with_the_same_parameters(
    endpoint: type[RpcEndpoint], name: str
) -> None:
    promised = inspect.signature(getattr(endpoint.gateway, name))
    kept = inspect.signature(getattr(endpoint, name))
    assert [
        (each.name, str(each.annotation), each.default) for each in promised.parameters.values()
    ] == [(each.name, str(each.annotation), each.default) for each in kept.parameters.values()]


@pytest.mark.parametrize(("endpoint", "name"), METHODS)
def test_the_endpoint_gives_the_answer_the_gateway_promises(
    endpoint: type[RpcEndpoint], name: str
) -> None:
    promised = inspect.signature(getattr(endpoint.gateway, name))
    kept = inspect.signature(getattr(endpoint, name))
    assert answer_of(kept.return_annotation) == answer_of(promised.return_annotation)
