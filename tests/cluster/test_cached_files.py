"""Registered files reach the functions, wherever these run."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.files.job_files import digest_of, with_cached_files
from flinkpy.cluster.ray import registered_files
from flinkpy.cluster.ray.registered_files import content_for_workers
from flinkpy.core.errors import ConfigurationError, JobExecutionError
from flinkpy.core.ids import JobId
from flinkpy.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from flinkpy.graph.job_graph import JobGraph
from tests.cluster.ray_fixture import RayCluster
from tests.waiting import eventually

pytestmark = pytest.mark.finding("gaps G13")


class Reading(MapFunction):
    """Gives the path, the text and whether it may be executed, once the program's own file is
    gone."""

    def __init__(self, name: str, original: Path) -> None:
        self._name, self._original = name, original

    def open(self, runtime_context: RuntimeContext) -> None:
        eventually(lambda: not self._original.exists())
        path = Path(runtime_context.get_cached_file(self._name))
        self._found = str(path), path.read_text(), os.access(path, os.X_OK)

    def map(self, value: Any) -> tuple[str, str, bool]:
        return self._found


def test_embedded_a_file_is_as_it_was_when_the_job_was_submitted_and_there_once(
    tmp_path: Path,
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(3)
    env.configure({"io.tmp.dirs": str(tmp_path / "tmp")})
    original = tmp_path / "tool.sh"
    original.write_text("echo")
    env.register_cached_file(str(original), "tool", executable=True)
    with (
        env.from_collection(list(range(30)))
        .rebalance()
        .map(Reading("tool", original))
        .execute_and_collect() as results
    ):
        original.unlink()
        [(path, text, is_executable)] = set(results)
    assert (text, is_executable, Path(path).name) == ("echo", True, "tool.sh")
    assert Path(path).is_relative_to(tmp_path / "tmp")
    eventually(lambda: not Path(path).exists())


def test_embedded_a_folder_is_a_folder_and_a_url_is_fetched(tmp_path: Path) -> None:
    (tmp_path / "model" / "inner").mkdir(parents=True)
    (tmp_path / "model" / "inner" / "weights").write_text("w")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.register_cached_file(str(tmp_path / "model"), "model")
    env.register_cached_file(f"file://{tmp_path}/model/inner/weights", "weights")

    class Both(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self._text = Path(
                runtime_context.get_cached_file("model"), "inner", "weights"
            ).read_text()
            self._text += Path(runtime_context.get_cached_file("weights")).read_text()

        def map(self, value: Any) -> str:
            return self._text

    assert env.from_collection([1]).map(Both()).take(1) == ["ww"]


def test_a_name_that_is_registered_again_stands_for_the_later_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    env = StreamExecutionEnvironment.get_execution_environment()
    env.register_cached_file(str(tmp_path / "gone"), "model")
    env.register_cached_file(str(tmp_path / "two"), "other")
    env.register_cached_file(str(tmp_path / "one"), "model")
    [(_, text, _)] = env.from_collection([1]).map(Reading("model", tmp_path / "gone")).take(1)
    assert text == "one"


def test_a_file_that_is_not_there_is_refused_when_the_job_is_submitted(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.register_cached_file(str(tmp_path / "nowhere"), "model")
    with pytest.raises(
        ConfigurationError, match=r"there is no .*nowhere \(registered as 'model'\)"
    ):
        env.from_collection([1]).take(1)


def test_a_name_that_was_not_registered_is_told(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.register_cached_file(str(tmp_path / "one"), "one")
    with pytest.raises(JobExecutionError, match="no cached file 'two'"):
        env.from_collection([1]).map(Reading("two", tmp_path / "gone")).take(1)


def test_the_digest_is_that_of_names_contents_and_executable_bits(tmp_path: Path) -> None:
    for name, text in (("a/x", "1"), ("b/x", "1"), ("c/y", "1"), ("d/x", "2")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    digests = [digest_of(tmp_path / folder) for folder in "abcd"]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
    (tmp_path / "b" / "x").chmod(0o755)
    assert digest_of(tmp_path / "b") != digests[0]


def test_a_job_that_outlives_its_program_carries_what_is_not_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_bytes(bytes(3 << 20))
    graph = JobGraph(
        JobId("job"), "job", [], {"pipeline.cached-files": f"name:m,path:{tmp_path}/model"}
    )
    content = content_for_workers(outlives_program=True)(tmp_path / "model", "digest")
    pickle.loads(pickle.dumps(content)).write_to(tmp_path / "copy")
    assert (tmp_path / "copy" / "weights").read_bytes() == bytes(3 << 20)
    monkeypatch.setattr(registered_files, "CARRIED_BYTES", 1 << 20)
    with pytest.raises(
        ConfigurationError,
        match=(
            r"a job that outlives its program \(-d\) carries its files, and .* has 3 MB, more "
            r"than 1"
        ),
    ):
        with_cached_files(graph, content_for_workers(outlives_program=True))


ON_RAY = """
import json, os, sys, time
from flinkpy.datastream import MapFunction, StreamExecutionEnvironment

class Reading(MapFunction):
    def open(self, context):
        while os.path.exists("large.bin"):
            time.sleep(0.01)
        self.found = [context.get_cached_file(name) for name in ("large", "small", "model")]
        self.sizes = [os.path.getsize(self.found[0]), os.path.getsize(self.found[1]), open(self.found[2] + "/weights").read()]
        self.sizes += [os.access(self.found[1], os.X_OK), os.environ["python"], os.environ["STARTED_BY"]]

    def map(self, value):
        return json.dumps([os.getpid(), self.found, self.sizes])

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(3)
for path, name in (("large.bin", "large"), ("small.sh", "small"), ("model", "model")):
    env.register_cached_file(path, name, executable=name == "small")
with env.from_collection(list(range(300))).rebalance().map(Reading()).execute_and_collect("files") as results:
    for path in ("large.bin", "small.sh", "model/weights"):
        os.remove(path)
    print(json.dumps(sorted(set(results))))
"""


@pytest.mark.wide
@pytest.mark.finding("bugs 8")
@pytest.mark.finding("faults 14")
@pytest.mark.ray
@pytest.mark.timeout(400)
def test_on_ray_files_reach_the_workers_once_in_the_chosen_interpreter_and_are_gone_after_the_job(
    ray: RayCluster, tmp_path: Path
) -> None:
    (ray.folder / "model").mkdir()
    (ray.folder / "model" / "weights").write_text("w")
    # more than one block of the object store
    (ray.folder / "large.bin").write_bytes(os.urandom(40 << 20))
    (ray.folder / "small.sh").write_text("echo")
    interpreter = tmp_path / "interpreter"
    interpreter.write_text(f'#!/bin/sh\nSTARTED_BY=it exec {sys.executable} "$@"\n')
    interpreter.chmod(0o755)
    outcome = ray.flinkpy(
        "run",
        "-t",
        "ray-session",
        "-D",
        "cluster.id=files",
        "-D",
        "taskmanager.numberOfTaskSlots=3",
        "-pyexec",
        str(interpreter),
        "-D",
        "jobmanager.ray.on-head-node=true",
        "-D",
        f"io.tmp.dirs={tmp_path}/tmp",
        ray.job(ON_RAY),
    )
    assert outcome.code == 0, outcome.err
    found = [json.loads(line) for line in json.loads(outcome.out)]
    assert len({tuple(paths) for _, paths, _ in found}) == len({pid for pid, _, _ in found}) == 1
    assert found[0][2] == [40 << 20, 4, "w", True, str(interpreter), "it"]
    assert all(Path(path).is_relative_to(tmp_path / "tmp") for path in found[0][1])
    # the session and its worker go on
    eventually(lambda: not any(Path(path).exists() for path in found[0][1]))
    assert ray.flinkpy("session", "stop", "files").code == 0
