"""``python -m tests.mutants [WORD …]``: breaks each rule whose name has one of the words (all,
without words) in a copy of the tree, runs the tests that must catch it, and says which mutants
live, on the page docs/mutants.md, too. No other file of the working tree is touched. Those that
real programs in the simulation must notice are given seeds until one fails. Exit code 1 when one
lives."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.mutants.mutants import MUTANTS, PROGRAMS, Mutant
from tests.simulation.seeds import PROGRAM_SEEDS

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("flinkpy", "actors", "scheduler", "network", "tests", "pyproject.toml")
PAGE = ROOT / "docs" / "mutants.md"
HEAD = (
    "# Mutants",
    "",
    (
        "A mutant breaks one rule in a copy of the tree. `tests/mutants/mutants.py` lists "
        "each and the tests that must fail; this page says if they do."
    ),
    (
        "`make mutants` tries all of them and writes this page. An ordinary test checks that "
        "each mutant can still be made and is listed here."
    ),
    "",
    (
        "With a number of seeds: the mutant was found by real programs in the simulation, by "
        "comparing what they commit with an undisturbed run, and by"
    ),
    (
        "what must always hold. Seeds are played from 0 on until one fails; the tests play "
        f"the first {PROGRAM_SEEDS}."
    ),
    "",
    (
        "Where a row names several files, several rules guard the same, and are broken "
        "together: what an old attempt says of a checkpoint is not heard"
    ),
    (
        "from a task that has ended, not counted for another checkpoint, and not counted for "
        "another attempt."
    ),
)
CAUGHT, LIVES, BROKEN, NEVER = "caught", "LIVES", "broken", "not tried yet"
PATIENCE_S = 1800  # a mutant that makes its tests hang is caught, too
MOST_SEEDS = 2000
PLAYED = re.compile(r"^(\d+) seeds, 1 failed", re.MULTILINE)


def main() -> int:
    chosen = [
        mutant
        for mutant in MUTANTS
        if not sys.argv[1:] or any(word in mutant.rule for word in sys.argv[1:])
    ]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in PARTS:
            copied(ROOT / part, copy / part)
        named = sorted(
            {
                test
                for mutant in chosen
                for test in mutant.tests
                if not test.startswith("-") and mutant.tests != PROGRAMS
            }
        )
        if named and (whole := tested(named, copy)).returncode != 0:
            print(whole.stdout)
            sys.exit("the tests fail without a mutant: mend them first")
        verdicts = {mutant.rule: verdict(mutant, copy) for mutant in chosen}
    living = sum(not each.startswith(CAUGHT) for each in verdicts.values())
    print(f"{len(chosen)} mutants, {living} live")
    PAGE.write_text(page({**known_verdicts(), **verdicts}), encoding="utf-8")
    return 1 if living else 0


def known_verdicts() -> dict[str, str]:
    """What the page says, by rule."""
    rows = [
        line.strip("| ").split(" | ")
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    return {row[0]: row[-1] for row in rows if len(row) == 3}


def page(verdicts: Mapping[str, str]) -> str:
    """What was found of each when it was last tried."""
    found = {mutant: verdicts.get(mutant.rule, NEVER) for mutant in MUTANTS}
    rows = [f"| {mutant.rule} | {files(mutant)} | {verdict} |" for mutant, verdict in found.items()]
    living = sum(not verdict.startswith(CAUGHT) for verdict in found.values())
    return "\n".join(
        [
            *HEAD,
            "",
            f"Of {len(rows)} mutants, the tests let {living} live.",
            "",
            "| rule | broken in | |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def files(mutant: Mutant) -> str:
    return ", ".join(f"`{change.file}`" for change in mutant.changes)


def copied(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(
            source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )
    else:
        shutil.copy(source, target)


def verdict(mutant: Mutant, copy: Path) -> str:
    """What its tests say in the copy with it, which is whole again afterwards."""
    originals = {
        copy / change.file: (copy / change.file).read_text(encoding="utf-8")
        for change in mutant.changes
    }
    for change in mutant.changes:
        (copy / change.file).write_text(
            change.applied(originals[copy / change.file]), encoding="utf-8"
        )
    try:
        ended = played(copy) if mutant.tests == PROGRAMS else tested(mutant.tests, copy)
        found = {0: LIVES, 1: CAUGHT}.get(ended.returncode, BROKEN)
        if found == CAUGHT and mutant.tests == PROGRAMS:
            count = PLAYED.search(ended.stdout)
            found = BROKEN if count is None else f"{CAUGHT} after {seeds(int(count[1]))}"
        if found == BROKEN:
            print("\n".join(ended.stdout.splitlines()[-8:]))
    except subprocess.TimeoutExpired:
        found = CAUGHT
    finally:
        for file, original in originals.items():
            file.write_text(original, encoding="utf-8")
    print(f"{found:7} {mutant.rule}", flush=True)
    return found


def seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def played(copy: Path) -> subprocess.CompletedProcess[str]:
    """Seeds of real programs, until one fails."""
    return run(
        [
            "flinkpy.testing.simulation",
            "--programs",
            "--seeds",
            f"0:{MOST_SEEDS}",
            "-j",
            "2",
            "--until-failure",
        ],
        copy,
    )


def tested(tests: Iterable[str], copy: Path) -> subprocess.CompletedProcess[str]:
    return run(["pytest", "-x", "-q", "-p", "no:cacheprovider", *tests], copy)


def run(module: list[str], copy: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", "-m", *module]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    process = subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        told, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the processes that it has started
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, told)


if __name__ == "__main__":
    sys.exit(main())
