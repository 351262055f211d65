"""PyFlink's own Kafka examples run as they stand, but for the broker's address. They read without
end, so they are ended when they have printed what they must."""

from __future__ import annotations

import json
import queue
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.compatibility.test_pyflink_examples import examples  # noqa: F401  (a fixture)
from tests.kafka.broker import Broker
from tests.waiting import PATIENCE_S

READING = "start reading data from kafka"
GREETINGS = [
    (1, "hi"),
    (2, "hello"),
    (3, "hi"),
    (4, "hello"),
    (5, "hi"),
    (6, "hello"),
    (6, "hello"),
]


def printed(script: Path, count: int) -> list[str]:
    """The first lines that the program prints of what it has read."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "flinkpy", "run", "--pyflink", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines: queue.Queue[str | None] = queue.Queue()
    output = process.stdout
    assert output is not None

    def forward() -> None:
        for line in output:
            lines.put(line.rstrip("\n"))
        lines.put(None)

    reader = threading.Thread(target=forward, daemon=True)
    reader.start()
    seen: list[str] = []
    try:
        while READING not in seen or len(seen) < seen.index(READING) + 1 + count:
            line = lines.get(timeout=PATIENCE_S / 2)
            assert line is not None, f"the program ended, and printed only {seen}"
            seen.append(line)
    finally:
        process.kill()
        process.wait()
        reader.join()
        output.close()
    return seen[seen.index(READING) + 1 :]


def with_address(script: Path, broker: Broker, folder: Path) -> Path:
    copy = folder / script.name
    copy.write_text(script.read_text().replace("localhost:9092", broker.bootstrap))
    return copy


@pytest.mark.wide(but=("avro",))
@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ("json", [f"+I[{number},{text}]" for number, text in GREETINGS]),
        ("csv", [f"+I[{number},{text}]" for number, text in GREETINGS]),
        ("avro", [f"+I[{number},{text}]" for number, text in GREETINGS]),
        (
            "bytearray",
            [
                '{"id": 1, "country": "USA"}',
                '{"id": 2, "country": "Canada"}',
                '{"id": 3, "country": "Germany"}',
            ],
        ),
    ],
)
def test_an_example_that_writes_and_reads_prints_what_it_wrote(
    broker: Broker,
    examples: Path,  # noqa: F811
    tmp_path: Path,
    form: str,
    wanted: list[str],
) -> None:
    broker.create_topic(f"test_{form}_topic")
    script = with_address(examples / "connectors" / f"kafka_{form}_format.py", broker, tmp_path)
    assert sorted(re.sub(r"^\d+> ", "", line) for line in printed(script, len(wanted))) == sorted(
        wanted
    )


@pytest.mark.wide
@pytest.mark.slow
def test_the_example_of_rows_with_key_and_value_writes_both(
    broker: Broker,
    examples: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    broker.create_topic("row-extractor-example", 3)
    script = with_address(
        examples / "connectors" / "kafka_row_field_extractor_example.py", broker, tmp_path
    )
    subprocess.run(
        [sys.executable, "-m", "flinkpy", "run", "--pyflink", str(script)],
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    found = {
        (record.key, json.loads(record.value or b"")["type"])
        for record in broker.read("row-extractor-example")
    }
    assert found == {
        (b"user-001", "purchase"),
        (b"user-002", "view"),
        (b"user-001", "add_to_cart"),
        (b"user-003", "purchase"),
    }
