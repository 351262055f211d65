"""The parts of 500 random configurations, beside those that Flink derives, where Java and Flink's
jars are: ``FLINK_LIB`` names the folder with ``flink-dist-*.jar``."""

from __future__ import annotations

import glob
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.core.process_memory.random_sizes import derived, is_equal, random_line

LIB = os.environ.get("FLINK_LIB", "")
DRIVER = Path(__file__).parent / "MemoryDriver.java"

pytestmark = pytest.mark.skipif(
    not (LIB and shutil.which("java") and shutil.which("javac")),
    reason="needs Java, and FLINK_LIB with Flink's jars",
)


def test_flink_derives_the_same_parts_and_refuses_the_same_options(tmp_path: Path) -> None:
    numbers = random.Random(int(os.environ.get("SEED", "1")))
    lines = [random_line(numbers) for _ in range(500)]
    jars = ":".join(glob.glob(f"{LIB}/*.jar"))
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", tmp_path, DRIVER], check=True)
    name = "org.apache.flink.runtime.clusterframework.MemoryDriver"
    driver = subprocess.run(
        ["java", "-Xmx300m", "-cp", f"{tmp_path}:{jars}", name],
        input="".join(f"{line}\n" for line in lines),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=120,
        check=True,
    )
    flinks = driver.stdout.splitlines()
    assert len(flinks) == len(lines)
    different = [
        (line, ours, flink)
        for line, flink in zip(lines, flinks)
        if not is_equal(ours := derived(line), flink)
    ]
    assert different == []
    refused = sum(flink.startswith("error") for flink in flinks)
    assert 100 < refused < 400
