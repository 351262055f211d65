from __future__ import annotations

from examples import abandoned_baskets, machine_alarms, patterns
from flinkpy.datastream import StreamExecutionEnvironment


def test_a_small_payment_and_a_big_one_within_a_minute_raise_an_alarm() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    found = patterns.alarms_of(env.from_collection(patterns.PAYMENTS))
    both = found.union(found.get_side_output(patterns.CLEARED))
    assert sorted(both.execute_and_collect()) == [
        "card A: 0.50, then 980.00",
        "card B: 0.90, then 640.00",
        "card C: nothing until second 110",
    ]


def test_a_machine_that_gets_hotter_and_is_not_acknowledged_raises_an_alarm() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    found = machine_alarms.alarms_of(env.from_collection(machine_alarms.MESSAGES))
    assert list(found.execute_and_collect()) == ["press: 70.5 to 79.5 degrees, not acknowledged"]


def test_a_basket_that_is_not_ordered_in_time_gets_a_reminder() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    found = abandoned_baskets.orders_of(env.from_collection(abandoned_baskets.CLICKS))
    both = found.union(found.get_side_output(abandoned_baskets.REMINDERS))
    assert sorted(both.execute_and_collect()) == [
        "Ada ordered after 12 minutes",
        "Dee ordered after 5 minutes",
        "minute 33: Bob left 15 euros behind",
        "minute 50: Cy left 230 euros behind",
    ]
