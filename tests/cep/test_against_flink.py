"""Random patterns and the table of cases against Flink's own automaton, where Java and Flink's jars
are: ``FLINK_LIB`` names the folder with ``flink-cep-*.jar`` and ``flink-dist-*.jar``."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from flinkpy.core.errors import ProgramError
from tests.cep.pattern_texts import RandomPatterns, events_of, found_by, pattern_of
from tests.cep.test_cases import CASES

LIB = os.environ.get("FLINK_LIB", "")
DRIVER = Path(__file__).parent / "flink" / "CepDriver.java"
Case = tuple[str, str, str]  # skip, pattern, events
# Refused, where Flink runs in circles for ever, or fails, once such an event comes
REFUSED = ("in a loop may be empty", "greedy() with until(...) is not possible here")

pytestmark = pytest.mark.skipif(
    not (LIB and shutil.which("java") and shutil.which("javac")),
    reason="needs Java, and FLINK_LIB with Flink's jars",
)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("classes")
    jars = ":".join(glob.glob(f"{LIB}/*.jar"))
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", folder, DRIVER], check=True)
    return f"{folder}:{jars}"


def flink_finds(classes: str, cases: list[Case]) -> list[str]:
    lines = "".join(f"{' | '.join(case)}\n" for case in cases)
    options = ["-Xmx600m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    driver = subprocess.run(
        ["java", *options, "-cp", classes, "CepDriver"],
        input=lines,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=280,
        check=True,
    )
    return driver.stdout.splitlines()


def ours(case: Case) -> str:
    skip, pattern, events = case
    try:
        return " ".join(found_by(pattern_of(pattern, skip), events_of(events)))
    except ProgramError as error:
        return f"! {error}"


def test_the_table_of_cases_says_what_flink_says(classes: str) -> None:
    cases = [
        (skip, pattern, " ".join(f"{event}@{time}" for event, time in events_of(events)))
        for pattern, skip, events, _ in CASES
    ]
    different = [
        (case, flink, our)
        for case, flink in zip(cases, flink_finds(classes, cases))
        if sorted((our := ours(case)).split()) != sorted(flink.split())
    ]
    assert different == []


def test_random_patterns_find_what_flink_finds(classes: str) -> None:
    """At least 99 %; the others have a skip strategy, and matches that begin with the same
    event."""
    texts = RandomPatterns(int(os.environ.get("SEED", "1")))
    drawn = [texts.case() for _ in range(int(os.environ.get("CASES", "1000")))]
    found_by_us = {case: ours(case) for case in drawn}
    cases = {
        case: found
        for case, found in found_by_us.items()
        if not any(reason in found for reason in REFUSED)
    }
    compared = same = 0
    for (case, found), flink in zip(cases.items(), flink_finds(classes, list(cases)), strict=True):
        if flink.startswith("!"):
            # Flink's compiler fails at some patterns that mean something; others take it too long
            is_flinks_own = "NullPointer" in flink or flink == "! for ever"
            assert found.startswith("!") or is_flinks_own, (case, flink, found)
            continue
        compared += 1
        if sorted(flink.split()) == sorted(found.split()):
            same += 1
        else:
            assert case[0] != "none", (case, flink, found)
    print(f"{same} of {compared} patterns find the same")
    assert same >= 0.99 * compared > 0
