"""A Ray cluster that a program with Spark has started outlives it, and the program says so. In a
file of its own that comes first: no other cluster may run beside it, as the program would take
that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark_session import NEEDS

pytestmark = [pytest.mark.spark, pytest.mark.ray, pytest.mark.timeout(300)]

PROGRAM = """
from flinkpy.spark import spark_session, stop_spark

print(spark_session(executors=1, cores=1).range(3).count())
stop_spark()
"""


@pytest.fixture
def folder_of_ray() -> Iterator[Path]:
    """Where the cluster keeps its files, by which its processes are found and ended. A short path,
    as sockets lie in it."""
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    yield folder
    import psutil

    processes = [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(folder) in " ".join(process.info["cmdline"] or ())
    ]
    for process in processes:
        process.kill()
    psutil.wait_procs(processes, timeout=30)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.finding("first-use 26")
def test_a_program_with_spark_says_at_its_end_that_the_cluster_it_has_started_stays(
    folder_of_ray: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark", reason=NEEDS)
    pytest.importorskip("raydp", reason=NEEDS)
    from ray._private import services

    if services.find_gcs_addresses():
        pytest.skip("a Ray cluster runs on this machine, which the program would take")
    script = tmp_path / "job.py"
    script.write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    outcome = subprocess.run(
        [sys.executable, str(script)],
        env={**environment, "RAY_TMPDIR": str(folder_of_ray)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    assert "3" in outcome.stdout.splitlines()  # among Spark's own lines
    assert (
        "no Ray cluster runs here: starting one on this machine; it stays until `ray stop`"
        in outcome.stderr
    )
    assert (
        outcome.stderr.splitlines()[-1]
        == "the Ray cluster this program has started keeps running (`ray stop` ends it)"
    )
