"""Patterns with time-outs: baskets of a shop that are ordered, and those that are abandoned.

    python examples/abandoned_baskets.py

A basket is opened, and ordered within half an hour: that is a match. A basket that is not is a
partial match that times out, and the shop's reminder is made of it, at the moment its time is up: a
function that is a `TimedOutPartialMatchHandler`, too, gets it and writes into a side output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flinkpy.cep import MatchContext, Pattern, PatternProcessFunction, TimedOutPartialMatchHandler
from flinkpy.common import Duration, WatermarkStrategy
from flinkpy.datastream import DataStream, OutputTag, StreamExecutionEnvironment


class Click(NamedTuple):
    shopper: str
    action: str
    minute: int
    euros: int = 0


CLICKS = [
    Click("Ada", "opened", 0, 40),
    Click("Bob", "opened", 3, 15),
    Click("Ada", "looked", 5),
    Click("Ada", "ordered", 12, 40),
    Click("Cy", "opened", 20, 230),
    Click("Bob", "looked", 29),
    Click("Bob", "ordered", 41, 15),
    Click("Dee", "opened", 70, 60),
    Click("Dee", "ordered", 75, 60),
]

REMINDERS = OutputTag("reminders")

ORDERED = (
    Pattern.begin("opened")
    .where(lambda click: click.action == "opened")
    .followed_by("ordered")
    .where(lambda click: click.action == "ordered")
    .within(Duration.of_minutes(30))
)


class Baskets(PatternProcessFunction, TimedOutPartialMatchHandler):
    """How long an order took; and a reminder for each basket that was not ordered in time."""

    def process_match(self, match: dict[str, list[Click]], ctx: MatchContext) -> Iterator[str]:
        opened, ordered = match["opened"][0], match["ordered"][0]
        yield f"{opened.shopper} ordered after {ordered.minute - opened.minute} minutes"

    def process_timed_out_match(self, match: dict[str, list[Click]], ctx: MatchContext) -> None:
        opened, time = match["opened"][0], ctx.timestamp()
        assert time is not None
        reminder = f"minute {time // 60_000}: {opened.shopper} left {opened.euros} euros behind"
        ctx.output(REMINDERS, reminder)


def orders_of(clicks: DataStream) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda click, _: click.minute * 60_000
    )
    in_time = clicks.assign_timestamps_and_watermarks(strategy)
    return in_time.key_by(lambda click: click.shopper).match(ORDERED).process(Baskets())


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    orders = orders_of(env.from_collection(CLICKS))
    orders.print()
    orders.get_side_output(REMINDERS).print()
    env.execute("Abandoned baskets")
