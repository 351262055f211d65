"""The courier's promise: each message once and in order, whatever the network does with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from flinkpy.actors.rpc.delivery.courier import Courier, EventOutbox, EventReceiver, NumberedEvents
from flinkpy.core.futures import Future

Action = Callable[[], object]
RECEIVERS = ("one", "other", "third")


class Timer:
    def cancel(self) -> None:
        """Nothing here cancels one."""


@dataclass
class Message:
    """A call, an answer, or a timer, which is never lost or doubled."""

    arrive: Action
    lose: Action | None = None


Batch = tuple[NumberedEvents[str, int], ...]


class Road:
    """Between one sender and its receivers. Messages lie in ``under_way`` until ``draw`` picks one;
    it arrives, arrives and stays to arrive again later, or is lost: then the sender's call fails, as
    after a timeout."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw
        self.heard: dict[str, list[int]] = {name: [] for name in RECEIVERS}
        self.under_way: list[Message] = []
        self._receivers = {name: EventReceiver[int]() for name in RECEIVERS}
        self._outbox = EventOutbox[str, int]()
        self._courier: Courier[Batch, None] = Courier(self, 1.0, self)

    def say(self, receiver: str, number: int) -> None:
        self._outbox.add(receiver, number)
        self._courier.kick()

    def schedule(self, delay_s: float, action: Callable[[], object]) -> Timer:
        self.under_way.append(Message(action))
        return Timer()

    # -- what the courier carries ------------------------------------------------------------------

    def due(self) -> Batch | None:
        return self._outbox.waiting() or None

    def send(self, batch: Batch) -> Future[None]:
        answer: Future[None] = Future()

        def lose() -> None:
            answer.fail(TimeoutError())

        def answered() -> None:
            answer.complete(None)

        def arrive() -> None:
            for each in batch:
                receiver = self._receivers[each.receiver]
                self.heard[each.receiver] += receiver.fresh(each.first, each.events)
            self.under_way.append(Message(answered, lose))

        self.under_way.append(Message(arrive, lose))
        return answer

    def answered(self, batch: Batch, answer: None) -> None:
        self._outbox.arrived(batch)

    def failed(self, error: BaseException) -> None:
        """It is repeated."""

    # -- the network -------------------------------------------------------------------------------

    def step(self) -> None:
        message = self.under_way.pop(self._draw(len(self.under_way)))
        fate = self._draw(4) if message.lose is not None else 0
        if fate == 1 and message.lose is not None:
            message.lose()
            return
        if fate == 2:
            self.under_way.append(message)
        message.arrive()


@given(st.integers(0, 30), st.data())
def test_every_message_arrives_once_and_in_order_over_a_network_that_loses_doubles_and_reorders(
    count: int, data: st.DataObject
) -> None:
    random = data.draw(st.randoms(use_true_random=False))
    road = Road(random.randrange)
    said: dict[str, list[int]] = {name: [] for name in RECEIVERS}
    for number in range(count):
        name = RECEIVERS[random.randrange(len(RECEIVERS))]
        said[name].append(number)
        road.say(name, number)
        for _ in range(random.randrange(4)):
            if road.under_way:
                road.step()
    for _ in range(100 * (count + 10)):
        if not road.under_way:
            break
        road.step()
    assert road.heard == said
    assert not road.under_way
