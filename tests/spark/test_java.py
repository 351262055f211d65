"""Which Java is taken, told by commands that only say a version."""

from __future__ import annotations

from pathlib import Path

import pytest

from flinkpy.core.errors import ResourceUnavailableError
from flinkpy.spark import java


def fake_java(home: Path, version: str) -> Path:
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    command.chmod(0o755)
    return command


@pytest.fixture(autouse=True)
def packaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_packaged", lambda: None)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('java version "1.8.0_381"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "11.0.2" 2019-01-15', 11),
        ('openjdk version "22-ea" 2024', 22),
        ("bash: java: not found", None),
        ("", None),
    ],
)
def test_the_feature_version_is_read_from_what_java_prints(said: str, version: int | None) -> None:
    assert java.parse_version(said) == version


def test_java_home_comes_before_the_path_and_the_path_before_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, on_path, package = tmp_path / "home", tmp_path / "path", tmp_path / "package"
    fake_java(home, "17.0.1"), fake_java(on_path, "11.0.1")
    monkeypatch.setattr(
        java,
        "_packaged",
        lambda: fake_java(package, "17.0.9") if not package.exists() else package / "bin" / "java",
    )
    assert java.java_home({"JAVA_HOME": str(home), "PATH": str(on_path / "bin")}) == home
    assert java.java_home({"PATH": str(on_path / "bin")}) == on_path
    assert java.java_home({"PATH": ""}) == package


def test_a_version_spark_does_not_run_on_is_passed_over(tmp_path: Path) -> None:
    new, good = tmp_path / "new", tmp_path / "good"
    fake_java(new, "21.0.1"), fake_java(good, "1.8.0_381")
    assert java.java_home({"JAVA_HOME": str(new), "PATH": str(good / "bin")}) == good
    assert java.java_home({"JAVA_HOME": str(new), "PATH": ""}) is None


def test_a_java_home_without_a_java_is_no_java(tmp_path: Path) -> None:
    assert java.java_home({"JAVA_HOME": str(tmp_path), "PATH": ""}) is None


def test_the_java_found_goes_to_the_front_of_this_process_s_path_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    assert java.use_java() == java.use_java() == tmp_path
    import os

    assert os.environ["PATH"] == f"{tmp_path}/bin{os.pathsep}/nowhere"


def test_without_a_fitting_java_the_error_tells_what_was_seen_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        ResourceUnavailableError,
        match=r"there is no Java on this machine\. Spark needs Java 8, 11 or 17: `pip install",
    ):
        java.use_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    command = fake_java(tmp_path, "21.0.1")
    with pytest.raises(ResourceUnavailableError, match=f"{command} is Java 21. Spark needs"):
        java.use_java()


def test_a_java_is_linked_beside_the_interpreter_and_a_wrong_link_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "good", "17.0.1"), fake_java(tmp_path / "new", "21.0.1")
    folder = tmp_path / "environment"
    folder.mkdir()
    monkeypatch.setattr("sys.executable", str(folder / "python"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "good"))
    assert java.link_java().resolve() == tmp_path / "good" / "bin" / "java"
    (folder / "java").unlink()
    (folder / "java").symlink_to(tmp_path / "new" / "bin" / "java")
    assert java.version_of(java.link_java()) == 17
    assert java.link_java() == folder / "java"  # a good one stays
