"""Changelogs as they may come: nulls, ties and NaN in them, updates in two parts, restarts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.relational.changing_subtasks import RESTART, Change

ROWS = pa.schema([("k", pa.int64()), ("name", pa.string()), ("v", pa.float64()), ("n", pa.int64())])
NAN = float("nan")
KEYS = st.sampled_from([1, 1, None, 2, 3 << 40])
NAMES = st.sampled_from([None, "a", "b", "much longer than that"])
VALUES = st.sampled_from([None, NAN, -1.0, 0.0, 1.0, 1.5])
A_ROW = st.tuples(KEYS, NAMES, VALUES, st.integers(0, 2))
SIZES = st.sampled_from([1, 7, 1 << 30])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 99), A_ROW),
        st.tuples(st.just("add"), st.integers(0, 99), A_ROW),
        st.tuples(st.just("update"), st.integers(0, 99), A_ROW),
        st.tuples(st.just("delete"), st.integers(0, 99), A_ROW),
        st.just(RESTART),
    ),
    min_size=20,  # hypothesis draws few more
    max_size=60,
)


@st.composite
def inserts(draw: Any) -> list[Change | str]:
    """Rows that are only added."""
    steps = draw(STEPS)
    return [RESTART if step == RESTART else ("+I", step[2]) for step in steps]


@st.composite
def changelogs(draw: Any) -> list[Change | str]:
    """Rows come, and rows that are there are updated or go; equal rows may be there several
    times."""
    rows: list[Any] = []
    found: list[Change | str] = []
    for step in draw(STEPS):
        if step == RESTART:
            found.append(RESTART)
            continue
        what, at, row = step
        if what == "add" or not rows:
            rows.append(row)
            found.append(("+I", row))
            continue
        old = rows.pop(at % len(rows))
        if what == "delete":
            found.append(("-D", old))
        else:
            rows.append(row)
            found += [("-U", old), ("+U", row)]
    return found


@st.composite
def upserts(draw: Any) -> list[Change | str]:
    """Rows of a key replace each other, or go; some come twice, and some go that are not there."""
    found: list[Change | str] = []
    for step in draw(STEPS):
        if step == RESTART:
            found.append(RESTART)
        else:
            what, at, row = step
            found.append(({"add": "+I", "update": "+U", "delete": "-D"}[what], row))
            if at % 4 == 0:
                found.append(found[-1])
    return found
