"""Two joins of orders and payments: within the same ten minutes, and within ten minutes after the
order.

    python examples/joins.py

A window join uses windows of the clock: an order of 11:58 and its payment of 12:01 are in different
windows and are not joined. An interval join looks at the distance of two records instead. For outer
joins use a co-group: it sees all records of a key and window, also if one side has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flinkpy.common import Duration, Time, Types, WatermarkStrategy
from flinkpy.datastream import DataStream, ProcessJoinFunction, StreamExecutionEnvironment
from flinkpy.datastream.window import TumblingEventTimeWindows

# (order, minute, article)
ORDERS = [(1, 2, "tea"), (2, 9, "oats"), (3, 12, "rice"), (4, 18, "salt")]
PAYMENTS = [(1, 5, 300), (2, 11, 250), (3, 19, 420), (4, 29, 90)]  # (order, minute, cents)
TEN_MINUTES = TumblingEventTimeWindows.of(Time.minutes(10))


def by_time(env: StreamExecutionEnvironment, records: list[Any], of_type: Any) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_minutes(1)
    ).with_timestamp_assigner(lambda record: record[1] * 60_000)
    return env.from_collection(
        records, Types.TUPLE([Types.INT(), Types.INT(), of_type])
    ).assign_timestamps_and_watermarks(strategy)


def in_one_window(orders: DataStream, payments: DataStream) -> DataStream:
    """(article, cents)"""
    pairs = (
        orders.join(payments)
        .where(lambda order: order[0])
        .equal_to(lambda payment: payment[0])
        .window(TEN_MINUTES)
    )
    return pairs.apply(
        lambda order, payment: (order[2], payment[2]), Types.TUPLE([Types.STRING(), Types.INT()])
    )


class Paid(ProcessJoinFunction):
    """(article, cents, minutes between order and payment)"""

    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield left[2], right[2], (ctx.get_right_timestamp() - ctx.get_left_timestamp()) // 60_000


def in_time(orders: DataStream, payments: DataStream) -> DataStream:
    left, right = orders.key_by(lambda order: order[0]), payments.key_by(lambda payment: payment[0])
    paid = left.interval_join(right).between(Time.minutes(0), Time.minutes(10))
    return paid.process(Paid(), Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()]))


def unpaid(orders: DataStream, payments: DataStream) -> DataStream:
    """The articles of orders that nobody paid within their window."""
    groups = (
        orders.co_group(payments)
        .where(lambda order: order[0])
        .equal_to(lambda payment: payment[0])
        .window(TEN_MINUTES)
    )
    return groups.apply(
        lambda ordered, paid: [order[2] for order in ordered if not paid], Types.STRING()
    )


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    orders, payments = by_time(env, ORDERS, Types.STRING()), by_time(env, PAYMENTS, Types.INT())
    in_one_window(orders, payments).print("one window")
    in_time(orders, payments).print("in time")
    unpaid(orders, payments).print("unpaid in its window")
    env.execute("orders and payments")


if __name__ == "__main__":
    main()
