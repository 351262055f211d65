"""``python -m tests.mutants [WORD …]``: breaks each rule whose name has one of the words (all, without words) in a copy of the tree, runs the tests
that must catch it, and says which mutants live. The working tree is not touched. Exit code 1 when one lives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.mutants.mutants import MUTANTS, Mutant, applied

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("flinkpy", "actors", "scheduler", "network", "tests", "pyproject.toml")
PATIENCE_S = 300  # a mutant that makes its tests hang is caught, too


def main() -> int:
    chosen = [mutant for mutant in MUTANTS if not sys.argv[1:] or any(word in mutant.rule for word in sys.argv[1:])]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in PARTS:
            copied(ROOT / part, copy / part)
        named = sorted({test for mutant in chosen for test in mutant.tests if not test.startswith("-")})
        if (whole := tested(named, copy)).returncode != 0:
            print(whole.stdout)
            sys.exit("the tests fail without a mutant: mend them first")
        living = [mutant for mutant in chosen if not is_caught(mutant, copy)]
    print(f"{len(chosen)} mutants, {len(living)} live")
    return 1 if living else 0


def copied(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    else:
        shutil.copy(source, target)


def is_caught(mutant: Mutant, copy: Path) -> bool:
    """Whether its tests fail in the copy with it, which is whole again afterwards."""
    file = copy / mutant.file
    original = file.read_text(encoding="utf-8")
    file.write_text(applied(mutant, original), encoding="utf-8")
    try:
        ended = tested(mutant.tests, copy)
        verdict = {0: "LIVES", 1: "caught"}.get(ended.returncode, "broken")
    except subprocess.TimeoutExpired:
        verdict = "caught"
    finally:
        file.write_text(original, encoding="utf-8")
    print(f"{verdict:7} {mutant.rule}", flush=True)
    if verdict == "broken":
        print("\n".join(ended.stdout.splitlines()[-8:]))
    return verdict == "caught"


def tested(tests: Iterable[str], copy: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


if __name__ == "__main__":
    sys.exit(main())
