"""Patterns: a card that is tried with a small amount, and used for a big one soon after.

    python examples/patterns.py

A pattern is looked for in the payments of each card, in the order of their time. What comes between
a small payment and the next big one does not matter (`followed_by`), but both lie within a minute.
A small payment that is not followed by a big one in that time is no fraud: it comes out of a side
output, when its time is up."""

from __future__ import annotations

from typing import NamedTuple

from flinkpy.cep import AfterMatchSkipStrategy, Pattern
from flinkpy.common import Duration, WatermarkStrategy
from flinkpy.datastream import DataStream, OutputTag, StreamExecutionEnvironment


class Payment(NamedTuple):
    card: str
    amount: float
    second: int


PAYMENTS = [
    Payment("A", 0.50, 0),
    Payment("B", 20.00, 5),
    Payment("A", 35.00, 10),
    Payment("A", 980.00, 30),
    Payment("B", 0.90, 40),
    Payment("C", 0.10, 50),
    Payment("C", 700.00, 120),
    Payment("B", 640.00, 95),
]

CLEARED = OutputTag("cleared")

SMALL_THEN_BIG = (
    Pattern.begin("small", AfterMatchSkipStrategy.skip_past_last_event())
    .where(lambda payment: payment.amount < 1)
    .followed_by("big")
    .where(lambda payment: payment.amount > 500)
    .within(Duration.of_minutes(1))
)


def alarm(match: dict[str, list[Payment]]) -> str:
    small, big = match["small"][0], match["big"][0]
    return f"card {small.card}: {small.amount:.2f}, then {big.amount:.2f}"


def cleared(match: dict[str, list[Payment]], time: int) -> str:
    return f"card {match['small'][0].card}: nothing until second {time // 1000}"


def alarms_of(payments: DataStream) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_seconds(60)
    ).with_timestamp_assigner(lambda payment, _: payment.second * 1000)
    in_time = payments.assign_timestamps_and_watermarks(strategy)
    return (
        in_time.key_by(lambda payment: payment.card)
        .match(SMALL_THEN_BIG)
        .select(alarm, timeout_tag=CLEARED, timeout_function=cleared)
    )


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    alarms = alarms_of(env.from_collection(PAYMENTS))
    alarms.print()
    alarms.get_side_output(CLEARED).print()
    env.execute("Small, then big")
