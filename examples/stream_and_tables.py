"""From a stream to a table and back: Python reads lines of a web server's log, SQL decides what
counts as a failed login, and a Python function with state and timers of its own finds who tries
passwords.

    python examples/stream_and_tables.py"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from flinkpy.common import Row, Types
from flinkpy.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from flinkpy.datastream.state import ValueStateDescriptor
from flinkpy.table import StreamTableEnvironment

LOG = """\
10.0.0.7 POST /login?user=ann 200
10.0.0.9 POST /login?user=root 401
10.0.0.9 POST /login?user=admin 401
10.0.0.7 GET /reports?year=2013 200
this line is broken
10.0.0.9 POST /login?user=root 403
10.0.0.8 POST /login?user=bob 401
10.0.0.9 POST /login?user=guest 401
10.0.0.8 POST /login?user=bob 200
""".splitlines()
LINE = re.compile(r"(\S+) (GET|POST) (\S+) (\d{3})$")
REQUEST = Types.ROW_NAMED(
    ["client", "path", "status"], [Types.STRING(), Types.STRING(), Types.INT()]
)
FAILED_LOGINS = """
    SELECT client, PARSE_URL('http://here' || path, 'QUERY', 'user') AS name
    FROM requests
    WHERE path LIKE '/login?%' AND status IN (401, 403)
"""


def requests(line: str) -> Iterator[Row]:
    """The request of a line; lines that are none are left out."""
    found = LINE.match(line)
    if found is not None:
        client, _, path, status = found.groups()
        yield Row(client, path, int(status))


class ManyTries(KeyedProcessFunction):
    """Names a client at its third failed login."""

    def open(self, runtime_context: Any) -> None:
        self.tries = runtime_context.get_state(ValueStateDescriptor("tries", Types.INT()))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        tries = (self.tries.value() or 0) + 1
        self.tries.update(tries)
        if tries == 3:
            yield f"{ctx.get_current_key()} tries passwords, now as {value.name}"


def alarms(env: StreamExecutionEnvironment) -> DataStream:
    """Lines become a table, its query becomes a stream, and the function sees that stream."""
    tables = StreamTableEnvironment.create(env)
    lines = env.from_collection(LOG, type_info=Types.STRING())
    tables.create_temporary_view("requests", lines.flat_map(requests, output_type=REQUEST))
    failed = tables.to_data_stream(tables.sql_query(FAILED_LOGINS))
    return failed.key_by(lambda row: row.client).process(ManyTries())


if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    alarms(environment).print()
    environment.execute("failed logins")
