from __future__ import annotations

from examples import patterns
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
