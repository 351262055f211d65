"""Every mutant can be made, and the tests that must catch it are there. Whether they do, ``make
mutants`` tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule)
def test_the_text_a_mutant_replaces_is_there_once_and_so_are_its_tests(mutant: Mutant) -> None:
    for change in mutant.changes:
        text = (ROOT / change.file).read_text(encoding="utf-8")
        broken = change.applied(text)
        assert broken != text
        compile(broken, change.file, "exec")
    # each is applied to the file as it is
    assert len({change.file for change in mutant.changes}) == len(mutant.changes)
    for test in (each for each in mutant.tests if not each.startswith("-")):
        file, _, name = test.partition("::")
        assert (f"def {name}(" if name else "") in (ROOT / file).read_text(encoding="utf-8"), test


def test_the_page_has_every_rule_as_the_last_run_of_all_found_it() -> None:
    rows = [
        line.split(" | ")[0].removeprefix("| ")
        for line in (ROOT / "docs" / "mutants.md").read_text(encoding="utf-8").splitlines()
    ]
    assert rows[rows.index("|---|---|---|") + 1 :] == [mutant.rule for mutant in MUTANTS]


def test_no_mutant_lived_when_it_was_tried_last() -> None:
    rows = [
        line
        for line in (ROOT / "docs" / "mutants.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    assert [row for row in rows[1:] if " | caught" not in row] == []


def test_every_rule_has_a_name_of_its_own() -> None:
    assert len({mutant.rule for mutant in MUTANTS}) == len(MUTANTS)
