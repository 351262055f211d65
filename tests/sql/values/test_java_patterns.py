"""Patterns mean in SQL what they mean in Java."""

from __future__ import annotations

import pytest

from flinkpy.columns.sql.sql_meanings.texts.java_patterns import java_pattern, java_split


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a.c", "a\rc", None),
        ("(?s)a.c", "a\rc", "a\rc"),
        ("b$", "b\r\n", "b"),
        ("(?m)^b", "a\rb", "b"),
        ("\\w+", "éab", "ab"),
        ("\\p{Punct}", "a-", "-"),
        ("\\Qa.b\\E+", "a.bb", "a.bb"),
        ("(?<x>a)\\k<x>", "aa", "aa"),
        ("\\(?P", "P", "P"),
        ("[^\\d,{]+", "1,{x", "x"),
    ],
)
def test_a_pattern_finds_what_java_finds(pattern: str, text: str, found: str | None) -> None:
    compiled = java_pattern(pattern)
    assert compiled is not None
    match = compiled.search(text)
    assert (match and match.group()) == found


@pytest.mark.parametrize("pattern", ["(", "*a", "[a", "a{,2}", "a{", "(?P<a>b)", "a)"])
def test_what_java_refuses_is_no_pattern(pattern: str) -> None:
    assert java_pattern(pattern) is None


@pytest.mark.parametrize(
    "pattern", ["a++", "(?>a)", "(?s:.)", "[a&&b]", "[a[b]]", "\\p{L}", "\\h", "(?<=a|bb)c"]
)
def test_what_only_java_can_compute_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="flinkpy cannot compute"):
        java_pattern(pattern)


def test_a_text_is_split_as_in_java() -> None:
    comma, empty = java_pattern(","), java_pattern("")
    assert comma is not None
    assert empty is not None
    assert java_split(comma, ",a,,") == ["", "a"]
    assert java_split(comma, ",") == []
    assert java_split(comma, "a,b,c", 2) == ["a", "b,c"]
    assert java_split(empty, "abc") == ["a", "b", "c"]
