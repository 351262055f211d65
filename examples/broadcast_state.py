"""Broadcast state: checks payments against limits that change while the program runs.

    python examples/broadcast_state.py

Each payment goes to one subtask, by account; each limit goes to all subtasks, which keep it in
broadcast state. The order between the two streams is undefined, so a payment whose country has no
limit yet waits in its account's state, and the limit, when it comes, checks all waiting payments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flinkpy.common import Types
from flinkpy.datastream import (
    DataStream,
    KeyedBroadcastProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.state import ListStateDescriptor, MapStateDescriptor

PAYMENTS = [
    ("ann", "at", 40),
    ("bob", "be", 900),
    ("ann", "be", 70),
    ("cem", "at", 120),
    ("bob", "at", 10),
    ("cem", "be", 500),
]
LIMITS = [("at", 100), ("be", 450)]

RULES = MapStateDescriptor("limit per country", Types.STRING(), Types.INT())
PAYMENT = Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT()])
WAITING = ListStateDescriptor("payments without a limit yet", PAYMENT)


class Check(KeyedBroadcastProcessFunction):
    """(account, country, amount), and (country, limit): emits the payments over the limit."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_list_state(WAITING)

    def process_element(self, value: tuple[str, str, int], ctx: Any) -> Iterator[Any]:
        limit = ctx.get_broadcast_state(RULES).get(value[1])
        if limit is None:
            self.waiting.add(value)
        elif value[2] > limit:
            yield value

    def process_broadcast_element(self, value: tuple[str, int], ctx: Any) -> Iterator[Any]:
        country, limit = value
        ctx.get_broadcast_state(RULES).put(country, limit)
        found: list[Any] = []

        def look_again(account: str, waiting: Any) -> None:
            payments = waiting.get()
            found.extend(
                payment for payment in payments if payment[1] == country and payment[2] > limit
            )
            waiting.update([payment for payment in payments if payment[1] != country])

        ctx.apply_to_keyed_state(WAITING, look_again)
        yield from found


def over_the_limit(env: StreamExecutionEnvironment) -> DataStream:
    limits = env.from_collection(LIMITS, Types.TUPLE([Types.STRING(), Types.INT()])).broadcast(
        RULES
    )
    payments = env.from_collection(PAYMENTS, PAYMENT)
    return payments.key_by(lambda payment: payment[0]).connect(limits).process(Check(), PAYMENT)


if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    over_the_limit(environment).print()
    environment.execute("payments over the limit")
