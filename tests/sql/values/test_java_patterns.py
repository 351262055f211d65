"""Patterns mean in SQL what they mean in Java."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from flinkpy.columns.sql.call_site import VARYING, CallSite
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.regex_kernels import REGEX_KERNELS, arrow_pattern
from flinkpy.columns.sql.sql_meanings.texts.java_patterns import java_pattern, java_split
from flinkpy.common.logical_types.logical_type import BooleanType, IntegerType, VarCharType


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


TEXT = VarCharType()
ATOMS = ["a", "&", "é", ".", "\\.", "\\d", "\\W", "[^&]", "[a-c\\.]", "[\\w=]"]
TIMES = ["", "*", "+?", "??"]
AROUND = ["{}", "({})", "b{}c", "^{}&", "(b|{}|^)c", "{}|bc", "(a?)({})(&|$)", "({}b)+"]
TEXTS = [
    None,
    "",
    "a",
    "aab",
    "bc",
    "bac",
    "b.c&",
    "&&a&",
    "éa1",
    "a\nb",
    "b\u2028c",
    "a\r",
    "a=1&c",
]


def test_arrow_finds_what_python_finds() -> None:
    texts, arrow = pa.array(TEXTS, pa.string()), 0
    for around, atom, times in itertools.product(AROUND, ATOMS, TIMES):
        pattern = around.format(atom + times)
        arrow += arrow_pattern(pattern) is not None
        for name, more in (("REGEXP", ()), ("REGEXP_SUBSTR", ()), ("REGEXP_EXTRACT", (1,))):
            arguments = (TEXT, TEXT, *(IntegerType() for _ in more))
            result = BooleanType() if name == "REGEXP" else TEXT
            site = CallSite(arguments, result, (VARYING, pattern, *more))
            kernels = REGEX_KERNELS[name](site), by_value(name)(site)
            operands = [texts, pa.scalar(pattern), *map(pa.scalar, more)]
            found, wanted = (each(len(texts), *operands).to_pylist() for each in kernels)
            assert found == wanted, (name, pattern)
    assert arrow == 6 * len(ATOMS) * len(TIMES)


def test_patterns_that_the_engines_may_read_differently_are_left_to_python() -> None:
    same = ["(&|^)channel_id=([^&]*)", "a|b", "(a|b)c", "\\d+x??", "^a.*", "[a-z&]+"]
    others = ["", "a$", "(a)|b", "(a)*", "((a))", "a{2}", "a*+", "\\s", "\\bx", "(?i)a", "[a&&b]"]
    others += ["[[a]]", "a)", "(a", "*a", "\\1", "\\Qa\\E", "[^]a]", "a**"]
    assert [each for each in same if arrow_pattern(each) is None] == []
    assert [each for each in others if arrow_pattern(each) is not None] == []
