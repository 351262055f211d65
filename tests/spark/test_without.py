"""Without the extra, or without a Java on the nodes: one message that says what to do. Runs where
Spark is not installed, too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flinkpy.core.errors import ProgramError
from flinkpy.spark import spark_on_ray, spark_session, stop_spark
from tests.cluster.ray_fixture import ray_cluster


def test_without_the_packages_every_entrance_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    for call in (spark_session, stop_spark):
        with pytest.raises(
            ProgramError,
            match=(
                r"Spark is not installed: `pip install 'flinkpy\[spark\]'` brings pyspark, raydp "
                r"and a Java"
            ),
        ):
            call()


def test_own_options_win_and_own_java_options_stand_behind_ours() -> None:
    options = spark_on_ray.spark_configs(
        {"spark.ui.enabled": "true", "spark.executor.extraJavaOptions": "-Dmine=1"}
    )
    assert options["spark.ui.enabled"] == "true"
    assert options["spark.executor.extraJavaOptions"].endswith(" -Dmine=1")
    assert (
        "--add-opens=java.base/java.nio=ALL-UNNAMED" in options["spark.executor.extraJavaOptions"]
    )
    assert options["spark.sql.session.timeZone"] == "UTC"


@pytest.mark.ray
@pytest.mark.spark
def test_a_ray_node_that_was_started_without_java_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(
        "raydp", reason="needs the extra: pip install 'flinkpy[spark]', or make test-spark"
    )
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for tool in Path(folder).iterdir():
            if tool.name != "java" and not os.path.lexists(tools / tool.name):
                (tools / tool.name).symlink_to(tool)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with ray_cluster(tmp_path) as cluster:
        program = (
            "from flinkpy.spark import spark_session; spark_session(executors=1, cores=1, "
            "stream_cpus=1)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
            env={**cluster.environment, "PATH": os.environ["PATH"]},
        )
    assert done.returncode != 0
    last = done.stderr.splitlines()[-1]
    assert "Ray was started there without Java" in last
    assert "`python -m flinkpy.spark`" in last
