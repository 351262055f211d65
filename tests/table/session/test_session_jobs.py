"""The jobs of a session, as statements show and stop them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table import EnvironmentSettings, TableEnvironment


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
