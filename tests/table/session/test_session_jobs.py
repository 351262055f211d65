"""The jobs of a session, as statements show and stop them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table import EnvironmentSettings, TableEnvironment
from flinkpy.table.translation.operator_names import LONGEST
from flinkpy.testing.tables import register_rows


def test_operators_have_in_pages_and_metrics_the_names_of_the_plan() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    rows = register_rows([(n, "a", 10 + n) for n in range(3)])
    tables.execute_sql(
        "CREATE TABLE bids (auction BIGINT, channel STRING, seconds BIGINT METADATA FROM 'at', "
        "ts AS TO_TIMESTAMP_LTZ(seconds, 0), WATERMARK FOR ts AS ts) WITH ('connector' = 'values', "
        f"'readable-metadata' = 'at:BIGINT', 'data-id' = '{rows}')"
    )
    result = tables.execute_sql(
        "SELECT auction, window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE bids, "
        "DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY auction, window_start, window_end"
    )
    assert len(list(result.collect())) == 3
    job = result.get_job_client()
    assert job is not None
    names = [name for vertex in job._job.details().vertices for name in vertex.name.split(" -> ")]
    assert "Source: bids" in names
    [aggregate] = [name for name in names if name.startswith("WindowAggregate(groupBy=[auction]")]
    assert len(aggregate) <= LONGEST
    assert aggregate.endswith("])")
    assert f"{aggregate}.0.numRecordsIn" in job.get_metrics().result()


def test_a_session_shows_its_jobs_and_stops_them_with_a_savepoint(tmp_path: Path) -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for statement in (
        "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '10')",
        "CREATE TABLE nowhere (n BIGINT) WITH ('connector' = 'blackhole')",
        f"SET 'execution.checkpointing.savepoint-dir' = '{tmp_path}'",
        "SET 'pipeline.name' = 'counting'",
    ):
        tables.execute_sql(statement)
    assert list(tables.execute_sql("SHOW JOBS").collect()) == []
    job = tables.execute_sql("INSERT INTO nowhere SELECT n FROM numbers").get_job_client()
    assert job is not None
    [[job_id, name, status, start]] = tables.execute_sql("SHOW JOBS").collect()
    assert (job_id, name) == (job.id, "counting")
    assert status in ("INITIALIZING", "CREATED", "RUNNING")
    assert start is not None
    [row] = tables.execute_sql(f"DESCRIBE JOB '{job.id}'").collect()
    assert row[0] == job.id
    with pytest.raises(ValidationError, match="WITH DRAIN stands behind WITH SAVEPOINT"):
        tables.execute_sql(f"STOP JOB '{job.id}' WITH DRAIN")
    [[path]] = tables.execute_sql(f"STOP JOB '{job.id}' WITH SAVEPOINT").collect()
    assert str(tmp_path) in path
    assert job.status.name == "FINISHED"
