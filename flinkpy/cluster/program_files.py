"""Requirements and archives of an embedded program, whose functions run in the program's own process.

There are no workers to ship them to: requirements must be installed already, and archives are not unpacked. Both are reported before the job runs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.compatibility import PYTHON_ARCHIVES, PYTHON_REQUIREMENTS
from flinkpy.core.options.schema import read

_LOG = logging.getLogger(__name__)


def check_program_files(configuration: Mapping[str, Any]) -> None:
    """Raises ConfigurationError if this process lacks a package that ``set_python_requirements`` names; warns about
    archives."""
    requirements: str | None = read(configuration, PYTHON_REQUIREMENTS)
    if requirements:
        file, _, folder = requirements.partition("#")
        missing = list(_missing(requirement_lines(file)))
        if missing:
            source = f" --no-index --find-links {folder}" if folder else ""
            raise ConfigurationError(f"embedded, functions run in this process, which lacks {', '.join(missing)} of {file}: "
                                     f"pip install{source} -r {file}, or run it on Ray (-t ray)")
    if read(configuration, PYTHON_ARCHIVES):
        _LOG.warning("add_python_archive(): embedded, functions run in this process and its folder, where nothing is unpacked; on Ray (-t ray) it is")


def requirement_lines(file: str) -> list[str]:
    """Returns the lines of a requirements.txt that name a package. Raises ConfigurationError if there is no such
    file."""
    if not Path(file).exists():
        raise ConfigurationError(f"set_python_requirements(): there is no {file}")
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    return [line for line in (line.partition(" #")[0].strip() for line in lines) if line and not line.startswith("#")]


def _missing(lines: list[str]) -> Iterator[str]:
    from packaging.requirements import InvalidRequirement, Requirement

    for line in lines:
        try:
            wanted = Requirement(line)
        except InvalidRequirement:
            continue  # an option of pip's, a path or an address
        if wanted.marker is not None and not wanted.marker.evaluate():
            continue
        try:
            if not wanted.specifier.contains(metadata.version(wanted.name), prereleases=True):
                yield str(wanted)
        except metadata.PackageNotFoundError:
            yield str(wanted)
