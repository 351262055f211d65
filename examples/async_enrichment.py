"""Adds to each order the name of its customer, from a slow service: asynchronous I/O.

    python examples/async_enrichment.py

While one lookup waits, up to 99 others run. One lookup in five fails at first and is repeated. If
the service does not answer in time, the order gets an unknown customer instead of failing the job.
Results keep the order of the input."""

from __future__ import annotations

import asyncio
from typing import Any

from flinkpy.common import Time, Types
from flinkpy.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    DataStream,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.async_retry_predicates import has_exception_predicate

CUSTOMERS = dict(enumerate(["Ada", "Grace", "Edsger", "Barbara", "Donald", "Margaret", "Alan"]))
LOST = 7  # for this customer the service never answers in time


class CustomerService:
    """Simulates a database or a web service: an answer takes 10 ms."""

    def __init__(self) -> None:
        self.asked = 0

    async def name_of(self, customer: int) -> str:
        self.asked += 1
        if self.asked % 5 == 1:
            raise ConnectionError("the service is busy")
        await asyncio.sleep(60 if customer == LOST else 0.010)
        return CUSTOMERS[customer]


class Enrich(AsyncFunction):
    """Maps (order, customer) to (order, name)."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.service = CustomerService()

    async def async_invoke(self, value: tuple[int, int]) -> list[tuple[int, str]]:
        order, customer = value
        return [(order, await self.service.name_of(customer))]

    def timeout(self, value: Any) -> list[tuple[int, str]]:
        return [(value[0], "unknown")]


def enriched(
    env: StreamExecutionEnvironment, orders: int = 1000, timeout_ms: int = 500
) -> DataStream:
    stream = env.from_collection(
        [(order, order % 7 if order != 500 else LOST) for order in range(orders)]
    )
    again = AsyncRetryStrategy.fixed_delay(3, 5, exception_predicate=has_exception_predicate)
    return AsyncDataStream.ordered_wait_with_retry(
        stream,
        Enrich(),
        Time.milliseconds(timeout_ms),
        again,
        capacity=100,
        output_type=Types.TUPLE([Types.INT(), Types.STRING()]),
    )


if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    enriched(environment).filter(lambda order: order[0] % 100 == 0).print()
    environment.execute("asynchronous enrichment")
