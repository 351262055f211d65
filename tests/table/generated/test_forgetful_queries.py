"""With table.exec.state.ttl a drawn query forgets what a model in plain Python forgets."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.sql.planning import session_of
from tests.table.generated.forgetful_queries import Drawing, NotKeptError
from tests.table.generated.jobs_by_hand import JobByHand

TTL = 10  # seconds
NAMES = ("k", "v")
SESSION = session_of(
    "CREATE TABLE a (k INT, v BIGINT, pt AS PROCTIME()); "
    "CREATE TABLE b (k INT, v BIGINT, pt AS PROCTIME());"
)
ADDS = (0, 2)


def check(seed: int) -> int:
    """How many changes the query has given."""
    random = Random(seed)
    drawn = Drawing(random, TTL * 1000).query()
    job = JobByHand(
        SESSION, f"SELECT k, v FROM ({drawn.text}) AS q", {"table.exec.state.ttl": f"{TTL} s"}
    )
    now, count = 0, 0
    wanted: Counter[Any] = Counter()
    found: Counter[Any] = Counter()
    steps: list[str] = []
    for _ in range(random.choice([10, 30])):
        wait = random.choice([0, 0, 1, 4, 9, 10, 11])
        job.wait(wait)
        now += wait * 1000
        table = random.choice("ab")
        row = random.choice([None, 0, 1, 1, 2]), random.choice([None, 0, 1, 2, 3])
        steps.append(f"{now // 1000} s: {table} {row}")
        for kind, given_row in job.push(table, NAMES, [row]):
            found[given_row] += 1 if kind in ADDS else -1
            count += 1
        try:
            for comes, expected in drawn.model.take(table, row, now):
                wanted[expected] += 1 if comes else -1
        except NotKeptError:
            return count
        left, meant = (
            {each: number for each, number in counts.items() if number}
            for counts in (found, wanted)
        )
        assert left == meant, f"{drawn.text}\n" + "\n".join(steps)
    return count


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**48))
@example(52)  # a row goes that a group above has forgotten
def test_a_drawn_query_forgets_what_the_model_forgets(seed: int) -> None:
    check(seed)


@pytest.mark.wide
def test_such_queries_give_changes() -> None:
    assert sum(check(seed) > 2 for seed in range(24)) > 10
