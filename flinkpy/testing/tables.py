"""Tables for tests of SQL: rows that a test gives to a program, and what the program wrote.

>>> data_id = register_rows([(1, "a"), (2, "b")])
>>> ddl = f'''CREATE TABLE t (n INT, s STRING) WITH (
...     'connector' = 'values', 'data-id' = '{data_id}', 'bounded' = 'true')'''
"""

from flinkpy.table.factories.registered_rows import (
    clear_results,
    register_rows,
    results,
    wait_for_rows,
)

__all__ = ["clear_results", "register_rows", "results", "wait_for_rows"]
