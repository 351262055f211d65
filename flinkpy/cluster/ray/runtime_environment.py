"""The runtime environment of a job on Ray: what its workers find on ``sys.path`` and on disk, as
one canonical text.

It consists of the environment of the program's own Ray job (``ray job submit --working-dir``,
``ray.init(runtime_env=...)``), and of what the program adds with ``add_python_file``,
``add_python_archive``, ``set_python_requirements`` and ``set_python_executable``. The text is part
of the resource profile of the job's slots (``ResourceProfile.environment``), so jobs with different
environments never share a worker, and jobs with the same one do."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray

from flinkpy.cluster.files.program_files import (
    EXECUTABLE_VARIABLE,
    requirement_lines,
    stage_archive,
    unzip,
)
from flinkpy.core.errors import ConfigurationError, ResourceUnavailableError
from flinkpy.core.options.compatibility import (
    PYTHON_ARCHIVES,
    PYTHON_EXECUTABLE,
    PYTHON_FILES,
    PYTHON_REQUIREMENTS,
)
from flinkpy.core.options.schema import read
from flinkpy.core.program.fetched_files import local_copy
from flinkpy.core.program.python_files import ZIPS, listed

NO_ENVIRONMENT = ""
PIN_S = 600
"""How long Ray keeps a package that nobody asks it to keep; living workers keep asking."""

_FIELDS = (
    "working_dir",
    "py_modules",
    "pip",
    "uv",
    "conda",
    "env_vars",
    "py_executable",
    "image_uri",
    "container",
)


def program_environment() -> dict[str, Any]:
    """Returns the environment of this process's Ray job; empty when it has none."""
    found = ray.get_runtime_context().runtime_env
    return {field: found[field] for field in _FIELDS if found.get(field)}


def job_environment(configuration: Mapping[str, Any]) -> str:
    """Returns the environment of a job with these options. Its packages have been uploaded to Ray
    when this returns.

    Raises ConfigurationError for files that do not exist, or that cannot be combined with the
    program's own environment."""
    environment = program_environment()
    files = listed(read(configuration, PYTHON_FILES))
    archives = listed(read(configuration, PYTHON_ARCHIVES))
    if files:
        environment["py_modules"] = [
            *environment.get("py_modules", ()),
            _upload(_stage_files, files),
        ]
    if archives:
        if "working_dir" in environment:
            raise ConfigurationError(
                "this program has a working directory on Ray (--working-dir), so archives "
                "belong in it: put their content there "
                "instead of add_python_archive()"
            )
        environment["working_dir"] = _upload(stage_archive, archives)
    requirements = read(configuration, PYTHON_REQUIREMENTS)
    if requirements:
        environment["pip"] = _with_requirements(environment, requirements)
    executable = read(configuration, PYTHON_EXECUTABLE)
    if executable:
        environment["py_executable"] = executable
        environment["env_vars"] = {
            **environment.get("env_vars", {}),
            EXECUTABLE_VARIABLE: executable,
        }
    return json.dumps(environment, sort_keys=True) if environment else NO_ENVIRONMENT


def options_of(environment: str) -> dict[str, Any]:
    """Returns the environment as options of an actor."""
    return {"runtime_env": json.loads(environment)} if environment else {}


def packages_of(environment: str) -> list[str]:
    """Returns the environment's packages that are in Ray's own store.

    >>> packages_of('{"working_dir": "gcs://a.zip", "py_modules": ["gcs://b.zip", "s3://c/d.zip"]}')
    ['gcs://a.zip', 'gcs://b.zip']
    """
    content = json.loads(environment) if environment else {}
    return [
        uri
        for uri in (content.get("working_dir", ""), *content.get("py_modules", ()))
        if uri.startswith("gcs://")
    ]


def keep_packages(environments: Iterable[str]) -> None:
    """Asks Ray to keep these packages: it deletes a package when the program that uploaded it is
    gone, and a session outlives programs."""
    from ray.experimental.internal_kv import _pin_runtime_env_uri

    for uri in {uri for environment in environments for uri in packages_of(environment)}:
        _pin_runtime_env_uri(uri, expiration_s=PIN_S)


# -- files -----------------------------------------------------------------------------------------


def _upload(stage: Any, entries: list[str]) -> str:
    """Uploads one package of all entries, named by its content, so the same files are uploaded only
    once."""
    from ray._private.runtime_env import packaging

    with _folder() as folder:
        for entry in entries:
            stage(Path(folder), entry)
        try:
            uri = str(packaging.get_uri_for_directory(folder, include_gitignore=False))
            with _folder() as scratch:
                packaging.upload_package_if_needed(
                    uri, scratch, folder, include_gitignore=False, include_parent_dir=False
                )
        except Exception as error:
            raise ResourceUnavailableError(
                f"the program's Python files cannot be given to Ray: {error}"
            ) from error
    return uri


@contextmanager
def _folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="flinkpy-files-") as folder:
        yield folder


def _stage_files(folder: Path, entry: str) -> None:
    """Copies the file as it is found on ``sys.path`` in this process: a folder's or a zip's
    content, or a module."""
    path = local_copy(entry, "python.files, add_python_file()")
    if path.is_dir():
        shutil.copytree(
            path, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".git")
        )
    elif path.suffix in ZIPS:
        unzip(path, folder)
    else:
        shutil.copy2(path, folder)


def _with_requirements(environment: Mapping[str, Any], option: str) -> dict[str, Any]:
    if not {"uv", "conda"}.isdisjoint(environment):
        raise ConfigurationError(
            "this program's Ray job has uv or conda packages of its own; add the requirements "
            "there instead of "
            "set_python_requirements()"
        )
    name, _, cache = option.partition("#")
    wanted = requirement_lines(name)
    there = environment.get("pip", {})
    known = dict(there) if isinstance(there, Mapping) else {"packages": list(there)}
    known["packages"] = [
        *known.get("packages", ()),
        *(each for each in wanted if each not in known.get("packages", ())),
    ]
    if cache:  # a folder of packages, which every node must have
        known["pip_install_options"] = ["--no-index", "--find-links", os.path.abspath(cache)]
    return known
