"""A job whose checkpoints promise AT_LEAST_ONCE loses no record, however often it fails, and may
show one twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.datastream import StreamExecutionEnvironment
from tests.checkpoints.paced import PacedSource, failing_at, failures, visible_lines

COUNT = 60


@pytest.mark.finding("gaps G10")
def test_no_record_is_lost(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.configure(
        {
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.mode": "AT_LEAST_ONCE",
            "parallelism.default": 2,
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 9,
            "restart-strategy.fixed-delay.delay": "1 ms",
        }
    )
    paced = env.from_source(PacedSource([(number, number) for number in range(COUNT)], pace=5)).uid(
        "records"
    )
    records = paced.map(failing_at(tmp_path / "failed", 13, 37)).uid("fails")
    records.key_by(lambda record: record % 5).map(str).uid("texts").sink_to(
        FileSink(tmp_path / "out")
    ).uid("out")
    env.execute("at least once")
    assert failures(tmp_path / "failed") == 2
    assert set(Counter(visible_lines(tmp_path / "out"))) == {str(record) for record in range(COUNT)}
