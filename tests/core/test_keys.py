from __future__ import annotations

import datetime
import decimal
import enum
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import (
    canonical_key,
    channel_of_key_group,
    default_max_parallelism,
    int64_hashes,
    key_group,
    key_group_range,
    key_groups,
    stable_hash,
)

int64 = st.integers(-(2**63), 2**63 - 1)
atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.floats(allow_nan=False)
    | st.dates()
)
keys = st.recursive(atoms, lambda inner: st.tuples(inner, inner), max_leaves=4)


@given(keys)
def test_a_hash_is_64_bits(key: object) -> None:
    assert 0 <= stable_hash(key) < 2**64


@given(st.integers(-(2**60), 2**60))
def test_equal_numbers_hash_equally(number: int) -> None:
    assert stable_hash(number) == stable_hash(decimal.Decimal(number))
    if float(number) == number:
        assert stable_hash(number) == stable_hash(float(number))


@given(st.lists(int64, max_size=50))
def test_a_column_of_integers_hashes_like_its_values(values: list[int]) -> None:
    assert int64_hashes(np.array(values, dtype=np.int64)).tolist() == [
        stable_hash(value) for value in values
    ]


def test_hashes_are_the_same_in_another_process_with_another_seed() -> None:
    code = (
        "from flinkpy.core.keys import stable_hash as h; print([h(k) for k in ('a', b'a', 1, "
        "2.5, (1, 'x'), None)])"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{[stable_hash(k) for k in ('a', b'a', 1, 2.5, (1, 'x'), None)]}\n"}


def test_hashes_are_pinned_because_state_of_old_jobs_depends_on_them() -> None:
    assert [
        stable_hash(key) % 128 for key in ("flink", "", 0, 1, -1, 2**63 - 1, (1, "a"), None)
    ] == [77, 2, 0, 101, 2, 112, 28, 101]


class Colour(enum.Enum):
    RED = "r"


class Size(enum.IntEnum):
    SMALL = 1


@dataclass(frozen=True)
class Place:
    city: str
    zone: int


def test_enums_dataclasses_and_dates_can_be_keys() -> None:
    assert stable_hash(Size.SMALL) == stable_hash(1)
    assert (
        stable_hash(Place("Bonn", 3))
        == stable_hash(Place("Bonn", 3))
        != stable_hash(Place("Bonn", 4))
    )
    noon = datetime.datetime(2013, 1, 1, 12, tzinfo=datetime.timezone.utc)
    assert stable_hash(noon) == stable_hash(
        noon.astimezone(datetime.timezone(datetime.timedelta(hours=5)))
    )
    assert stable_hash(Colour.RED) != stable_hash("r")


@pytest.mark.parametrize("key", [[1], {"a": 1}, object(), {1, 2}])
def test_what_has_no_stable_hash_is_refused_and_told_what_to_use(key: object) -> None:
    with pytest.raises(ProgramError, match="let the key selector return"):
        stable_hash(key)


@given(st.integers(1, 300), st.integers(1, 64))
def test_every_key_group_belongs_to_exactly_the_subtask_its_records_go_to(
    max_parallelism: int, parallelism: int
) -> None:
    parallelism = min(parallelism, max_parallelism)
    owned = [
        group
        for subtask in range(parallelism)
        for group in key_group_range(subtask, max_parallelism, parallelism)
    ]
    assert owned == list(range(max_parallelism))
    for subtask in range(parallelism):
        for group in key_group_range(subtask, max_parallelism, parallelism):
            assert channel_of_key_group(group, max_parallelism, parallelism) == subtask


@given(
    st.lists(int64) | st.lists(st.integers()) | st.lists(st.text(st.characters())) | st.lists(keys),
    st.integers(1, 1 << 15),
)
def test_the_groups_of_many_keys_are_those_of_each_key(
    many: list[object], max_parallelism: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("flinkpy.core.keys._MANY_KEYS", 0)
        groups = key_groups(many, max_parallelism)
    assert groups == [key_group(key, max_parallelism) for key in many]
    assert {type(group) for group in groups} <= {int}


def test_many_keys_spread_evenly() -> None:
    counts = [0] * 128
    for number in range(128_000):
        counts[key_group(f"key-{number}", 128)] += 1
    assert min(counts) > 850
    assert max(counts) < 1150


def test_the_default_max_parallelism_is_flinks() -> None:
    assert [default_max_parallelism(p) for p in (1, 85, 86, 1000, 30000)] == [
        128,
        128,
        256,
        2048,
        32768,
    ]


def test_no_time_of_pandas_is_the_key_none_as_numpys_is() -> None:
    pandas = pytest.importorskip("pandas")
    assert canonical_key(pandas.NaT) is None
    assert canonical_key(("a", pandas.NaT)) == ("a", None)
    assert stable_hash(pandas.NaT) == stable_hash(None)


def test_a_signaling_nan_is_no_key_alone_or_within_one() -> None:
    for key in (decimal.Decimal("sNaN"), ("a", decimal.Decimal("sNaN"))):
        with pytest.raises(TypeError, match="signaling NaN"):
            canonical_key(key)
        with pytest.raises(TypeError, match="signaling NaN"):
            stable_hash(key)
