"""What a function keeps of what it gives for a plain value is read off its bytecode."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flinkpy.core.codegen.escape_analysis import Kind, kind_of_results
from flinkpy.core.mutability import ATOMS
from flinkpy.datastream import FlatMapFunction
from flinkpy.testing import CollectingSink, embedded_environment

KEPT: Any = []
TABLE: dict[str, Any] = {"list": []}
SEPARATOR = ","


class Holder:
    kept: list[Any] = []

    def of_self(self, line: str) -> Any:
        return self.kept

    def self_itself(self, line: str) -> Any:
        return [self]

    def yielding_self(self, line: str) -> Any:
        yield self

    def through_a_cell(self, line: str) -> Any:
        return [self for _ in line]

    def storing(self, line: str) -> Any:
        self.kept = [line]
        return self.kept

    def nothing_of_self(self, line: str) -> Any:
        return [(word, 1) for word in line.split()]


def stores_a_global(line: str) -> Any:
    global KEPT
    KEPT = [line]
    return KEPT


def appends_to_a_global(line: str) -> Any:
    KEPT.append(line)
    return 1


def changes_a_global_of_its_own_list(line: str) -> Any:
    made = [line]
    TABLE["list"] = made
    return made


def keeps_in_default(line: str, kept: list[Any] = []) -> Any:  # noqa: B006
    kept.append(line)
    return kept


def keeps_in_attribute(line: str) -> Any:
    keeps_in_attribute.kept = [line]  # type: ignore[attr-defined]
    return 1


def gives_one_object_twice(line: str) -> Any:
    made = [line]
    return [made, made]


def gives_of_dict_twice(line: str) -> Any:
    made = dict(a=[line])
    return [made["a"], made.get("a")]


def gives_the_greater_list_twice(line: str) -> Any:
    made = max([line], [line])
    return [made, made]


def gives_a_sum_twice(line: str) -> Any:
    made = sum([], [])  # type: ignore[var-annotated]  # noqa: RUF017
    return [made, made]


def gives_what_it_caught(line: str) -> Any:
    try:
        return int(line)
    except ValueError:
        return KEPT


def yields_and_changes(line: str) -> Any:
    made = [line]
    yield made
    made.append(line)
    yield made


def puts_a_list_into_a_list(line: str) -> Any:
    made: list[Any] = []
    inner = [line]
    made.append(inner)
    made.append(inner)
    return made


def puts_a_list_through_another_name(line: str) -> Any:
    made: list[Any] = []
    same, inner = made, [line]
    same += [inner, inner]
    return made


def stores_into_a_place(line: str) -> Any:
    made: list[Any] = [1, 2]
    inner = [line]
    made[0] = made[1] = inner
    return made


def in_a_loop(line: str) -> Any:
    made: Any = line
    for _ in range(2):
        made = [made, made]
    return made


def closed_over() -> Callable[[str], Any]:
    kept: list[Any] = []
    return lambda line: kept


def setting_a_cell() -> Callable[[str], Any]:
    made: list[Any] = []

    def function(line: str) -> Any:
        nonlocal made
        made = [line]
        return 1

    return function


KEEPS: list[Any] = [
    stores_a_global,
    appends_to_a_global,
    changes_a_global_of_its_own_list,
    keeps_in_default,
    keeps_in_attribute,
    gives_what_it_caught,
    closed_over(),
    setting_a_cell(),
    puts_a_list_into_a_list,
    puts_a_list_through_another_name,
    stores_into_a_place,
    Holder().of_self,
    Holder().self_itself,
    Holder().yielding_self,
    Holder().through_a_cell,
    Holder().storing,
    gives_of_dict_twice,
    gives_the_greater_list_twice,
    gives_a_sum_twice,
    lambda line: KEPT,
    lambda line: TABLE["list"],
    lambda line: (line, KEPT),
    lambda line: [word + "" for word in KEPT],
    lambda line: line.split(SEPARATOR),
    lambda line: print(line),
    lambda line: KEPT.append(line),
    lambda line: KEPT if line else 1,
    lambda line: [KEPT.append(word) for word in line],
    lambda line: f"{KEPT}",
    lambda line: eval(line),
    lambda line: lambda: KEPT,
    lambda line: [KEPT for _ in line],
    lambda line: (yield KEPT),
    lambda line: line.__class__,
    lambda line: globals(),
    lambda line: sorted(line, key=KEPT.append),
    len,
    str,
    Holder,
    lambda line, other: line,
    lambda *lines: lines,
    lambda line, **more: more,
    lambda line: line.encode("mine"),
]


@pytest.mark.parametrize(
    "function", KEEPS, ids=lambda each: getattr(each, "__qualname__", repr(each))
)
def test_what_may_keep_something_is_not_taken_for_one_that_does_not(function: Any) -> None:
    assert kind_of_results(function) is None


@pytest.mark.parametrize(
    "function",
    [gives_one_object_twice, yields_and_changes, in_a_loop, lambda line: [[word] for word in line]],
)
def test_new_objects_may_stand_twice_in_what_is_given(function: Any) -> None:
    assert kind_of_results(function) is Kind.NEW


def pairs(line: str) -> Any:
    return [(word, 1) for word in line.split(" ")]


def yielded(line: str) -> Any:
    for number, word in enumerate(line.lower().split()):
        if word:
            yield word, len(line) if number else None


def gathered(line: str) -> Any:
    out = []
    for word in line.split(","):
        if len(word) > 2:
            out.append((word, len(line)))
        else:
            out += [(word.strip(), 0)]
    return out


def reads_its_argument_within(line: str) -> Any:
    return [(word, line) for word in line.split()]


@pytest.mark.parametrize(
    "function",
    [
        pairs,
        yielded,
        gathered,
        reads_its_argument_within,
        Holder().nothing_of_self,
        lambda line: line.split(),
        lambda line: (line, line.upper()),
        lambda line: {word: len(word) for word in line.split()},
    ],
)
def test_usual_functions_of_a_text_are_read(function: Any) -> None:
    found = kind_of_results(function)
    assert found is not None
    assert found <= Kind.FLAT


# -- programs made at random -----------------------------------------------------------------------

NAMES = ["x", "a", "b"]
EXPRESSIONS = st.recursive(
    st.sampled_from([*NAMES, "1", "'k'", "[]", "{}", "KEPT", "[x]", "x.split()", "list(x)"]),
    lambda part: st.one_of(
        st.builds("[{}, {}]".format, part, part),
        st.builds("({}, {})".format, part, part),
        st.builds("{{'k': {}}}".format, part),
        st.builds("[each for each in {}]".format, part),
        st.builds("[{} for each in {}]".format, part, part),
        st.builds("({})[0]".format, part),
        st.builds("({})[:1]".format, part),
        st.builds("({} + {})".format, part, part),
        st.builds("({} or {})".format, part, part),
        st.builds("({} if {} else {})".format, part, part, part),
        st.builds("max({}, {})".format, part, part),
        st.builds("max({})".format, part),
        st.builds("dict(k={})".format, part),
        st.builds("({}).get('k', {})".format, part, part),
        st.builds("list(zip({}, {}))".format, part, part),
        st.builds("sorted({})".format, part),
        st.builds("({}).copy()".format, part),
        st.builds("({}).pop()".format, part),
        st.builds("({}).setdefault('k', {})".format, part, part),
        st.builds("tuple({})".format, part),
        st.builds("str({})".format, part),
    ),
    max_leaves=5,
)
STATEMENTS = st.one_of(
    st.builds("{} = {}".format, st.sampled_from(NAMES[1:]), EXPRESSIONS),
    st.builds("{} += {}".format, st.sampled_from(NAMES[1:]), EXPRESSIONS),
    st.builds("{}.append({})".format, st.sampled_from(NAMES), EXPRESSIONS),
    st.builds("{}[0] = {}".format, st.sampled_from(NAMES), EXPRESSIONS),
    st.builds("for a in {}: b = {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("if {}: a = {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("yield {}".format, EXPRESSIONS),
    st.builds("a, b = {}".format, EXPRESSIONS),
)


def function_of(statements: list[str], result: str) -> tuple[Any, list[Any]]:
    kept: list[Any] = [["kept"]]
    source = "\n    ".join(["def made(x):", "a = x", "b = [x]", *statements, f"return {result}"])
    names: dict[str, Any] = {"KEPT": kept}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of what can only fail
        exec(source, names)
    return names["made"], kept


def mutable_within(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value, *(each for part in value.values() for each in mutable_within(part))]
    if isinstance(value, (list, tuple)):
        return [
            *([value] if isinstance(value, list) else []),
            *(each for part in value for each in mutable_within(part)),
        ]
    return [] if type(value) in ATOMS else [value]


def _given(function: Any, argument: str) -> Any:
    given = function(argument)
    return list(given) if hasattr(given, "__next__") else given


@given(st.lists(STATEMENTS, max_size=4), EXPRESSIONS, st.sampled_from(["", "two words", "k"]))
@example(["a = dict(k=[x])"], "[a.get('k'), a.get('k')]", "k")
@example(["b = a = []", "b += [[x]]"], "[a[0], a[0]]", "k")
@example(["yield KEPT"], "1", "k")
def test_what_was_read_holds_when_the_function_is_called(
    statements: list[str], result: str, argument: str
) -> None:
    function, kept = function_of(statements, result)
    found = kind_of_results(function)
    if found is None:
        return
    try:
        first, second = _given(function, argument), _given(function, argument)
    except (TypeError, ValueError, AttributeError, IndexError, KeyError, UnboundLocalError):
        return
    theirs = {id(each) for each in mutable_within(first)}
    assert not theirs & {id(each) for each in mutable_within(kept)}
    assert not theirs & {id(each) for each in mutable_within(second)}
    if found is Kind.FIXED:
        assert not theirs
    if found is Kind.FLAT and isinstance(first, (list, tuple)):
        assert not [each for part in first for each in mutable_within(part)]


# -- in a program ----------------------------------------------------------------------------------


class Splits(FlatMapFunction):
    def flat_map(self, value: str) -> Any:
        return [(word, 1) for word in value.split()]


def appending(value: Any) -> Any:
    if isinstance(value, list):
        value.append(0)
    return value


@pytest.mark.parametrize(
    "function",
    [
        pairs,
        yielded,
        gathered,
        gives_one_object_twice,
        yields_and_changes,
        in_a_loop,
        puts_a_list_into_a_list,
        lambda line: KEPT.append(line) or [KEPT],
        Splits(),
    ],
)
def test_results_are_the_same_whether_the_function_was_read_or_not(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def results() -> Any:
        KEPT.clear()
        sink = CollectingSink()
        embedded = embedded_environment()
        embedded.from_collection(["two words", "a,bcd", ""]).flat_map(function).map(
            appending
        ).sink_to(sink)
        embedded.execute()
        return sink.values

    read = results()
    monkeypatch.setattr("flinkpy.operators.chain.fusion.kind_of_results", lambda function: None)
    assert read == results()
