"""Orders meet a table of products: every order gets the product's name, price and group.

    python examples/static_table.py

The table does not change with the stream, so there is no window, and no order waits for a partner.
An order of a product that the table lacks is kept, and shown. The second part loads the table with
a function, again every minute while the job runs; so a new price counts without a restart."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

from flinkpy.common import Row, Types
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.table.expressions import col

ORDER = Types.ROW_NAMED(["product", "pieces"], [Types.INT(), Types.INT()])
ORDERS = [
    Row(product=1, pieces=2),
    Row(product=2, pieces=1),
    Row(product=9, pieces=4),
    Row(product=1, pieces=3),
]
PRODUCTS = pa.table(
    {"id": [1, 2], "name": ["tea", "mug"], "price": [3.5, 12.0], "group": ["food", "kitchen"]}
)


def load_products() -> pa.Table:
    """A real program would ask a database here, or read a file."""
    return PRODUCTS


def priced(orders: DataStream) -> DataStream:
    """Each order with its product, if there is one."""
    return orders.join_table(PRODUCTS, on={"product": "id"}, how="left").drop("id")


def sold_by_group(orders: DataStream) -> DataStream:
    """What was sold of each group, with the table as it is at the time."""
    known = orders.join_table(
        load_products, on={"product": "id"}, reload_interval=timedelta(minutes=1)
    )
    return known.key_by("group").aggregate((col("pieces") * col("price")).sum.alias("sold"))


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    orders = env.from_collection(ORDERS, type_info=ORDER)
    priced(orders).show()
    sold_by_group(orders).show()


if __name__ == "__main__":
    main()
