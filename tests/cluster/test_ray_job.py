"""``ray job submit`` on a cluster that ``ray start`` made: from another folder, with Ray's own
runtime environments, and what ends such a job."""

from __future__ import annotations

import json
import os
import re
import urllib.request
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cluster.ray_fixture import (
    Census,
    Eyes,
    Finished,
    StartedRay,
    end_session,
    eyes_on,
    finish,
    started_ray,
)
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]

SPEAKING = """
import logging
import words
from flinkpy.datastream import StreamExecutionEnvironment

logging.basicConfig(level=logging.INFO)
logger = logging.getLogger("mine")

def speak(line):
    print("heard", line)
    logger.info("noted %s", line)
    return words.loud(line)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
with open("lines.txt") as file:
    lines = file.read().split()
with env.from_collection(lines).map(speak).name("Speak").execute_and_collect("speaking") as results:
    print("all:", *sorted(results))
"""

ENDLESS = """
import itertools, sys
from pathlib import Path
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.datastream import StreamExecutionEnvironment

class Endless(PythonSource):
    bounded = False
    def read(self, split, position):
        started.touch()
        return itertools.count(position)

started = Path(sys.argv[1])
env = StreamExecutionEnvironment.get_execution_environment()
env.from_source(Endless(), None, "endless").add_sink(lambda value: None)
env.execute("endless")
"""

WITH_FILES = """
import os
from flinkpy.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.add_python_file("files/shouting.py")
env.add_python_file("files/package")
env.add_python_archive("files/model.zip", "model")

def use(word):
    import packaged
    import shouting
    with open("model/suffix.txt") as file:
        return shouting.shout(word) + packaged.MARK + file.read()

with env.from_collection(["a", "b"]).map(use).execute_and_collect("with files") as results:
    print(*sorted(results))
"""

WITH_REQUIREMENTS = """
from flinkpy.datastream import StreamExecutionEnvironment

def version(_):
    import required_by_test
    return required_by_test.VERSION

env = StreamExecutionEnvironment.get_execution_environment()
env.set_python_requirements("requirements.txt", "wheels")
with env.from_collection([1]).map(version).execute_and_collect("with requirements") as results:
    print(*results)
"""


@pytest.fixture(scope="module")
def ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartedRay]:
    if find_spec("aiohttp_cors") is None:
        pytest.skip("needs ray[default], which takes Ray jobs")
    with started_ray(tmp_path_factory.mktemp("ray")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def eyes(ray: StartedRay) -> Iterator[Eyes]:
    with eyes_on(ray) as eyes:
        yield eyes


def folder_with(folder: Path, **files: str) -> Path:
    """A folder of Python files, to be a Ray job's working directory."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def nothing_left(eyes: Eyes, before: Census) -> None:
    try:
        eventually(lambda: not eyes.look().beyond(before))
    except AssertionError:
        raise AssertionError(f"left behind: {eyes.look().beyond(before)}") from None


def submitted(outcome: Finished) -> str:
    match = re.search(r"'(raysubmit_\w+)' submitted", outcome.err + outcome.out)
    assert match is not None, outcome
    return match.group(1)


def submit_endless(ray: StartedRay, folder: Path, *command: str) -> str:
    """Its id; it runs."""
    endless, started = folder_with(folder, endless=ENDLESS), folder.parent / "started"
    ray_job = submitted(
        ray.ray_job(
            "submit",
            "--no-wait",
            "--working-dir",
            str(endless),
            "--",
            *command,
            "endless.py",
            str(started),
        )
    )
    try:
        eventually(started.exists)
    except AssertionError:
        raise AssertionError(f"the job did not start: {ray.ray_job('logs', ray_job)}") from None
    return ray_job


@pytest.mark.wide
def test_a_ray_job_from_another_folder_has_its_files_and_its_tasks_output(
    ray: StartedRay, eyes: Eyes, tmp_path: Path
) -> None:
    before = eyes.look()
    folder = folder_with(
        tmp_path / "program", job=SPEAKING, words="def loud(word):\n    return word.upper()\n"
    )
    (folder / "lines.txt").write_text("to be or not")
    outcome = ray.ray_job(
        "submit", "--working-dir", str(folder), "--", "python", "job.py", folder=tmp_path
    )
    assert outcome.code == 0, outcome.out + outcome.err
    assert "all: BE NOT OR TO\n" in outcome.out
    for said in ("heard", "INFO:mine:noted"):
        assert sorted(
            re.findall(rf"^\[Speak.* \([12]/2\)\] {said} (\w+)$", outcome.out, re.MULTILINE)
        ) == ["be", "not", "or", "to"]
    nothing_left(eyes, before)


@pytest.mark.wide
def test_stopping_a_ray_job_ends_its_job_and_its_cluster(
    ray: StartedRay, eyes: Eyes, tmp_path: Path
) -> None:
    before = eyes.look()
    ray_job = submit_endless(ray, tmp_path / "program", "python")
    assert {name.partition("-")[0] for name in eyes.look().beyond(before)} == {
        "jobmanager",
        "taskexecutor",
    }
    assert ray.ray_job("stop", ray_job).code == 0
    nothing_left(eyes, before)
    # Ray's account of a program that had no time to end
    assert "SIGTERM received" not in ray.ray_job("logs", ray_job).out


@pytest.mark.wide
def test_stopping_a_ray_job_cancels_its_job_in_a_session(
    ray: StartedRay, eyes: Eyes, tmp_path: Path
) -> None:
    before = eyes.look()
    settings = ("-D", f"ray.address={ray.address}", "-D", "cluster.id=nightly")
    assert ray.flinkpy("session", "start", *settings).code == 0
    ray_job = submit_endless(
        ray, tmp_path / "program", "flinkpy", "run", "-D", "cluster.id=nightly"
    )
    assert ray.ray_job("stop", ray_job).code == 0
    assert re.search("CANCELED .* endless\n", ray.flinkpy("list", "-a", *settings).out)
    assert ray.flinkpy("session", "stop", *settings).code == 0
    nothing_left(eyes, before)


@pytest.mark.wide
def test_the_log_of_a_ray_job_and_rays_dashboard_show_the_address_of_the_page_but_not_the_token(
    ray: StartedRay, eyes: Eyes, tmp_path: Path
) -> None:
    before = eyes.look()
    folder = folder_with(tmp_path / "program", endless=ENDLESS)
    command = (
        "flinkpy",
        "run",
        "-D",
        "rest.enabled=true",
        "-D",
        "rest.port=0",
        "endless.py",
        str(tmp_path / "started"),
    )
    ray_job = submitted(
        ray.ray_job("submit", "--no-wait", "--working-dir", str(folder), "--", *command)
    )
    eventually((tmp_path / "started").exists)
    log = ray.ray_job("logs", ray_job).out
    found = re.search(
        r"^in the browser: (http://localhost:\d+) \(`flinkpy session list` tells the token\)$",
        log,
        re.MULTILINE,
    )
    assert found is not None, log
    page = found[1]
    with urllib.request.urlopen(page, timeout=30) as answer:
        assert "<title>flinkpy</title>" in answer.read().decode()
    told = ray.flinkpy("session", "list", "-D", f"ray.address={ray.address}").out
    token = re.search(rf"{page}/#token=(\S+)", told)
    assert token is not None, told
    actors = ray.asked("/logical/actors")
    shown = [
        actor["reprName"]
        for actor in actors["data"]["actors"].values()
        if actor["state"] == "ALIVE"
    ]
    assert f"JobManagerProcess({page})" in shown
    asked = [
        actors,
        ray.asked("/api/v0/actors?detail=1"),
        ray.asked("/api/v0/tasks?detail=1"),
        ray.asked("/api/jobs/"),
        log,
    ]
    assert token[1] not in str(asked)
    assert ray.ray_job("stop", ray_job).code == 0
    nothing_left(eyes, before)


@pytest.mark.wide
def test_files_and_archives_of_the_program_are_on_its_workers(
    ray: StartedRay, eyes: Eyes, tmp_path: Path
) -> None:
    """Modules of the Ray job's own ``py_modules`` too. The workers have another working directory
    than the program."""
    before = eyes.look()
    files = tmp_path / "files"
    folder_with(
        files, shouting="def shout(word):\n    import given\n    return given.MARK + word.upper()\n"
    )
    folder_with(files / "package")
    folder_with(files / "package" / "packaged", __init__="MARK = '!'")
    with zipfile.ZipFile(files / "model.zip", "w") as archive:
        archive.writestr("suffix.txt", "?")
    folder_with(tmp_path / "given", __init__="MARK = '¡'")
    (tmp_path / "job.py").write_text(WITH_FILES)
    environment = json.dumps({"py_modules": [str(tmp_path / "given")]})
    outcome = ray.ray_job(
        "submit",
        "--runtime-env-json",
        environment,
        "--",
        "sh",
        "-c",
        f"cd {tmp_path} && python job.py",
    )
    assert outcome.code == 0, outcome.out + outcome.err
    assert "¡A!? ¡B!?\n" in outcome.out
    nothing_left(eyes, before)


@pytest.mark.wide
@pytest.mark.skipif(
    "FLINKPY_TEST_PIP" not in os.environ,
    reason="Ray copies the whole environment first: set FLINKPY_TEST_PIP to run it",
)
def test_requirements_of_the_program_are_installed_for_its_workers(
    ray: StartedRay, tmp_path: Path
) -> None:
    make_wheel(tmp_path / "wheels", "required_by_test", "VERSION = '1.2.3'")
    (tmp_path / "requirements.txt").write_text("required-by-test==1.0  # from the folder\n")
    (tmp_path / "job.py").write_text(WITH_REQUIREMENTS)
    outcome = ray.ray_job(
        "submit", "--", "sh", "-c", f"cd {tmp_path} && python job.py", timeout=120
    )
    assert outcome.code == 0, outcome.out + outcome.err
    assert "\n1.2.3\n" in outcome.out


def make_wheel(folder: Path, module: str, text: str) -> None:
    folder.mkdir()
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{module}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{module}.py", text)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{info}/RECORD", "")


@pytest.mark.wide
def test_a_ray_cluster_that_goes_away_is_one_message_that_says_what_to_do(
    ray: StartedRay, tmp_path: Path
) -> None:
    """The last test here: it is this cluster that goes."""
    address = ("-D", f"ray.address={ray.address}")
    started = tmp_path / "started"
    waiting = ray.start("run", "-t", "ray-application", *address, ray.job(ENDLESS), str(started))
    eventually(started.exists)
    end_session(ray.head)
    outcome = finish(waiting, 60)
    assert outcome.code == 1
    assert re.fullmatch(
        (
            r"the flinkpy application '\S+' on Ray is gone: .*`ray status`.*; run the program "
            r"again to start anew\n"
        ),
        outcome.err,
    )
    gone = ray.flinkpy("list", *address)
    assert (gone.code, gone.out) == (1, "")
    assert gone.err.startswith(f"no Ray cluster answers at {ray.address}")
    assert len(gone.err.splitlines()) == 1
