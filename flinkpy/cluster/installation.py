"""The fingerprint of the flinkpy installation of this process: it distinguishes two builds of one
version, and an installation that changed or was removed while a session runs on it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import flinkpy


@cache
def fingerprint() -> str:
    """A digest of the package's sources as this process found them, the same on every machine.
    Empty where there are none to read."""
    found, home = hashlib.blake2b(digest_size=16), _home()
    sources = list(_sources(home))
    for source in sources:
        found.update(str(source.relative_to(home)).encode() + b"\0" + source.read_bytes())
    return found.hexdigest() if sources else ""


def state() -> frozenset[tuple[str, int, int]]:
    """Sizes and times of the sources, which show a change without reading the files; empty when the
    files are gone."""
    try:
        return frozenset(
            (str(source), (found := source.stat()).st_size, found.st_mtime_ns)
            for source in _sources(_home())
        )
    except OSError:  # they are being removed, or replaced
        return frozenset()


def commit() -> str | None:
    """The commit that this installation was made from, where it is known: of a working copy, or of
    an installation by pip from git."""
    if (_home().parent / ".git").exists():
        git = ["git", "-C", str(_home().parent), "rev-parse", "--short=12", "HEAD"]
        try:
            return (
                subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
                or None
            )
        except (OSError, subprocess.CalledProcessError):
            return None
    from importlib import metadata

    try:
        origin = json.loads(metadata.distribution("flinkpy").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return None
    return str(origin["vcs_info"]["commit_id"])[:12] if "vcs_info" in origin else None


def _home() -> Path:
    return Path(flinkpy.__file__).parent


def _sources(home: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(home, followlinks=True):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(".py"))
