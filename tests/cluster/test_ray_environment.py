"""What a job's options become as a runtime environment of Ray; whether workers get it is
test_ray_job's to say."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.ray import ray_sessions as ray_cluster
from flinkpy.cluster.ray import runtime_environment as ray_environment
from flinkpy.cluster.ray.runtime_environment import NO_ENVIRONMENT, job_environment, options_of
from flinkpy.core.errors import ConfigurationError, ResourceUnavailableError
from flinkpy.core.ids import JobId
from flinkpy.graph.job_graph import JobGraph


class FakeRay:
    """Takes packages, and remembers the files of each; a package's name is its content's."""

    def __init__(self) -> None:
        self.program: dict[str, Any] = {}
        self.packages: dict[str, dict[str, str]] = {}

    def upload(self, stage: Any, entries: list[str], folder: Path) -> str:
        for entry in entries:
            stage(folder, entry)
        files = {
            str(path.relative_to(folder)): path.read_text()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        uri = f"gcs://{json.dumps(files)}"
        self.packages[uri] = files
        return uri


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setattr(ray_environment, "program_environment", lambda: dict(fake.program))
    monkeypatch.setattr(
        ray_environment,
        "_upload",
        lambda stage, entries: fake.upload(stage, entries, tmp_path_factory.mktemp("package")),
    )
    return fake


def environment(**options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        job_environment({f"python.{name}": value for name, value in options.items()})
    )
    return found


def test_a_job_without_files_has_none(fake: FakeRay) -> None:
    assert job_environment({}) == NO_ENVIRONMENT
    assert options_of(NO_ENVIRONMENT) == {}


def test_that_of_the_ray_job_is_kept_and_added_to(fake: FakeRay, tmp_path: Path) -> None:
    fake.program = {
        "working_dir": "gcs://job.zip",
        "py_modules": ["gcs://given.zip"],
        "env_vars": {"A": "1"},
    }
    (tmp_path / "one.py").write_text("ONE = 1")
    found = environment(files=str(tmp_path / "one.py"))
    assert found["py_modules"][0] == "gcs://given.zip"
    assert fake.packages[found["py_modules"][1]] == {"one.py": "ONE = 1"}
    assert (found["working_dir"], found["env_vars"]) == ("gcs://job.zip", {"A": "1"})
    assert options_of(json.dumps(found)) == {"runtime_env": found}


def test_modules_folders_and_zips_become_one_package(fake: FakeRay, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("1")
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    (tmp_path / "folder" / "inside" / "__init__.py").write_text("2")
    with zipfile.ZipFile(tmp_path / "three.zip", "w") as archive:
        archive.writestr("three.py", "3")
    found = environment(
        files=",".join(str(tmp_path / name) for name in ("one.py", "folder", "three.zip"))
    )
    assert fake.packages[found["py_modules"][0]] == {
        "one.py": "1",
        "inside/__init__.py": "2",
        "three.py": "3",
    }


@pytest.mark.parametrize(
    ("target", "folder"), [("", "model.zip"), ("#model", "model"), ("#a/b", "a/b")]
)
def test_an_archive_lies_unpacked_in_its_target_folder(
    fake: FakeRay, tmp_path: Path, target: str, folder: str
) -> None:
    """Flink: without a target directory it is the archive's own name."""
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("weights.txt", "w")
    found = environment(archives=f"{tmp_path / 'model.zip'}{target}")
    assert fake.packages[found["working_dir"]] == {f"{folder}/weights.txt": "w"}


def test_requirements_are_those_lines_of_the_file_that_name_something(
    fake: FakeRay, tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text(
        "# what it needs\nsmall==1.0  # pinned\n\nlarge>=2\n"
    )
    assert environment(requirements=str(tmp_path / "requirements.txt"))["pip"] == {
        "packages": ["small==1.0", "large>=2"]
    }
    fake.program = {"pip": ["given", "large>=2"]}
    assert environment(requirements=str(tmp_path / "requirements.txt"))["pip"] == {
        "packages": ["given", "large>=2", "small==1.0"]
    }


def test_with_a_folder_of_packages_nothing_is_fetched(fake: FakeRay, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("small")
    found = environment(requirements=f"{tmp_path / 'requirements.txt'}#{tmp_path / 'wheels'}")[
        "pip"
    ]
    assert found == {
        "packages": ["small"],
        "pip_install_options": ["--no-index", "--find-links", str(tmp_path / "wheels")],
    }


@pytest.mark.parametrize(
    ("option", "method"),
    [
        ("files", "add_python_file"),
        ("archives", "add_python_archive"),
        ("requirements", "set_python_requirements"),
    ],
)
def test_what_is_not_there_is_named_with_the_method_that_named_it(
    fake: FakeRay, option: str, method: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"{method}\(\): there is no missing"):
        environment(**{option: "missing"})


def test_what_cannot_be_combined_with_the_ray_jobs_own_says_where_it_belongs(
    fake: FakeRay, tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text("small")
    fake.program = {"working_dir": "gcs://job.zip", "conda": "base"}
    with pytest.raises(ConfigurationError, match="put their content there"):
        environment(archives="model.zip")
    with pytest.raises(ConfigurationError, match="add the requirements there"):
        environment(requirements=str(tmp_path / "requirements.txt"))


def test_no_archive_leaves_the_working_directory(fake: FakeRay, tmp_path: Path) -> None:
    (tmp_path / "model.zip").touch()
    with pytest.raises(ConfigurationError, match="outside of the working directory"):
        environment(archives=f"{tmp_path / 'model.zip'}#../elsewhere")
    with pytest.raises(ConfigurationError, match=r"model\.zip is no zip file"):
        environment(archives=str(tmp_path / "model.zip"))
    (tmp_path / "model.tar").write_text("nothing")
    with pytest.raises(ConfigurationError, match="cannot be unpacked"):
        environment(archives=str(tmp_path / "model.tar"))


def test_a_session_is_not_started_with_the_environment_of_one_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would be that of every program's workers."""
    monkeypatch.setattr(ray_cluster, "connect_ray", lambda configuration, start: None)
    monkeypatch.setattr(ray_cluster, "find_host", lambda process: None)
    monkeypatch.setattr(ray_cluster, "living_hosts", list)
    monkeypatch.setattr(ray_cluster, "_ray_job", lambda: "01000000")
    monkeypatch.setattr(
        ray_cluster, "program_environment", lambda: {"working_dir": "gcs://job.zip"}
    )
    with pytest.raises(ConfigurationError, match="without --working-dir"):
        ray_cluster.start_session({})
    with pytest.raises(
        ResourceUnavailableError,
        match="`flinkpy session start nightly` first, or -t ray-application",
    ):
        ray_cluster.connect_program(
            {"cluster.id": "nightly"}, JobGraph(JobId("job"), "nothing", [])
        )
