"""docs/sql/functions.md says what is so."""

from __future__ import annotations

from tests.sql.functions.function_page import PAGE, function_texts, functions_of_page, page


def test_the_page_of_functions_is_made_from_the_registry_and_its_examples_give_what_it_says() -> (
    None
):
    assert PAGE.read_text(encoding="utf-8") == page(), (
        f"write {PAGE.name} again: python -m tests.sql.functions.function_page"
    )


def test_every_function_has_its_sentence_and_nothing_else_has_one() -> None:
    assert function_texts().keys() == {each.name for _, each in functions_of_page()}
