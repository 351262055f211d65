"""``make test-versions``: the tests that need neither Ray nor Spark, on each Python from 3.10 on
that this machine has.

Interpreters are looked for on the path and among pyenv's versions, one for each minor version. Each
gets a virtual environment in ``build/pythons``, which is kept for the next time. Arguments go to
pytest: ``python -m tests.versions tests/core``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST, NEWEST = (3, 10), (3, 13)


def interpreters() -> dict[tuple[int, int], Path]:
    """The newest interpreter found of each minor version, oldest version first."""
    found: dict[tuple[int, int], Path] = {}
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        on_path = shutil.which(f"python3.{minor}")
        # pyenv's shims may lead nowhere
        if (
            on_path
            and subprocess.run([on_path, "-c", ""], capture_output=True, check=False).returncode
            == 0
        ):
            found[3, minor] = Path(on_path)
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for folder in sorted(
        versions.glob("3.*"), key=lambda each: [int(part) for part in re.findall(r"\d+", each.name)]
    ):
        version = tuple(int(part) for part in re.findall(r"\d+", folder.name)[:2])
        if (
            len(version) == 2
            and OLDEST <= version <= NEWEST
            and (folder / "bin" / "python").exists()
        ):
            found[version[0], version[1]] = folder / "bin" / "python"
    return dict(sorted(found.items()))


def run_tests(version: tuple[int, int], interpreter: Path, arguments: list[str]) -> bool:
    """Whether the tests pass on this interpreter."""
    folder = ROOT / "build" / "pythons" / f"{version[0]}.{version[1]}"
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    if not ready.exists() or ready.stat().st_mtime < (ROOT / "pyproject.toml").stat().st_mtime:
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
        subprocess.run(
            [
                python,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "-e",
                ".[dev]",
            ],
            cwd=ROOT,
            check=True,
        )
        ready.touch()
    tests = [
        "-n",
        "auto",
        "--maxprocesses",
        "4",
        "--dist",
        "loadfile",
        "-m",
        "not ray and not spark",
        "-q",
        *arguments,
    ]
    return subprocess.run([python, "-m", "pytest", *tests], cwd=ROOT, check=False).returncode == 0


def main(arguments: list[str]) -> int:
    found = interpreters()
    missing = [f"3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1) if (3, minor) not in found]
    passed = {}
    for version, interpreter in found.items():
        print(f"== Python {version[0]}.{version[1]}: {interpreter}", flush=True)
        passed[version] = run_tests(version, interpreter, arguments)
    for version, well in passed.items():
        print(f"Python {version[0]}.{version[1]}: {'passed' if well else 'FAILED'}")
    print(f"not on this machine: {', '.join(missing) or 'none'}")
    return 0 if passed and all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
