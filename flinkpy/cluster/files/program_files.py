"""Requirements, archives, files and the interpreter of an embedded program, whose functions run in
the program's own process.

Its files are put on ``sys.path``. Its archives are unpacked beside the program's data and appear in
its working directory, as they do in that of a worker. Nothing is installed: a package that is
missing is refused before the job runs, one of another version and another interpreter are told."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.files.unpacking import unpacked_safely
from flinkpy.core.options.compatibility import (
    PYTHON_ARCHIVES,
    PYTHON_EXECUTABLE,
    PYTHON_REQUIREMENTS,
)
from flinkpy.core.options.schema import read
from flinkpy.core.program.fetched_files import local_copy
from flinkpy.core.program.python_files import ZIPS, listed, put_on_path
from flinkpy.core.secrets.engine_logs import engine_logger

_LOG = engine_logger(__name__)

ARCHIVES = "python.archives, add_python_archive()"
REQUIREMENTS = "python.requirements, set_python_requirements()"
EXECUTABLE_VARIABLE = "python"  # where Flink tells its functions which interpreter was chosen

_told: set[str] = set()  # by this process
_links: dict[
    str, str
] = {}  # of archives in the working directory, and the folder that each leads to
_unpacked: set[tuple[str, str, int]] = set()
_PREFIX = "flinkpy-archive-"


def use_program_files(configuration: Mapping[str, Any]) -> None:
    """Gives the functions of this process what the options name, before their job runs. Raises
    ConfigurationError if a file is not there, or if this process lacks a package."""
    put_on_path(configuration)
    _check_requirements(read(configuration, PYTHON_REQUIREMENTS))
    for entry in listed(read(configuration, PYTHON_ARCHIVES)):
        _unpack_here(entry)
    executable = read(configuration, PYTHON_EXECUTABLE)
    if executable:
        os.environ[EXECUTABLE_VARIABLE] = executable
        if not _is_this_interpreter(executable):
            _tell(
                f"{PYTHON_EXECUTABLE.key}: embedded, functions run in this process, which "
                f"{sys.executable} runs, and not {executable}: start the "
                f"program with it ({executable} -m flinkpy run ...), or run it on Ray (-t ray)"
            )


def stage_archive(folder: Path, entry: str) -> None:
    """Unpacks an archive into its target folder within ``folder``; without a target, into a folder
    of the archive's name (as in Flink)."""
    name, _, target = entry.partition("#")
    path = local_copy(name, ARCHIVES)
    goal = (folder / (target or path.name)).resolve()
    if not goal.is_relative_to(folder.resolve()):
        raise ConfigurationError(
            f"{ARCHIVES}: the target {target} lies outside of the working directory"
        )
    goal.mkdir(parents=True, exist_ok=True)
    if path.suffix in ZIPS:
        unzip(path, goal)
        return
    try:
        shutil.unpack_archive(path, goal, **unpacked_safely())
    except (shutil.ReadError, ValueError) as error:
        raise ConfigurationError(f"{ARCHIVES}: {path} cannot be unpacked: {error}") from None


def unzip(path: Path, folder: Path) -> None:
    """Unpacks a zip. Raises ConfigurationError if it is none."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    except zipfile.BadZipFile:
        raise ConfigurationError(f"{path} is no zip file") from None


def requirement_lines(file: str) -> list[str]:
    """Returns the lines of a requirements.txt that name a package. Raises ConfigurationError if
    there is no such file, or it cannot be read."""
    try:
        lines = local_copy(file, REQUIREMENTS).read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise ConfigurationError(
            f"{REQUIREMENTS}: {file} cannot be read: {error.strerror}; name a requirements.txt"
        ) from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{REQUIREMENTS}: {file} is no text in UTF-8") from None
    return [
        line
        for line in (line.partition(" #")[0].strip() for line in lines)
        if line and not line.startswith("#")
    ]


# -- archives --------------------------------------------------------------------------------------


def _unpack_here(entry: str) -> None:
    """Makes the archive's target appear in the working directory: a link to where it is unpacked,
    gone when this process ends.

    What is there already stays, and is what functions see; that is told.
    """
    name, _, target = entry.partition("#")
    top = Path(target or os.path.basename(name)).parts[0]
    link = os.path.abspath(top)
    if link not in _links:
        if os.path.lexists(link) and not _is_abandoned(link):
            _tell(
                f"{ARCHIVES}: functions run in this process and its folder, which has "
                f"{top} already, so {entry} is not unpacked there: "
                f"give it another target folder"
            )
            return
        _link(link, top)
    unpacked = (link, entry, local_copy(name, ARCHIVES).stat().st_mtime_ns)
    if unpacked not in _unpacked:
        stage_archive(Path(_links[link]), entry)
        _unpacked.add(unpacked)


def _link(link: str, top: str) -> None:
    if not _links:
        atexit.register(_remove_links)
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    try:
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(os.path.join(folder, top), link)
    except OSError as error:
        raise ConfigurationError(
            f"{ARCHIVES}: embedded, archives are unpacked in this process's folder, where "
            f"{top} cannot be made: "
            f"{error.strerror or error}"
        ) from None
    _links[link] = folder


def _is_abandoned(link: str) -> bool:
    """Whether a program that was killed has left this link."""
    return os.path.islink(link) and not os.path.exists(link) and _PREFIX in os.readlink(link)


def _remove_links() -> None:
    for link, folder in _links.items():
        if os.path.islink(link) and os.readlink(link).startswith(folder):
            os.unlink(link)
        shutil.rmtree(folder, ignore_errors=True)
    _links.clear()
    _unpacked.clear()


# -- requirements and the interpreter --------------------------------------------------------------


def _check_requirements(requirements: str | None) -> None:
    if not requirements:
        return
    file, _, folder = requirements.partition("#")
    found = list(_unmet(requirement_lines(file)))
    install = f"pip install{f' --no-index --find-links {folder}' if folder else ''} -r {file}"
    missing = [wanted for wanted, version in found if version is None]
    if missing:
        raise ConfigurationError(
            f"embedded, functions run in this process, which lacks {', '.join(missing)} of {file}: "
            f"{install}, or run it on Ray (-t ray)"
        )
    for wanted, version in found:
        _tell(
            f"{REQUIREMENTS}: embedded, functions run in this process, which has version "
            f"{version} where {file} says {wanted}; "
            f"{install}, or run it on Ray (-t ray), if that matters"
        )


def _unmet(lines: list[str]) -> Iterator[tuple[str, str | None]]:
    """The requirements that this process does not meet, each with the version that it has
    instead."""
    from importlib import metadata

    from packaging.requirements import InvalidRequirement, Requirement

    for line in lines:
        try:
            wanted = Requirement(line)
        except InvalidRequirement:
            continue  # an option of pip's, a path or an address
        if wanted.marker is not None and not wanted.marker.evaluate():
            continue
        try:
            version = metadata.version(wanted.name)
        except metadata.PackageNotFoundError:
            yield str(wanted), None
            continue
        if not wanted.specifier.contains(version, prereleases=True):
            yield str(wanted), version


def _is_this_interpreter(executable: str) -> bool:
    found = shutil.which(executable)
    return found is not None and (
        found == sys.executable or os.path.samefile(found, sys.executable)
    )


def _tell(message: str) -> None:
    """Once in a process: a program may run many jobs."""
    if message not in _told:
        _told.add(message)
        _LOG.warning(message)
