"""Gateway classes made from Protocols."""

from __future__ import annotations

import importlib
import inspect
from typing import Any, Protocol

import pytest

from flinkpy.actors import gateways
from flinkpy.actors.rpc.gateway_proxy import (
    Gateway,
    address_of,
    gateway_class,
    gateway_methods,
    make_gateway,
    mismatches,
)
from flinkpy.core.errors import EngineError
from flinkpy.core.futures import Future
from flinkpy.core.ids import FencingToken

from .sample import SampleGateway


class Recorder:
    """A line that keeps what it is given."""

    def __init__(self) -> None:
        self.address = "one/sample"
        self.token: FencingToken | None = FencingToken("term")
        self.sent: list[tuple[Any, ...]] = []

    def tell(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.sent.append(("tell", method, args, kwargs))

    def ask(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future[Any]:
        self.sent.append(("ask", method, args, kwargs))
        return Future.completed("answer")


class FamilyGateway(SampleGateway, Protocol):
    def late(self, *, after: int, where: str = "here") -> Future[int]: ...


def test_methods_that_return_none_are_tells_and_futures_asks() -> None:
    line = Recorder()
    gateway = make_gateway(SampleGateway, line)
    gateway.note("x")
    assert gateway.echo(1, twice=True).result() == "answer"
    assert line.sent == [("tell", "note", ("x",), {}), ("ask", "echo", (1,), {"twice": True})]


def test_defaults_and_keywords_are_those_of_the_protocol() -> None:
    line = Recorder()
    gateway = make_gateway(FamilyGateway, line)
    gateway.late(after=3)
    gateway.note(value="by name")
    assert line.sent == [
        ("ask", "late", (), {"after": 3, "where": "here"}),
        ("tell", "note", ("by name",), {}),
    ]
    with pytest.raises(TypeError, match="after"):
        gateway.late()  # type: ignore[call-arg]


def test_the_class_is_made_once_and_keeps_names_and_docstrings() -> None:
    made = gateway_class(SampleGateway)
    assert made is gateway_class(SampleGateway)
    assert made.__name__ == "SampleGateway"
    assert inspect.getdoc(made.note) == "Keeps the value."  # type: ignore[attr-defined]


def test_a_gateway_tells_its_address_and_nothing_else_has_one() -> None:
    gateway = make_gateway(SampleGateway, Recorder())
    assert address_of(gateway) == "one/sample"
    assert repr(gateway) == "<SampleGateway of one/sample>"
    with pytest.raises(EngineError, match="no gateway"):
        address_of("one/sample")


def test_a_method_that_returns_a_bare_value_is_refused() -> None:
    class BadGateway(Protocol):
        def size(self) -> int: ...

    with pytest.raises(
        EngineError,
        match=r"BadGateway.size returns int: .* None \(a tell\) or Future\[...\] \(an ask\)",
    ):
        gateway_methods(BadGateway)


def test_a_method_without_named_parameters_is_refused() -> None:
    class BadGateway(Protocol):
        def put(self, *values: int) -> None: ...

    with pytest.raises(EngineError, match=r"BadGateway.put takes \*values.*names every parameter"):
        gateway_class(BadGateway)


@pytest.mark.parametrize("name", [name for name in vars(gateways) if name.endswith("Gateway")])
def test_every_gateway_of_the_engine_can_be_made(name: str) -> None:
    protocol = vars(gateways)[name]
    assert issubclass(gateway_class(protocol), Gateway)
    assert set(gateway_methods(protocol)) == {
        member for member in vars(protocol) if not member.startswith("_")
    }


def test_an_endpoint_that_differs_from_its_gateway_is_told_where() -> None:
    class Half:
        gateway = FamilyGateway

        def note(self, thing: Any) -> None:
            """Another name."""

        def late(self, *, after: int, where: str = "here") -> Future[int]:
            return Future()

    found = mismatches(Half)
    assert "Half.note takes (thing), FamilyGateway.note (value)" in found
    assert "Half lacks FamilyGateway.echo" in found
    assert not [line for line in found if "Half.late" in line]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("dispatcher", "Dispatcher"),
        ("resource_manager.resource_manager", "ResourceManager"),
        ("job_master.job_master", "JobMaster"),
        ("task_executor.task_executor", "TaskExecutor"),
    ],
)
def test_every_endpoint_of_the_engine_carries_out_its_gateway(module: str, name: str) -> None:
    endpoint = getattr(importlib.import_module(f"flinkpy.actors.{module}"), name)
    assert mismatches(endpoint) == []
