from __future__ import annotations

import pickle

import pytest

from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.common.types import RowKind


@pytest.mark.parametrize(
    ("mode", "shown", "is_insert_only"),
    [
        (ChangelogMode.insert_only(), "[I]", True),
        (ChangelogMode.upsert(), "[I,UA,D]", False),
        (ChangelogMode.all(), "[I,UB,UA,D]", False),
        (ChangelogMode.of(RowKind.UPDATE_AFTER, RowKind.INSERT), "[I,UA]", False),
    ],
)
def test_a_mode_is_shown_as_flink_explains_it(
    mode: ChangelogMode, shown: str, is_insert_only: bool
) -> None:
    assert str(mode) == shown
    assert mode.is_insert_only == is_insert_only
    assert pickle.loads(pickle.dumps(mode)) == mode


def test_a_mode_says_which_kinds_and_which_other_modes_it_has() -> None:
    upsert = ChangelogMode.upsert()
    assert [kind for kind in RowKind if upsert.contains(kind)] == [
        RowKind.INSERT,
        RowKind.UPDATE_AFTER,
        RowKind.DELETE,
    ]
    assert ChangelogMode.all().contains_all(upsert)
    assert not upsert.contains_all(ChangelogMode.all())
    assert upsert | ChangelogMode.of(RowKind.UPDATE_BEFORE) == ChangelogMode.all()
