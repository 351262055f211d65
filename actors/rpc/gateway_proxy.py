"""The typed proxy: a gateway class made from a Protocol.

A Protocol method that returns None is a tell, one that returns a Future is an ask. The generated
methods have the Protocol's own parameters, so a wrong call raises TypeError in the caller, and is
never sent."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, Generic, Protocol, TypeVar, cast, get_origin

from flinkpy.core.errors import EngineError
from flinkpy.core.futures import Future
from flinkpy.core.ids import FencingToken

G = TypeVar("G")


class Line(Protocol):
    """What a gateway sends its calls over: one caller, one endpoint, one fencing token."""

    address: str
    token: FencingToken | None

    def tell(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...

    def ask(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future[Any]: ...


class Gateway:
    """The base of all generated gateways: it knows where its calls go."""

    __slots__ = ("_ask", "_line", "_tell")

    def __init__(self, line: Line) -> None:
        self._line = line
        self._ask, self._tell = line.ask, line.tell

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._line.address}>"


def make_gateway(protocol: type[G], line: Line) -> G:
    """Returns a gateway of that protocol over that line."""
    return cast(G, gateway_class(protocol)(line))


def address_of(gateway: object) -> str:
    """Returns the address that a gateway's calls go to."""
    if not isinstance(gateway, Gateway):
        raise EngineError(f"{gateway!r} is no gateway made by an RpcService")
    return gateway._line.address


_METHODS: dict[type[Any], dict[str, bool]] = {}
_CLASSES: dict[type[Any], type[Gateway]] = {}


def gateway_methods(protocol: type[Any]) -> dict[str, bool]:
    """Returns the method names of a gateway protocol; True if the method is an ask.

    Raises EngineError for a method that returns neither None nor a Future.
    """
    found = _METHODS.get(protocol)
    if found is None:
        found = _METHODS[protocol] = {
            name: _is_ask(protocol, member)
            for owner in reversed(protocol.__mro__)
            if owner not in (object, Protocol, Generic)
            for name, member in vars(owner).items()
            if isinstance(member, FunctionType) and not name.startswith("_")
        }
    return found


def gateway_class(protocol: type[Any]) -> type[Gateway]:
    """Returns the class of a protocol's gateways, made at the first call."""
    made = _CLASSES.get(protocol)
    if made is None:
        methods = {
            name: _forwarder(protocol, name, asks)
            for name, asks in gateway_methods(protocol).items()
        }
        body = {
            "__slots__": (),
            "__module__": protocol.__module__,
            "__doc__": protocol.__doc__,
            **methods,
        }
        made = _CLASSES[protocol] = type(protocol.__name__, (Gateway,), body)
    return made


def mismatches(endpoint: type[Any]) -> list[str]:
    """Returns where an endpoint class does not match its ``gateway``: methods that it lacks, and
    parameters that differ. Empty if it matches."""
    protocol = endpoint.gateway
    found = []
    for name in gateway_methods(protocol):
        method = getattr(endpoint, name, None)
        if method is None:
            found.append(f"{endpoint.__name__} lacks {protocol.__name__}.{name}")
            continue
        declared, given = (_parameters(function) for function in (getattr(protocol, name), method))
        if declared != given:
            found.append(
                f"{endpoint.__name__}.{name} takes ({', '.join(given)}), "
                f"{protocol.__name__}.{name} ({', '.join(declared)})"
            )
    return found


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Names, kinds and defaults; mypy checks the types."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return [str(parameter.replace(annotation=parameter.empty)) for parameter in parameters]


def _is_ask(protocol: type[Any], method: FunctionType) -> bool:
    """Looks at the annotation's text if it is text, since a gateway may name types that are
    imported for type checkers only."""
    returns: Any = method.__annotations__.get("return", "nothing")
    if returns in (None, "None", type(None)):
        return False
    if (isinstance(returns, str) and returns.startswith("Future[")) or get_origin(
        returns
    ) is Future:
        return True
    raise EngineError(
        f"{protocol.__name__}.{method.__name__} returns {returns}: a gateway method returns "
        "None (a tell) or Future[...] (an ask)"
    )


def _forwarder(protocol: type[Any], name: str, asks: bool) -> Callable[..., Any]:
    """Generates a function that has the method's parameters and passes them on. Binding a signature
    at every call would cost more than the call."""
    declared, passed, named, values = ["self"], [], [], {}
    keyword_only_seen = False
    for parameter in list(inspect.signature(getattr(protocol, name)).parameters.values())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise EngineError(
                f"{protocol.__name__}.{name} takes {parameter}: a gateway method names every "
                "parameter"
            )
        if parameter.kind is parameter.KEYWORD_ONLY:
            if not keyword_only_seen:
                declared.append("*")
            keyword_only_seen = True
            named.append(f"{parameter.name!r}: {parameter.name}")
        else:
            passed.append(f"{parameter.name}, ")
        if parameter.default is not parameter.empty:
            values[f"_default_{parameter.name}"] = parameter.default
            declared.append(f"{parameter.name}=_default_{parameter.name}")
        else:
            declared.append(parameter.name)
    target = "return self._ask" if asks else "self._tell"
    exec(
        (
            f"def {name}({', '.join(declared)}):\n    {target}({name!r}, ({''.join(passed)}), "
            f"{{{', '.join(named)}}})"
        ),
        values,
    )
    function = cast(Callable[..., Any], values[name])
    function.__doc__ = getattr(protocol, name).__doc__
    function.__qualname__ = f"{protocol.__name__}.{name}"
    return function
