"""What travels between endpoints: calls, their answers, the handshake that opens a connection, and
the control messages.

They are tuples, not dataclasses: a simulated cluster makes hundreds of thousands of them.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from flinkpy.core.ids import FencingToken

PROTOCOL_VERSION = 1


class Control(Enum):
    """What a service commands an endpoint that it hosts; each is one transition in the endpoint's
    lifecycle."""

    START = "START"
    STOP = "STOP"
    TERMINATE = "TERMINATE"


class RpcInvocation(NamedTuple):
    """A method call. ``request_id`` is None for a tell: it is not answered."""

    endpoint: str
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    token: FencingToken | None = None
    request_id: int | None = None


class RpcAnswer(NamedTuple):
    """The value or the error of one ask. The traceback travels beside the error, because pickling
    may drop the error's extra attributes."""

    request_id: int
    value: Any = None
    error: BaseException | None = None
    remote_traceback: str = ""


class Handshake(NamedTuple):
    """Opens a connection: refused unless version and gateway agree on both sides."""

    endpoint: str
    gateway: str
    version: int = PROTOCOL_VERSION
    request_id: int = 0
    sender: str = ""


Request: TypeAlias = RpcInvocation | Handshake
Message: TypeAlias = RpcInvocation | RpcAnswer | Handshake
