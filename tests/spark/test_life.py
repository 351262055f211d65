"""What outlives Spark and what does not; each program in a process of its own, on a private Ray
cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.ray_fixture import RayCluster, ray_cluster
from tests.spark_session import NEEDS

pytest.importorskip("pyspark", reason=NEEDS)
pytest.importorskip("raydp", reason=NEEDS)
pytestmark = [pytest.mark.spark, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400)]

BEGIN = """
import os, ray, threading
from flinkpy.core.errors import FlinkpyError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.spark import spark_session, stop_spark
from flinkpy.table.expressions import col
env = StreamExecutionEnvironment.get_execution_environment({"client.progress": False})
spark = spark_session(executors=1, cores=1, stream_cpus=1)

def gone():
    while any("raydp" in each["name"] for each in ray.util.list_named_actors(all_namespaces=True)):
        threading.Event().wait(0.1)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    from flinkpy.spark.java import use_java

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.environ["PATH"])
        patch.setenv("JAVA_HOME", str(use_java()))
        with ray_cluster(tmp_path_factory.mktemp("life")) as started:
            yield started


def run(cluster: RayCluster, program: str) -> list[str]:
    path = cluster.folder / "program.py"
    path.write_text(BEGIN + program)
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env=cluster.environment,
    )
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("> ")]


def test_what_was_handed_over_outlives_spark(cluster: RayCluster) -> None:
    said = run(
        cluster,
        """
stream = env.from_spark(spark.range(0, 300_000, 1, 3))
stop_spark()
gone()
print("> sum", stream.select((col("id") * 2).alias("twice")).to_pandas().twice.sum())
again = spark_session(executors=1, cores=1, stream_cpus=1)
print("> back", stream.to_spark(again).count())
stop_spark()
""",
    )
    assert said == [f"> sum {sum(range(300_000)) * 2}", "> back 300000"]


SLOWLY = """
def slowly(batches):
    for batch in batches:
        threading.Event().wait(2)
        yield batch
slow = spark.range(0, 3000, 1, 3).mapInArrow(slowly, "id bigint")
"""


def test_stopping_spark_waits_for_what_it_is_handing_over_while_a_job_reads_it(
    cluster: RayCluster,
) -> None:
    said = run(
        cluster,
        SLOWLY
        + """
stream = env.from_spark(slow)
job = threading.Thread(target=lambda: print("> rows", stream.to_arrow().num_rows))
job.start()
stop_spark()
gone()
job.join()
print("> again", stream.to_arrow().num_rows)
""",
    )
    assert said == ["> rows 3000", "> again 3000"]


def test_ctrl_c_ends_the_wait_of_stopping_spark_and_the_program_ends(cluster: RayCluster) -> None:
    said = run(
        cluster,
        SLOWLY.replace("wait(2)", "wait(600)")
        + """
import signal, time
stream = env.from_spark(slow)
threading.Timer(1, os.kill, [os.getpid(), signal.SIGINT]).start()
began = time.perf_counter()
try:
    stop_spark()
except KeyboardInterrupt:
    print("> interrupted", time.perf_counter() - began < 60)
""",
    )
    assert said == ["> interrupted True"]


def test_a_program_that_ends_without_running_its_stream_ends_quietly(cluster: RayCluster) -> None:
    path = cluster.folder / "unused.py"
    path.write_text(
        BEGIN
        + SLOWLY.replace("wait(2)", "wait(600)")
        + """
import sys
stream = env.from_spark(slow)
threading.Event().wait(1)
print("the end", file=sys.stderr, flush=True)
"""
    )
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=cluster.environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.rpartition("the end\n")[2] == ""


def test_an_executor_that_was_started_again_gives_its_partitions(cluster: RayCluster) -> None:
    """Spark then has a new name for it, Ray has not."""
    said = run(
        cluster,
        """
ray.kill(ray.get_actor("raydp-executor-0", ray.get_runtime_context().namespace), no_restart=False)
spark.range(10).count()
print("> rows", env.from_spark(spark.range(0, 1000, 1, 2)).to_arrow().num_rows)
stop_spark()
""",
    )
    assert said == ["> rows 1000"]


def test_a_job_whose_spark_was_stopped_under_way_says_what_to_do(cluster: RayCluster) -> None:
    said = run(
        cluster,
        SLOWLY.replace("wait(2)", "wait(600)")
        + """
stream = env.from_spark(slow)
job = stream.execute_and_collect()
spark.stop()
try:
    list(job)
except FlinkpyError as error:
    print(">", error)
""",
    )
    assert len(said) == 1
    assert (
        "Spark was stopped before it had handed over the DataFrame: leave it running until "
        "the job has ended, or end it with flinkpy"
    ) in said[0]


def test_spark_gives_a_block_again_as_long_as_it_runs(cluster: RayCluster) -> None:
    said = run(
        cluster,
        """
import pyarrow as pa
from flinkpy.connectors.ray.object_store import Store
stream = env.from_spark(spark.range(0, 200_000, 1, 2))
store = Store(stream.recorded.transformation.source._keeper)
while len(store.updates(0).blocks) < 2:
    threading.Event().wait(0.1)
first = store.block_ref(1)
again = store.make_again(1, first)
print("> again", first != again, ray.get(first[0]) == ray.get(again[0]))
stop_spark()
gone()
try:
    store.make_again(1, again)
except Exception as error:
    print("> refused")
print("> kept", stream.to_arrow().num_rows)
""",
    )
    assert said == ["> again True True", "> refused", "> kept 200000"]


def test_a_stream_of_a_stopped_session_s_frame_says_what_to_do(cluster: RayCluster) -> None:
    said = run(
        cluster,
        """
frame = spark.range(10)
stop_spark()
try:
    env.from_spark(frame)
except FlinkpyError as error:
    print(">", error)
try:
    env.from_collection([1]).to_spark(spark)
except FlinkpyError as error:
    print(">", error)
""",
    )
    assert len(said) == 2
    assert all(
        ("this Spark session has been stopped: make a new one with flinkpy.spark.spark_session()")
        in line
        for line in said
    )


def test_a_ray_cluster_that_went_away_is_named(cluster: RayCluster) -> None:
    said = run(
        cluster,
        """
frame = spark.range(10)
ray.shutdown()
try:
    env.from_spark(frame)
except FlinkpyError as error:
    print(">", error)
stop_spark()
os.environ["FLINKPY_RAY_ADDRESS"] = "127.0.0.1:1"
try:
    spark_session()
except FlinkpyError as error:
    print(">", error)
""",
    )
    assert (
        "this program's connection to Ray has ended, and Spark with it: begin again with "
        "stop_spark() and spark_session()"
    ) in said[0]
    assert "no Ray cluster answers at 127.0.0.1:1" in said[1]


def test_spark_that_asks_for_more_than_the_cluster_has_is_refused_with_the_numbers(
    cluster: RayCluster,
) -> None:
    path = cluster.folder / "much.py"
    path.write_text(
        "from flinkpy.spark import spark_session\nspark_session(executors=2, cores=2, "
        "stream_cpus=1)\n"
    )
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=cluster.environment,
    )
    assert (
        "Spark asks for 2 executors of 2 cores, and the stream's slots for 1 CPUs; this Ray "
        "cluster has 4 in all"
    ) in done.stderr.splitlines()[-1]


DOCUMENT = Path(__file__).parents[2] / "docs" / "spark.md"
BLOCKS = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_programs_of_the_documentation_run_as_they_stand(
    cluster: RayCluster, number: int
) -> None:
    path = cluster.folder / f"documented{number}.py"
    path.write_text(BLOCKS[number])
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env=cluster.environment,
    )
    assert done.returncode == 0, done.stderr
    assert ["|    7|100000|", "500 500"][number] in done.stdout
