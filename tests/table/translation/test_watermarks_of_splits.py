"""The watermark of a table is the lowest of its splits, although one subtask reads them all."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.connectors.source_api.timestamped_source import TimestampedSourceOperator
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.sql.catalog.catalog_port import CatalogTable, SourceAbilities
from flinkpy.sql.physical.physical_nodes import TableScan
from flinkpy.table import EnvironmentSettings, StreamTableEnvironment, TableEnvironment
from flinkpy.table.factories import found_factories
from flinkpy.table.factories.connector_factory import ConnectorFactory
from flinkpy.table.factories.table_options import TableValues
from flinkpy.testing.tables import clear_results, results

ROWS = 400  # of each split
AT_ONCE = {"fast": 100, "slow": 10}


class TwoSplits(PythonSource):
    """The time of each split goes up by a second with each row; it is read a batch of one, a batch
    of the other."""

    bounded, columnar = False, True
    schema = pa.schema([("other", pa.string()), ("s", pa.int64())])

    def splits(self, parallelism: int) -> Iterable[str]:
        return AT_ONCE

    def read(self, split: Any, position: Any) -> Iterable[Any]:
        for first in range(position or 0, ROWS, AT_ONCE[split]):
            seconds = range(first, first + AT_ONCE[split])
            yield pa.record_batch([[split] * len(seconds), seconds], schema=self.schema)


class TwoSplitsFactory(ConnectorFactory):
    identifier = "two"

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        return SourceAbilities(is_bounded=False)

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        from flinkpy.columns import col

        stream: DataStream = env.from_source(TwoSplits(), source_name="Source: two")
        return stream.map_batches(_decoded, schema=_DECODED).select(*map(col, node.schema.names))


_DECODED = pa.schema([("n", pa.int64())])


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """As keys of messages become columns behind a source."""
    return pa.record_batch([batch.column("s")], schema=_DECODED)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    known = found_factories.factory_of
    monkeypatch.setattr(
        found_factories,
        "factory_of",
        lambda name: TwoSplitsFactory() if name == "two" else known(name),
    )


DDL = (
    "CREATE TABLE t (n BIGINT, ts AS TO_TIMESTAMP_LTZ(n, 0), "
    "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'two')"
)


@pytest.mark.usefixtures("found")
def test_no_row_of_a_slow_split_is_late_and_two_inserts_read_the_splits_once() -> None:
    clear_results()
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "1")
    tables.execute_sql(DDL)
    both = tables.create_statement_set()
    for name, size in (("by_ten", 10), ("by_forty", 40)):
        tables.execute_sql(
            f"CREATE TABLE {name} (at_s BIGINT, c BIGINT) WITH ('connector' = 'values')"
        )
        both.add_insert_sql(
            f"INSERT INTO {name} SELECT MIN(n), COUNT(*) FROM "
            f"TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '{size}' SECOND) "
            "GROUP BY window_start, window_end"
        )
    both.execute().wait()
    for name, size in (("by_ten", 10), ("by_forty", 40)):
        found = [tuple(row) for row in results(name)]
        assert found == [(first, 2 * size) for first in range(0, ROWS, size)]


@pytest.mark.usefixtures("found")
def test_the_idle_timeout_of_a_table_is_that_of_each_split() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    tables = StreamTableEnvironment.create(env)
    tables.get_config().set("table.exec.source.idle-timeout", "5 s")
    tables.execute_sql(DDL)
    made = tables.to_data_stream(tables.from_path("t")).recorded.transformation
    while made.inputs:
        [made] = made.inputs
    operator = made.operator  # type: ignore[attr-defined]
    assert isinstance(operator, TimestampedSourceOperator)
    assert operator.stamping.strategy.idle_timeout == timedelta(seconds=5)
