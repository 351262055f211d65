"""How much memory this process can have: the machine's, or what its container leaves of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

_GROUPS, _MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def machine_memory() -> int:
    """Bytes of the machine, or of the container where that has a limit below it; 0 where the system
    does not tell."""
    machine, container = _physical_memory(), container_limit()
    return machine if container is None else container


def container_limit(groups: Path = _GROUPS, mount: Path = _MOUNT) -> int | None:
    """The least limit of the control groups that this process is in, if one is below the machine's
    memory: ``memory.max`` of version 2, ``memory.limit_in_bytes`` of version 1."""
    limits = [_limit(file) for file in _files(groups, mount)]
    machine = _physical_memory()
    return min(
        (limit for limit in limits if limit and (not machine or limit < machine)), default=None
    )


def _files(groups: Path, mount: Path) -> Iterator[Path]:
    """Those of each group and all that it is in. In a container the path may be that on the host:
    then what is mounted is the container's own group."""
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            root, name = mount, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = mount / "memory", "memory.limit_in_bytes"
        else:
            continue
        place = PurePosixPath(path.lstrip("/"))
        for folder in (place, *place.parents):
            yield root / folder / name


def _limit(file: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(file.read_text())  # "max" where there is none
    return None


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0
