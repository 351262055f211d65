"""A network of simulated processes that loses, delays, doubles and reorders messages, and can be
cut; and processes that crash.

    network = SimulatedNetwork(seed=7, faults=FaultPlan(drop=0.05))
    service = network.service("jm")  # one process; endpoints are built on it as on any service
    network.run_until(lambda: done, max_time_s=60)

Within a process no message is lost, and messages keep their order. Between two processes they take
time, keep their order unless the plan reorders them, and are subject to the plan's faults. All
randomness comes from the seed: the same seed gives the same run, down to ``trace_digest()``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from flinkpy.actors.rpc.base_service import OnFatal, Watch
from flinkpy.actors.rpc.delivery.envelope import Message, RpcAnswer
from flinkpy.actors.rpc.delivery.message_bytes import describe, pack, unpack
from flinkpy.actors.rpc.service import Cancellable, HostedEndpoint
from flinkpy.actors.rpc.simulated.network_port import ProcessNetwork, SimulatedProcess
from flinkpy.actors.rpc.simulated.simulated_service import SimulatedRpcService
from flinkpy.core.errors import EngineError, RecipientUnreachableError
from flinkpy.core.options.engine import RpcConfig


@dataclass(frozen=True)
class FaultPlan:
    """What the network does to messages between processes. Probabilities are per message, times in
    seconds of virtual time.

    The faults (all but the plain delay) end at ``until_s``, if it is set, so that a run can reach
    its end."""

    min_delay_s: float = 0.0002
    max_delay_s: float = 0.002
    drop: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0  # such a message may overtake others and be overtaken
    # such a message takes up to late_s; those behind it wait, unless it is reordered
    late: float = 0.0
    late_s: float = 5.0
    # How likely the watchers of a process are notified of its crash; otherwise they only notice its
    # silence
    crash_noticed: float = 1.0
    notice_delay_s: float = 0.05
    background_s: float = 0.01  # how long a function run in the background takes at most
    until_s: float | None = None

    @property
    def has_faults(self) -> bool:
        return bool(self.drop or self.duplicate or self.reorder or self.late)


@dataclass(frozen=True)
class NetworkStatistics:
    """Messages between processes."""

    sent: int
    delivered: int
    dropped: int
    duplicated: int
    cut: int  # lost in a partition


class SimulatedNetwork(ProcessNetwork):
    """The event queue with processes on it. With ``pickle_messages``, messages between processes
    are pickled, as on Ray; else passed by reference."""

    def __init__(
        self,
        seed: int = 0,
        faults: FaultPlan = FaultPlan(),
        *,
        config: RpcConfig = RpcConfig(),  # noqa: B008
        pickle_messages: bool = False,
        after_event: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(seed, after_event)
        self.faults = faults
        self.config = config
        self.pickle_messages = pickle_messages
        # Shared by all processes: an answer to a crashed one finds no ask of its successor
        self.request_ids = itertools.count(1)
        self._processes: dict[str, SimulatedRpcService] = {}
        self._silent: set[str] = set()  # crashed without notice
        self._cuts: set[tuple[str, str]] = set()
        self._last_arrival: dict[tuple[str, str], float] = {}
        self._sent = self._delivered = self._dropped = self._duplicated = self._lost_in_cut = 0

    # -- processes ---------------------------------------------------------------------------------

    def service(
        self, process: str, on_fatal: OnFatal | None = None, config: RpcConfig | None = None
    ) -> SimulatedRpcService:
        """Creates a process; the name of a crashed or stopped one may be used again."""
        if process in self._processes:
            raise EngineError(f"there is a process {process} already")
        self._silent.discard(process)
        service = self._processes[process] = SimulatedRpcService(
            self, process, config or self.config, on_fatal
        )
        return service

    @property
    def processes(self) -> tuple[str, ...]:
        return tuple(self._processes)

    def crash(self, process: str, noticed: bool | None = None) -> None:
        """Ends the process, with its endpoints, their mail and timers. Whether its watchers are
        notified depends on the plan, or on ``noticed``."""
        crashed = self._processes.pop(process, None)
        if crashed is None:
            raise EngineError(f"there is no process {process} to crash")
        crashed.vanish()
        if noticed is None:
            noticed = self.random.random() < self.faults.crash_noticed
        if noticed:
            tell = partial(self._tell_death, crashed, f"process {process} has crashed")
            self.schedule(self.faults.notice_delay_s, tell, f"{process} crash noticed")
        else:
            self._silent.add(process)

    def leave(self, process: SimulatedProcess) -> None:
        """The process has stopped normally."""
        if self._processes.get(process.process) is process:
            del self._processes[process.process]
        self._tell_death(process, f"process {process.process} has stopped")

    def watch(
        self, caller: HostedEndpoint, process: str, on_death: Callable[[str], object]
    ) -> Cancellable:
        watched = self._processes.get(process)
        watch = Watch(watched.watches if watched is not None else [], caller, on_death)
        if watched is None and process not in self._silent:
            watch.report(f"there is no process {process}")
        return watch

    def _tell_death(self, gone: SimulatedProcess, reason: str) -> None:
        for watch in list(gone.watches):
            if (gone.process, watch.caller.service.process) not in self._cuts:
                watch.report(reason)
        prefix = f"{gone.process}/"
        for service in list(self._processes.values()):
            if (
                gone.process not in self._processes
                and (gone.process, service.process) not in self._cuts
            ):
                service.asks.fail(
                    lambda ask: (
                        RecipientUnreachableError(f"{ask.method} at {ask.address}: {reason}")
                        if ask.address.startswith(prefix)
                        else None
                    )
                )

    # -- cuts --------------------------------------------------------------------------------------

    def partition(
        self, these: str | Iterable[str], those: str | Iterable[str], both_ways: bool = True
    ) -> None:
        """From now on no message gets from these processes to those (nor back)."""
        for one, other in itertools.product(_names(these), _names(those)):
            self._cuts.add((one, other))
            if both_ways:
                self._cuts.add((other, one))

    def heal(
        self, these: str | Iterable[str] | None = None, those: str | Iterable[str] | None = None
    ) -> None:
        """Ends the cuts between these and those, both ways; without arguments all cuts."""
        if these is None or those is None:
            self._cuts.clear()
            return
        for one, other in itertools.product(_names(these), _names(those)):
            self._cuts -= {(one, other), (other, one)}

    # -- messages ----------------------------------------------------------------------------------

    def send(self, source: SimulatedProcess, process: str, message: Message) -> None:
        """Sends the message; here it is decided what happens to it."""
        if not source.alive:  # it crashed in the middle of what it is doing
            return
        label = f"{source.process}>{process} {describe(message)}"
        target = self._processes.get(process)
        if target is source:
            self.schedule(0.0, partial(source.arrive, process, message), label, source)
            return
        self._sent += 1
        if self._cuts and (source.process, process) in self._cuts:
            self._lost_in_cut += 1
        elif target is None:
            self._bounce(source, process, message)
        else:
            self._travel(
                source, target, unpack(pack(message)) if self.pickle_messages else message, label
            )

    def _travel(
        self, source: SimulatedProcess, target: SimulatedProcess, message: Message, label: str
    ) -> None:
        plan, chance = self.faults, self.random.random
        delay = plan.min_delay_s + (plan.max_delay_s - plan.min_delay_s) * chance()
        in_order = True
        copies = 1
        if plan.has_faults and (plan.until_s is None or self.now < plan.until_s):
            if chance() < plan.drop:
                self._dropped += 1
                return
            if chance() < plan.duplicate:
                self._duplicated += 1
                copies = 2
            if chance() < plan.late:
                delay += plan.late_s * chance()
            if chance() < plan.reorder:
                in_order = False
                delay *= 4 * chance()
        pair = (source.process, target.process)
        arrival = self.now + delay
        for _ in range(copies):
            if in_order:
                arrival = self._last_arrival[pair] = max(arrival, self._last_arrival.get(pair, 0.0))
            self.schedule_at(
                arrival, partial(self._arrive, source.process, target, message), label, target
            )
            arrival += delay * chance()

    def _arrive(self, sender: str, target: SimulatedProcess, message: Message) -> None:
        if self._cuts and (sender, target.process) in self._cuts:
            self._lost_in_cut += 1
            return
        self._delivered += 1
        target.arrive(sender, message)

    def _bounce(self, source: SimulatedProcess, process: str, message: Message) -> None:
        """There is no such process: an ask fails after a moment, unless the process crashed without
        notice."""
        if process in self._silent or isinstance(message, RpcAnswer) or message.request_id is None:
            return
        error = RecipientUnreachableError(
            f"there is no process {process}: {describe(message)} not delivered"
        )
        fail = partial(source.asks.answer, message.request_id, None, error)
        self.schedule(
            self.faults.max_delay_s, fail, f"{process}>{source.process} nobody there", source
        )

    def background_delay(self) -> float:
        return self.faults.background_s * self.random.random()

    def statistics(self) -> NetworkStatistics:
        return NetworkStatistics(
            self._sent, self._delivered, self._dropped, self._duplicated, self._lost_in_cut
        )


def _names(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
