"""RetryingRegistration: connects to a leader and registers there, repeatedly, until it accepts or
refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.service import Cancellable
from flinkpy.core.errors import RpcError
from flinkpy.core.futures import Future
from flinkpy.core.ids import FencingToken, InstanceId, ResourceId
from flinkpy.core.options.engine import RpcConfig
from flinkpy.core.secrets.engine_logs import engine_logger

G = TypeVar("G")
G_contra = TypeVar("G_contra", contravariant=True)

log = engine_logger("flinkpy.rpc")


@dataclass(frozen=True)
class RegistrationResponse:
    """The answer to a registration: accepted, perhaps under an instance id, or refused for a
    reason; a refusal is final."""

    accepted: bool
    resource_id: ResourceId  # of the endpoint that answers
    instance_id: InstanceId | None = None
    reason: str = ""


class Registrant(Protocol[G_contra]):
    """An endpoint's part that registers somewhere; called in the endpoint's main thread."""

    def register(self, gateway: G_contra) -> Future[RegistrationResponse]:
        """Sends the registration."""
        ...

    def registered(self, gateway: G_contra, response: RegistrationResponse) -> None:
        """The leader has accepted."""
        ...

    def refused(self, response: RegistrationResponse) -> None:
        """The leader has refused: the registration does not try again."""
        ...


class RetryingRegistration(Generic[G]):
    """One registration of an endpoint with one leader (an address and its token). Everything runs
    in the endpoint's main thread.

    Any RpcError (nobody there, no answer, stale token) is retried after a pause that doubles from
    ``registration_initial`` to ``registration_max``; a refusal is final. Any other error is a bug
    of the registrant, and escapes."""

    def __init__(
        self,
        endpoint: RpcEndpoint,
        address: str,
        gateway: type[G],
        token: FencingToken | None,
        registrant: Registrant[G],
        config: RpcConfig,
    ) -> None:
        self._endpoint = endpoint
        self.address = address
        self._gateway = gateway
        self._token = token
        self._registrant = registrant
        self._pause_s = config.registration_initial.total_seconds()
        self._max_pause_s = config.registration_max.total_seconds()
        self._timer: Cancellable | None = None
        self.attempts = 0
        self.closed = False

    def start(self) -> None:
        self._endpoint.assert_main_thread()
        self._attempt()

    def close(self) -> None:
        """Makes no more attempts and ignores late answers."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _attempt(self) -> None:
        if self.closed:
            return
        self.attempts += 1
        self._endpoint.connect(self.address, self._gateway, self._token).add_done_callback(
            self._connected
        )

    def _connected(self, connection: Future[G]) -> None:
        if self.closed:
            return
        if connection.error is not None:
            self._retry(connection.error)
            return
        gateway = connection.result()
        self._registrant.register(gateway).add_done_callback(
            lambda answer: self._answered(gateway, answer)
        )

    def _answered(self, gateway: G, answer: Future[RegistrationResponse]) -> None:
        if self.closed:
            return
        if answer.error is not None:
            self._retry(answer.error)
            return
        self.closed = True
        response = answer.result()
        if response.accepted:
            self._registrant.registered(gateway, response)
        else:
            self._registrant.refused(response)

    def _retry(self, error: BaseException) -> None:
        if not isinstance(error, RpcError):
            self.closed = True
            raise error
        log.info("%r failed, again in %g s: %s", self, self._pause_s, error)
        self._timer = self._endpoint.schedule_run_async(self._pause_s, self._attempt)
        self._pause_s = min(2 * self._pause_s, self._max_pause_s)

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return (
            f"<RetryingRegistration of {self._endpoint.address} at {self.address}: {state}, "
            f"attempt {self.attempts}>"
        )
