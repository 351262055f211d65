"""``python -m tests.mutants [WORD …]``: breaks each rule whose name has one of the words (all, without words) in a copy of the tree, runs the tests
that must catch it, and says which mutants live; of all of them on the page docs/mutants.md, too. No other file of the working tree is touched.
Exit code 1 when one lives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.mutants.mutants import MUTANTS, Mutant, applied

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("flinkpy", "actors", "scheduler", "network", "tests", "pyproject.toml")
PAGE = ROOT / "docs" / "mutants.md"
HEAD = (
    "# Mutants", "",
    "A mutant breaks one rule in a copy of the tree. `tests/mutants/mutants.py` lists each and the tests that must fail; this page says if they do.",
    "`make mutants` tries all of them and writes this page. An ordinary test checks that each mutant can still be made and is listed here.",
)
CAUGHT, LIVES = "caught", "LIVES"
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
        verdicts = {mutant: verdict(mutant, copy) for mutant in chosen}
    living = sum(each != CAUGHT for each in verdicts.values())
    print(f"{len(chosen)} mutants, {living} live")
    if len(chosen) == len(MUTANTS):
        PAGE.write_text(page(verdicts), encoding="utf-8")
    return 1 if living else 0


def page(verdicts: Mapping[Mutant, str]) -> str:
    """What the last run of all has found."""
    rows = [f"| {mutant.rule} | `{mutant.file}` | {found} |" for mutant, found in verdicts.items()]
    living = sum(found != CAUGHT for found in verdicts.values())
    return "\n".join([*HEAD, "", f"Of {len(rows)} mutants, the tests let {living} live.", "", "| rule | broken in | |", "|---|---|---|", *rows, ""])


def copied(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    else:
        shutil.copy(source, target)


def verdict(mutant: Mutant, copy: Path) -> str:
    """What its tests say in the copy with it, which is whole again afterwards."""
    file = copy / mutant.file
    original = file.read_text(encoding="utf-8")
    file.write_text(applied(mutant, original), encoding="utf-8")
    try:
        ended = tested(mutant.tests, copy)
        found = {0: LIVES, 1: CAUGHT}.get(ended.returncode, "broken")
        if found == "broken":
            print("\n".join(ended.stdout.splitlines()[-8:]))
    except subprocess.TimeoutExpired:
        found = CAUGHT
    finally:
        file.write_text(original, encoding="utf-8")
    print(f"{found:7} {mutant.rule}", flush=True)
    return found


def tested(tests: Iterable[str], copy: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


if __name__ == "__main__":
    sys.exit(main())
