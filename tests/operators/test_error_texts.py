"""What is told of an error in a user's function, whatever that error is made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.operators.rows.stateless import FlatMapOperator, MapOperator
from tests.operators.harness import ChainHarness, linear


def failure_of(function: Callable[[Any], Any]) -> UserCodeError:
    with pytest.raises(UserCodeError) as caught:
        ChainHarness(linear(MapOperator(function))).push([7])
    assert caught.value.record == "7"
    return caught.value


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise self.args[0]


@pytest.mark.parametrize("another", [RuntimeError, SystemExit, KeyboardInterrupt])
def test_an_error_whose_text_raises_is_named_all_the_same_with_line_and_record(
    another: type[BaseException],
) -> None:
    def fails(value: int) -> int:
        raise Unspeakable(another)

    error = failure_of(fails)
    assert error.cause == f"Unspeakable, whose text raises {another.__name__}"
    assert [frame.function for frame in error.frames] == ["fails"]


def test_an_error_without_text_is_its_name() -> None:
    def fails(value: int) -> int:
        raise AssertionError

    assert failure_of(fails).cause == "AssertionError"


def test_an_error_tells_its_notes_and_what_it_was_raised_from() -> None:
    def fails(value: int) -> int:
        try:
            return value // 0
        except ZeroDivisionError as cause:
            error = ValueError("bad ratio")
            error.__dict__["__notes__"] = ["of roof"]  # what add_note does, from Python 3.11 on
            raise error from cause

    assert failure_of(fails).cause.startswith(
        "ValueError: bad ratio\nof roof (raised from ZeroDivisionError: "
    )


def test_errors_raised_from_each_other_in_a_ring_are_told_once() -> None:
    def fails(value: int) -> int:
        one, two = ValueError("one"), ValueError("two")
        one.__cause__, two.__cause__ = two, one
        raise one

    assert failure_of(fails).cause == "ValueError: one (raised from ValueError: two)"


def test_a_very_long_text_is_cut() -> None:
    def fails(value: int) -> int:
        raise ValueError("y" * 1_000_000)

    cause = failure_of(fails).cause
    assert (cause[:15], cause[-2:]) == ("ValueError: yyy", "y…")
    assert len(cause) < 5_000


def test_endless_recursion_shows_both_ends_of_its_frames_and_how_many_are_left_out() -> None:
    def deeper(value: int) -> int:
        return deeper(value)

    error = failure_of(deeper)
    assert error.cause.startswith("RecursionError: maximum recursion depth exceeded")
    assert len(error.frames) == 16
    assert [frame.text for frame in error.frames if "more frames" in frame.text] == [
        error.frames[7].text
    ]
    assert str(error).count("return deeper(value)") == 16


def test_a_generator_that_lets_a_stop_iteration_out_is_shown_with_its_line() -> None:
    def first_of_nothing(value: int) -> Iterator[int]:
        yield next(iter(()))

    with pytest.raises(UserCodeError) as caught:
        ChainHarness(linear(FlatMapOperator(first_of_nothing))).push([7])
    assert caught.value.cause.startswith("RuntimeError: generator raised StopIteration")
    assert [(frame.function, frame.text) for frame in caught.value.frames] == [
        ("first_of_nothing", "yield next(iter(()))")
    ]


def test_frames_of_libraries_are_shown_behind_the_users_own_only() -> None:
    def fails(value: int) -> object:
        return json.loads("{")

    behind = [frame.function for frame in failure_of(fails).frames]
    assert (behind[0], behind[-1]) == ("fails", "raw_decode")
    alone = failure_of(json.JSONDecoder().decode)  # of 7, which is no text
    assert (alone.cause.partition(":")[0], alone.frames) == ("TypeError", ())


def test_an_error_of_flinkpys_that_a_function_raises_has_its_line_and_record_too() -> None:
    def fails(value: int) -> int:
        raise ProgramError("not today")

    with pytest.raises(ProgramError) as caught:
        ChainHarness(linear(MapOperator(fails))).push([7])
    told = str(caught.value)
    assert told.startswith("not today\n")
    assert 'raise ProgramError("not today")' in told
    assert told.endswith("on record 7"), told


def test_an_error_about_a_result_names_the_line_of_the_function_that_gave_it() -> None:
    error = failure_of_flat_map(lambda value: value)  # THE LINE
    assert error.cause.startswith("TypeError: 'int' object is not iterable; a function with any")
    assert [frame.text.endswith("# THE LINE") for frame in error.frames] == [True]


def failure_of_flat_map(function: Callable[[Any], Any]) -> UserCodeError:
    with pytest.raises(UserCodeError) as caught:
        ChainHarness(linear(FlatMapOperator(function))).push([7])
    return caught.value
