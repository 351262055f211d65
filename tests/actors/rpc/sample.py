"""An endpoint with one of everything, for the contract tests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from flinkpy.actors.rpc.endpoint import FencedRpcEndpoint, RpcEndpoint
from flinkpy.actors.rpc.service import RpcService
from flinkpy.core.errors import ResourceUnavailableError
from flinkpy.core.futures import Future


class StubbornError(ResourceUnavailableError):
    """One of ours that does not unpickle."""

    def __init__(self, wanted: int, had: int) -> None:
        super().__init__(f"wanted {wanted}, had {had}")


class SampleGateway(Protocol):
    def note(self, value: Any) -> None:
        """Keeps the value."""
        ...

    def notes(self) -> Future[list[Any]]: ...

    def echo(self, value: Any, *, twice: bool = False) -> Future[Any]: ...

    def fail(self, kind: str) -> Future[None]: ...

    def fail_silently(self) -> None: ...

    def fail_silently_later(self) -> None: ...

    def never(self) -> Future[None]: ...

    def through(self, address: str, value: Any) -> Future[Any]: ...

    def hold(self) -> Future[str]: ...

    def release(self) -> None: ...

    def thread(self) -> Future[str]: ...


class OtherGateway(Protocol):
    def something(self) -> None: ...


class Sample(RpcEndpoint):
    gateway = SampleGateway

    def __init__(
        self,
        service: RpcService,
        name: str = "sample",
        on_stop: Callable[[], Future[None] | None] = lambda: None,
    ) -> None:
        self.seen: list[Any] = []
        self.held: Future[str] = Future()
        self.life: list[str] = []
        self._on_stop_action = on_stop
        super().__init__(service, name)

    def on_start(self) -> None:
        self.assert_main_thread()
        self.life.append("on_start")

    def on_stop(self) -> Future[None] | None:
        self.assert_main_thread()
        self.life.append("on_stop")
        return self._on_stop_action()

    def note(self, value: Any) -> None:
        self.assert_main_thread()
        self.seen.append(value)

    def notes(self) -> list[Any]:
        return list(self.seen)

    def echo(self, value: Any, *, twice: bool = False) -> Any:
        return (value, value) if twice else value

    def fail(self, kind: str) -> None:
        if kind == "ours":
            raise ResourceUnavailableError("no slots; raise slotmanager.number-of-slots.max")
        if kind == "stubborn":
            raise StubbornError(2, 1)
        raise ZeroDivisionError("in the deep")

    def fail_silently(self) -> None:
        raise KeyError("nobody waits for this")

    async def fail_silently_later(self) -> None:
        await self.held
        raise KeyError("nobody waits for this either")

    def never(self) -> Future[None]:
        return Future()

    async def through(self, address: str, value: Any) -> Any:
        gateway = await self.connect(address, SampleGateway)
        first = await gateway.echo(value)
        self.assert_main_thread()
        return [first, await gateway.echo(value)]

    async def hold(self) -> str:
        self.seen.append("holding")
        return await self.held

    def release(self) -> None:
        self.held.complete("released")

    def thread(self) -> str:
        return threading.current_thread().name


class FencedSample(FencedRpcEndpoint):
    gateway = SampleGateway

    def echo(self, value: Any, *, twice: bool = False) -> Any:
        return value
