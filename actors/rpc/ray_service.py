"""The RpcService over Ray: each process is a named Ray actor that hosts endpoints, on threads as in
the local service.

A call to another process is one actor call (``RpcHost.deliver``) that carries the pickled request
and, for an ask, returns the pickled answer; calls within the process never leave it. Ray's event
loop only passes messages on: no endpoint's code runs there. The process part of an address is the
actor's name in the session's namespace. When an actor dies, its open calls fail and its watchers
are notified at once.

Ray keeps no order between calls to an actor that takes several at a time, and an actor that takes
one at a time cannot wait for answers. So every call has a number in its sender's stream, and the
receiver puts the calls in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, cast

import ray
from ray.exceptions import ActorUnavailableError, NodeDiedError, OutOfMemoryError, RayActorError

from flinkpy.actors.rpc.base_service import OnFatal, Reply, Watch
from flinkpy.actors.rpc.delivery.envelope import Request, RpcAnswer
from flinkpy.actors.rpc.delivery.message_bytes import make_answer, pack, unpack
from flinkpy.actors.rpc.delivery.sequencer import Sequencers
from flinkpy.actors.rpc.local_service import LocalRpcService
from flinkpy.actors.rpc.process_end import ANSWERS_S, ProcessEnd, ended_by, told_to_stop
from flinkpy.actors.rpc.ray_signals import on_termination
from flinkpy.actors.rpc.service import Cancellable, HostedEndpoint
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import RecipientUnreachableError, RpcError
from flinkpy.core.futures import Future
from flinkpy.core.ids import IdFactory
from flinkpy.core.options.engine import RpcConfig
from flinkpy.core.program import code
from flinkpy.core.secrets.engine_logs import engine_logger

log = engine_logger("flinkpy.rpc")

NAMESPACE = "flinkpy"
GAP_TIMEOUT_S = 1.0  # how long a missing call holds up later ones
REWATCH_S = 0.1
# What Ray raises for calls to a process that has ended. A process that Ray's memory monitor has
# killed, and one whose node has died, have errors of their own, which are no RayActorErrors.
_GONE = (RayActorError, OutOfMemoryError, NodeDiedError)
CONCURRENT_CALLS = 10_000  # open asks and watches that an actor takes at once; each costs a fiber


class RayRpcService(LocalRpcService):
    """Endpoints of this process, and calls to those of other actors. ``process`` must be the name
    of the Ray actor it runs in; on a driver (a client) it may be any name, and other processes
    cannot call back.

        service = RayRpcService(f"client-{ids.hex(8)}")
        connecting = service.connect(None, "jobmanager/dispatcher", DispatcherGateway, token)
        dispatcher = connecting.result(10)
    """

    def __init__(
        self,
        process: str,
        *,
        namespace: str = NAMESPACE,
        config: RpcConfig = RpcConfig(),  # noqa: B008
        ids: IdFactory | None = None,
        on_fatal: OnFatal | None = None,
        exit_process: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(SYSTEM_CLOCK, ids, config, process, on_fatal)
        self.namespace = namespace
        self._exit_process = exit_process
        self.handlers: dict[str, Callable[..., Any]] = {}
        self.end = ProcessEnd(process, self.refuse_all)
        # an address that Ray's dashboard shows beside the process, if the set-up has one
        self.page = ""
        self._peers: dict[str, RayPeer] = {}
        self._peers_lock = threading.Lock()

    def transmit(self, process: str, request: Request) -> None:
        if process == self.process:
            super().transmit(process, request)
        else:
            self.peer(process).send(request.request_id, pack(request))

    def watch(
        self, caller: HostedEndpoint, address: str, on_death: Callable[[str], object]
    ) -> Cancellable:
        process = address.rpartition("/")[0]
        if process == self.process:
            return super().watch(caller, address, on_death)
        return self.peer(process).watch(caller, on_death)

    def exit_process(self) -> None:
        """Stops the service and ends the actor it lives in; on a driver it only stops."""
        if self._exit_process is not None:
            self._exit_process()
        else:
            self.stop()

    def add_handler(self, name: str, function: Callable[..., Any]) -> None:
        """Adds a function that other users of this actor may call:
        ``actor.call_handler.remote(name, ...)``. It must return at once."""
        self.handlers[name] = function

    # -- peers -------------------------------------------------------------------------------------

    def peer(self, process: str) -> RayPeer:
        with self._peers_lock:
            peer = self._peers.get(process)
            fresh = peer is None
            if peer is None:
                peer = self._peers[process] = RayPeer(self, process)
        if fresh and not self._background.submit(peer.resolve):
            peer.lost(f"the rpc service {self.process} has stopped")
        return peer

    def forget_peer(self, peer: RayPeer) -> None:
        """Forgets the peer: the next message to that process looks its name up again."""
        with self._peers_lock:
            if self._peers.get(peer.process) is peer:
                del self._peers[peer.process]


class RayPeer:
    """Another process: its actor once it is found, the messages that wait until then, and its
    watchers."""

    def __init__(self, service: RayRpcService, process: str) -> None:
        self._service, self.process = service, process
        self._watches: list[Watch] = []
        self._stream, self._numbers = service.ids.hex(16), count()
        self._handle: Any = None
        self._ask: Any = None
        self._tell: Any = None
        self._waiting: list[tuple[int | None, bytes]] = []
        self._found = False  # once true, nothing waits any more
        self._watching = False
        self._life: str | None = None  # of the watched process
        self._lost: str | None = None  # why nothing can be sent any more
        self._is_out_of_reach = False
        self._lock = threading.Lock()

    def resolve(self) -> None:
        """Looks the actor up; this is slow, so it runs in the background."""
        try:
            _require_ray()
            handle = ray.get_actor(self.process, namespace=self._service.namespace)
        except RecipientUnreachableError as error:
            self.lost(f"process {self.process} cannot be reached: {error}")
            return
        except Exception as error:  # ValueError: no such actor; others: no cluster
            self.lost(
                f"there is no process {self.process} on Ray in namespace "
                f"{self._service.namespace} ({type(error).__name__})"
            )
            return
        self._handle = handle
        self._ask = handle.deliver
        self._tell = handle.deliver.options(num_returns=0)
        while not self._found:
            with self._lock:
                waiting, self._waiting = self._waiting, []
                self._found, watching = not waiting, self._watching
            # without the lock: an answer that is there at once may send the next message
            for request_id, data in waiting:
                self._post(request_id, data)
        if watching:
            self._await_termination()

    def send(self, request_id: int | None, data: bytes) -> None:
        """Sends the message. May be called in any thread; until the actor is found, messages wait
        in their order."""
        if not self._found:
            with self._lock:
                found, lost = self._found, self._lost
                if not found and lost is None:
                    self._waiting.append((request_id, data))
                    return
            if not found and lost is not None:
                self._fail(request_id, lost)
                return
        self._post(request_id, data)

    def _fail(self, request_id: int | None, reason: str) -> None:
        if request_id is not None:
            self._service.asks.answer(request_id, None, RecipientUnreachableError(reason))

    def _post(self, request_id: int | None, data: bytes) -> None:
        number = next(self._numbers)
        try:
            _require_ray()
            if request_id is None:
                self._tell.remote(self._stream, number, data)
            else:
                self._ask.remote(self._stream, number, data).future().add_done_callback(
                    partial(self._answered, request_id)
                )
        except Exception as error:  # Ray was shut down meanwhile
            if not self._is_out_of_reach:  # one line, not one for each heartbeat
                self._is_out_of_reach = True
                log.warning("no message reaches %s any more: %s", self.process, error)
            self._fail(request_id, f"process {self.process} cannot be reached: {error}")

    def _answered(self, request_id: int, done: Any) -> None:
        """Runs in one of Ray's threads: the call returned the answer, or failed."""
        asks = self._service.asks
        try:
            answer = unpack(done.result())
            assert isinstance(answer, RpcAnswer)
        except _GONE as error:
            asks.answer(
                request_id,
                None,
                RecipientUnreachableError(f"process {self.process} is gone: {_reason(error)}"),
            )
            self._service.forget_peer(self)  # a process started anew counts the messages from 0 on
        except Exception as error:  # an unknown class, or a cluster that is shutting down
            asks.answer(
                request_id,
                None,
                RpcError(
                    f"the answer of {self.process} cannot be read: {type(error).__name__}: {error}"
                ),
            )
        else:
            asks.answer(request_id, answer.value, answer.error)

    # -- death -------------------------------------------------------------------------------------

    def watch(self, caller: HostedEndpoint, on_death: Callable[[str], object]) -> Watch:
        """Watches the process; all watchers share one pending call."""
        with self._lock:
            watch = Watch(self._watches, caller, on_death)
            first, self._watching = not self._watching, True
            found, lost = self._found, self._lost
        if lost is not None:
            watch.report(lost)
        elif first and found:
            self._await_termination()
        return watch

    def _await_termination(self) -> None:
        """Ray may start a process anew under its name. That is another one, too."""
        self._handle.life.remote().future().add_done_callback(self._lives)

    def _lives(self, done: Any) -> None:
        if done.exception() is not None:
            self._terminated(done)
        elif self._life not in (None, done.result()):
            self.lost(f"process {self.process} died, and was started anew")
        else:
            self._life = done.result()
            self._handle.await_termination.remote().future().add_done_callback(self._terminated)

    def _terminated(self, done: Any) -> None:
        error = done.exception()
        # unreachable, perhaps for a moment: not known to be dead
        if isinstance(error, ActorUnavailableError):
            self._service.schedule(REWATCH_S, self._await_termination)
        else:
            self.lost(_end_of(self.process, error))

    def lost(self, reason: str) -> None:
        """The process does not exist, or has ended: fails the open calls to it, and notifies its
        watchers."""
        self._service.forget_peer(self)
        with self._lock:
            self._lost = reason
            waiting, self._waiting = self._waiting, []
            watches = list(self._watches)
        for request_id, _ in waiting:
            self._fail(request_id, reason)
        for watch in watches:
            watch.report(reason)


def _require_ray() -> None:
    """Raises RecipientUnreachableError where the program has shut Ray down. Ray's calls start
    another Ray then, in whichever thread they are made: a program would hang at its end."""
    if not ray.is_initialized():
        raise RecipientUnreachableError("Ray was shut down")


def _end_of(process: str, error: BaseException | None) -> str:
    return f"process {process} " + (
        f"died: {_reason(error)}" if error is not None else "has stopped"
    )


def _reason(error: BaseException) -> str:
    """Ray's reason in a line or two, without the actor's whole history."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(
        lines[:1]
        + [line for line in lines[1:] if line.startswith(("The actor is dead", "The actor died"))]
    )[:500]


# -- the actor -------------------------------------------------------------------------------------


class RpcHost:
    """The Ray actor: a RayRpcService, in which it runs ``setup(service)`` to build and start the
    endpoints. The name of its class is what Ray's dashboard and the machine's list of processes
    show (``ray::TaskExecutorProcess``)."""

    linger_s = 0.0  # between the end of the endpoints and that of the process

    def __init__(self, process: str, namespace: str, config: RpcConfig, setup: bytes) -> None:
        self._process = process
        self._streams: Sequencers[Callable[[], None]] = Sequencers()
        self._ended = asyncio.Event()
        self.service = RayRpcService(
            process, namespace=namespace, config=config, exit_process=self._stop_self
        )
        self._life = self.service.ids.hex(8)
        self._myself = ray.get_runtime_context().current_actor
        self.service.on_fatal = lambda address, error: self.service.end.begin(
            ended_by(address, error)
        )
        on_termination(lambda: self.service.end.begin(told_to_stop(process)))
        self._kept = code.loads(setup)(self.service)  # keeps alive whatever the set-up returns

    async def deliver(self, stream: str, number: int, data: bytes) -> bytes | None:
        """Takes a request of another process; returns the answer if it is an ask."""
        loop = asyncio.get_running_loop()
        try:
            request = cast(Request, unpack(data))
        except Exception as error:
            log.error("%s: a request cannot be read", self._process, exc_info=error)
            self._pass_on(loop, stream, number, lambda: None)
            return pack(
                make_answer(
                    0,
                    None,
                    RpcError(
                        f"{self._process} cannot read the request: {type(error).__name__}: {error}"
                    ),
                )
            )
        if request.request_id is None:
            self._pass_on(loop, stream, number, partial(self.service.receive, request, None))
            return None
        answer: asyncio.Future[bytes] = loop.create_future()
        self._pass_on(
            loop,
            stream,
            number,
            partial(self.service.receive, request, _reply_into(loop, answer, request.request_id)),
        )
        return await answer

    def _pass_on(
        self, loop: asyncio.AbstractEventLoop, stream: str, number: int, action: Callable[[], None]
    ) -> None:
        sequencer = self._streams[stream]
        for ready in sequencer.accept(number, action):
            ready()
        if sequencer.has_gap:
            loop.call_later(GAP_TIMEOUT_S, self._give_up, stream, sequencer.expected)

    def _give_up(self, stream: str, missing: int) -> None:
        sequencer = self._streams[stream]
        if sequencer.has_gap and sequencer.expected == missing:
            for ready in sequencer.give_up_gap():
                ready()

    async def call_handler(self, name: str, *arguments: Any) -> Any:
        """Calls a handler that was added to the service. As usual in Ray, the result belongs to the
        caller and outlives this process."""
        return self.service.handlers[name](*arguments)

    async def life(self) -> str:
        """Tells this process from others that Ray starts under its name."""
        return self._life

    async def await_termination(self) -> str:
        """Returns when the process stops, and fails when it dies: no other notice comes faster."""
        await self._ended.wait()
        return "stopped"

    async def ready(self) -> str:
        """Returns once the set-up is done."""
        return self._process

    async def stop(self) -> None:
        """Stops the endpoints, then ends the process."""
        if self.service.end.has_begun:
            return
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        self.service.stop().then(lambda _: loop.call_soon_threadsafe(stopped.set))
        await stopped.wait()
        self._ended.set()
        await asyncio.sleep(self.linger_s)  # Ray drops answers that have not left the process yet
        ray.actor.exit_actor()

    def _stop_self(self) -> None:
        self._myself.stop.remote()


def _reply_into(
    loop: asyncio.AbstractEventLoop, answer: asyncio.Future[bytes], request_id: int
) -> Reply:
    """Endpoints answer in their own threads: the answer is pickled there, and set in the loop's
    thread."""

    def set_result(data: bytes) -> None:
        if not answer.done():
            answer.set_result(data)

    def reply(value: Any, error: BaseException | None) -> None:
        loop.call_soon_threadsafe(set_result, pack(make_answer(request_id, value, error)))

    return reply


class JobManagerProcess(RpcHost):
    """The process of a Dispatcher, a ResourceManager and their JobMasters."""

    linger_s = ANSWERS_S  # clients that wait for jobs must hear how these have ended

    def __repr__(self) -> str:
        """What Ray's dashboard shows in its table of actors. Ray asks once, when the set-up is
        done."""
        return (
            f"JobManagerProcess({self.service.page})" if self.service.page else "JobManagerProcess"
        )


class TaskExecutorProcess(RpcHost):
    """The process of a TaskExecutor."""


class RayHost:
    """A handle to a host actor."""

    def __init__(self, process: str, actor: Any) -> None:
        self.process, self._actor = process, actor

    def ready(self) -> Future[None]:
        """Completes when the actor runs and its set-up is done. Fails with
        RecipientUnreachableError when it could not start."""
        return _future_of(self._actor.ready.remote(), f"process {self.process} did not start")

    def watch(self, service: RayRpcService, on_end: Callable[[str], None]) -> None:
        """Calls ``on_end(reason)``, in any thread, when the process has stopped or died."""

        def ended(done: Any) -> None:
            error = done.exception()
            if isinstance(error, ActorUnavailableError):  # as in RayPeer
                service.schedule(REWATCH_S, lambda: self.watch(service, on_end))
            else:
                on_end(_end_of(self.process, error))

        self._actor.await_termination.remote().future().add_done_callback(ended)

    def stop(self) -> Future[None]:
        """Stops the endpoints and ends the process. Completes when it has ended."""
        return _future_of(
            self._actor.stop.remote(), f"process {self.process} did not stop", death_is_fine=True
        )

    def kill(self) -> None:
        """Ends the process at once. Raises RecipientUnreachableError where Ray was shut down."""
        _require_ray()
        ray.kill(self._actor)

    def __repr__(self) -> str:
        return f"<RayHost {self.process}>"


def start_host(
    process: str,
    setup: bytes | Callable[[RayRpcService], Any],
    *,
    namespace: str = NAMESPACE,
    config: RpcConfig = RpcConfig(),  # noqa: B008
    options: Mapping[str, Any] | None = None,
    kind: type[RpcHost] = RpcHost,
) -> RayHost:
    """Creates the actor named ``process``, of this ``kind``, and has it run ``setup(service)``.
    Does not wait: see :meth:`RayHost.ready`.

    ``options`` are Ray's actor options (``num_cpus``, ``resources``, ``lifetime="detached"``,
    ``get_if_exists=True``, ``runtime_env``, ``max_restarts``). ``setup`` as bytes comes from
    ``flinkpy.core.program.code.dumps``. It must return soon: slow work belongs into the endpoints'
    ``on_start``."""
    data = setup if isinstance(setup, bytes) else code.dumps(setup, f"the set-up of {process}")
    actor_class = ray.remote(max_restarts=0, max_task_retries=0, max_concurrency=CONCURRENT_CALLS)(
        kind
    )
    actor = actor_class.options(name=process, namespace=namespace, **(options or {})).remote(
        process, namespace, config, data
    )
    return RayHost(process, actor)


class _Placeholder:
    """An actor that is killed before it exists: only its process is needed."""


def start_process_ahead() -> None:
    """Has Ray start a worker process, which takes half a second, before the next actor of this
    program needs one. Ray keeps the process of a killed actor.

    This is only a hint: if Ray places the next actor on another node, or has a process for it, the
    call changes nothing."""
    ray.kill(ray.remote(num_cpus=0)(_Placeholder).remote())


def find_host(process: str, namespace: str = NAMESPACE) -> RayHost | None:
    """Returns the running host of that name, or None. Where Ray was shut down there is none."""
    try:
        _require_ray()
        return RayHost(process, ray.get_actor(process, namespace=namespace))
    except (ValueError, RecipientUnreachableError):
        return None


def living_hosts(namespace: str = NAMESPACE) -> list[str]:
    """The names of all hosts there are."""
    return [
        actor["name"]
        for actor in ray.util.list_named_actors(all_namespaces=True)
        if actor["namespace"] == namespace
    ]


def _future_of(ref: Any, what: str, death_is_fine: bool = False) -> Future[None]:
    future: Future[None] = Future()

    def done(result: Any) -> None:
        error = result.exception()
        if error is None or (death_is_fine and isinstance(error, _GONE)):
            future.complete(None)
        else:
            future.fail(RecipientUnreachableError(f"{what}: {error}"))

    ref.future().add_done_callback(done)
    return future
