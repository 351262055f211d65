"""What is owed for each order, while payments come late, are corrected and are taken back.

    python examples/orders_and_payments.py

Orders and payments are changes, as the log of a database has them. Here they stand in the program;
from Kafka they would come as tables with the format ``debezium-json`` or ``canal-json``, and the
query would be the same. The changes of the result are printed, and what is left at the end: an
order without a payment is there at once (LEFT JOIN), and its row is replaced when money comes or
goes. Which changes lie between depends on what is read first; what is left does not."""

from __future__ import annotations

from collections.abc import Sequence

from flinkpy.common import Row, RowKind, Types
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table import Schema, StreamTableEnvironment, Table

INSERT, DELETE = RowKind.INSERT, RowKind.DELETE
BEFORE, AFTER = RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER

ORDERS = [  # customer, cents
    Row.of_kind(INSERT, 1, "ann", 3000),
    Row.of_kind(INSERT, 2, "bob", 5000),
    Row.of_kind(INSERT, 3, "cid", 800),
    Row.of_kind(BEFORE, 3, "cid", 800),  # one article more
    Row.of_kind(AFTER, 3, "cid", 1300),
    Row.of_kind(INSERT, 4, "dora", 700),
    Row.of_kind(DELETE, 4, "dora", 700),  # cancelled
]
PAYMENTS = [  # order, cents
    Row.of_kind(INSERT, 10, 1, 3000),
    Row.of_kind(INSERT, 11, 2, 500),
    Row.of_kind(INSERT, 12, 3, 1300),
    Row.of_kind(BEFORE, 11, 2, 500),  # a nought was missing
    Row.of_kind(AFTER, 11, 2, 5000),
    Row.of_kind(DELETE, 12, 3, 1300),  # the bank takes it back
]
OWED = """
    SELECT o.id, o.customer, o.cents - COALESCE(p.paid, 0) AS owed
    FROM orders o LEFT JOIN (
      SELECT order_id, SUM(cents) AS paid FROM payments GROUP BY order_id
    ) p ON o.id = p.order_id
"""


def owed(orders: Sequence[Row], payments: Sequence[Row]) -> tuple[StreamTableEnvironment, Table]:
    """The query over tables that these changes make."""
    env = StreamExecutionEnvironment.get_execution_environment()
    tables = StreamTableEnvironment.create(env)
    for name, rows, columns in (
        ("orders", orders, {"id": Types.INT(), "customer": Types.STRING(), "cents": Types.INT()}),
        ("payments", payments, {"id": Types.INT(), "order_id": Types.INT(), "cents": Types.INT()}),
    ):
        kind = Types.ROW_NAMED(list(columns), list(columns.values()))
        schema = Schema.new_builder().primary_key("id").build()
        changes = env.from_collection(rows, type_info=kind)
        tables.create_temporary_view(name, tables.from_changelog_stream(changes, schema))
    return tables, tables.sql_query(OWED)


def main() -> None:
    tables, table = owed(ORDERS, PAYMENTS)
    for change in tables.to_changelog_stream(table).execute_and_collect():
        print(change.get_row_kind().name.replace("_", " ").lower(), *change)
    print()
    for row in table.execute().to_arrow().sort_by("id").to_pylist():
        print(f"{row['customer']} owes {row['owed'] / 100:.2f}")


if __name__ == "__main__":
    main()
