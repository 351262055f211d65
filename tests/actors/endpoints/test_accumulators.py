"""Accumulators of a job's subtasks become one."""

from __future__ import annotations

from typing import Any

import pytest

from flinkpy.actors.job_master.job_report import merge_accumulators


class Histogram:
    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts

    def merge(self, other: Histogram) -> None:
        for word, count in other.counts.items():
            self.counts[word] = self.counts.get(word, 0) + count


class Longest:
    def __init__(self, text: str) -> None:
        self.text = text

    def merge(self, other: Longest) -> Longest:
        return max(self, other, key=lambda each: len(each.text))


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [(1, 2, 3), ([1], [2], [1, 2]), ({1}, {2}, {1, 2}), ((1,), (2,), (1, 2)), ("a", "b", "b")],
)
def test_plain_values_merge_by_their_kind(one: Any, other: Any, merged: Any) -> None:
    assert merge_accumulators({"a": one, "b": 1}, {"a": other}) == {"a": merged, "b": 1}


def test_an_object_merges_by_its_own_method_and_stays_as_it_was_reported() -> None:
    first, second = Histogram({"a": 1}), Histogram({"a": 2, "b": 1})
    for _ in range(2):  # a result may be asked for more than once
        assert merge_accumulators({"h": first}, {"h": second})["h"].counts == {"a": 3, "b": 1}
    assert first.counts == {"a": 1}


def test_what_merge_returns_counts() -> None:
    assert merge_accumulators({"l": Longest("ab")}, {"l": Longest("abc")})["l"].text == "abc"
