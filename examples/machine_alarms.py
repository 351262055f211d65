"""Patterns: a machine gets hotter and hotter, and nobody acknowledges it in time.

    python examples/machine_alarms.py

Three readings of a machine rise in a row: each is compared with the one that the partial match took
before (an *iterative* condition). If the operator does not acknowledge within ten minutes of the
first of them, there is an alarm, at that moment. What must not come stands at the end of the
pattern (`not_followed_by`), so a match is complete when its time is up."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flinkpy.cep import AfterMatchSkipStrategy, ConditionContext, Pattern
from flinkpy.common import Duration, WatermarkStrategy
from flinkpy.datastream import DataStream, StreamExecutionEnvironment


class Message(NamedTuple):
    machine: str
    minute: int
    degrees: float = 0.0
    acknowledged: bool = False


MESSAGES = [
    Message("press", 0, 70.5),
    Message("press", 1, 74.0),
    Message("saw", 1, 41.0),
    Message("press", 2, 79.5),
    Message("saw", 2, 48.5),
    Message("saw", 3, 55.0),
    Message("press", 4, 79.0),
    Message("saw", 6, acknowledged=True),
    Message("drill", 8, 60.0),
    Message("drill", 9, 66.0),
    Message("drill", 12, 64.0),
    Message("press", 15, 71.0),
]


def hotter_than(name: str) -> Callable[[Message, ConditionContext], bool]:
    """The condition that a reading is above that of an earlier step."""

    def is_hotter(message: Message, ctx: ConditionContext) -> bool:
        [before] = ctx.get_events_for_pattern(name)
        return not message.acknowledged and message.degrees > before.degrees

    return is_hotter


NOT_ACKNOWLEDGED = (
    Pattern.begin("first", AfterMatchSkipStrategy.skip_past_last_event())
    .where(lambda message: not message.acknowledged)
    .next("second")
    .where(hotter_than("first"))
    .next("third")
    .where(hotter_than("second"))
    .not_followed_by("acknowledgement")
    .where(lambda message: message.acknowledged)
    .within(Duration.of_minutes(10))
)


def alarm(match: dict[str, list[Message]]) -> str:
    first, third = match["first"][0], match["third"][0]
    return f"{first.machine}: {first.degrees} to {third.degrees} degrees, not acknowledged"


def alarms_of(messages: DataStream) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda message, _: message.minute * 60_000
    )
    in_time = messages.assign_timestamps_and_watermarks(strategy)
    return in_time.key_by(lambda message: message.machine).match(NOT_ACKNOWLEDGED).select(alarm)


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    alarms_of(env.from_collection(MESSAGES)).print()
    env.execute("Machines that nobody looks after")
