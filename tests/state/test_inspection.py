"""What is said of a checkpoint: its operators, states and entries, without the program's classes,
and what is damaged in it."""

from __future__ import annotations

import enum
import pickle
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import pytest
from hypothesis import given

from flinkpy.common.types import Row, RowKind
from flinkpy.core.errors import CheckpointDamagedError, ProgramError
from flinkpy.state.inspection.checkpoint_contents import StateContents, contents_of
from flinkpy.state.inspection.lenient_unpickler import load_leniently
from tests.checkpoints.made import COUNTS, JOB, SOURCE, usual
from tests.values import ATOMS, shown


def described(state: StateContents) -> tuple[Any, ...]:
    return state.name, state.kind, state.type, state.entries, state.unit


def test_each_operator_and_state_is_listed_with_its_entries(tmp_path: Path) -> None:
    location = usual(tmp_path).location
    assert location is not None
    contents = contents_of(location)
    assert (contents.job_id, contents.checkpoint_id, contents.timestamp_ms) == (
        JOB,
        7,
        1_700_000_000_000,
    )
    counts, source = contents.operators
    assert (
        counts.id,
        counts.name,
        counts.parallelism,
        counts.max_parallelism,
        counts.finished,
    ) == (COUNTS, "counts", 2, 128, [])
    assert [described(state) for state in counts.states] == [
        ("value", "value state", "Types.INT()", 50, "keys"),
        ("list", "list state", "Types.LIST(Types.INT())", 50, "keys"),
        ("map", "map state", "Types.MAP(Types.STRING(), Types.INT())", 50, "keys"),
        ("reducing", "reducing state", "Types.INT()", 50, "keys"),
        ("aggregating", "aggregating state", "Types.DOUBLE()", 50, "keys"),
    ]
    assert (source.id, source.parallelism) == (SOURCE, 3)
    assert [described(state) for state in source.states] == [
        ("offsets", "operator list state", "Types.LIST(Types.LONG())", 6, "elements"),
        ("owners", "operator union list state", "Types.LIST(Types.STRING())", 3, "elements"),
        (
            "rules",
            "operator broadcast state",
            "Types.MAP(Types.STRING(), Types.DOUBLE())",
            2,
            "entries",
        ),
    ]
    assert contents.size == counts.size + source.size > 0
    assert contents.damaged == []


def test_the_first_entries_are_shown_of_all_states_or_of_one(tmp_path: Path) -> None:
    location = str(usual(tmp_path).location)
    shown_of = {
        state.name: state.first
        for operator in contents_of(location, show=2).operators
        for state in operator.states
    }
    assert {name: len(first) for name, first in shown_of.items()} == dict.fromkeys(shown_of, 2)
    assert shown_of["rules"] == ["'limit': 1.5", "'floor': -0.0"]
    only = {
        state.name: len(state.first)
        for operator in contents_of(location, 2, "map").operators
        for state in operator.states
    }
    assert only == {**dict.fromkeys(shown_of, 0), "map": 2}
    with pytest.raises(
        ProgramError, match=r"no operator of .* has a state 'maps': 'counts' has 'value', 'list'"
    ):
        contents_of(location, 2, "maps")


def test_of_a_jobs_folder_the_newest_complete_checkpoint_counts(tmp_path: Path) -> None:
    usual(tmp_path, 7)
    usual(tmp_path, 12)
    (tmp_path / JOB / "chk-13").mkdir()
    contents = contents_of(str(tmp_path / JOB))
    assert (contents.checkpoint_id, contents.others) == (12, [7])
    assert contents_of(f"{tmp_path}/{JOB}/chk-7/_metadata").checkpoint_id == 7
    with pytest.raises(ProgramError, match="it was not completed"):
        contents_of(str(tmp_path / JOB / "chk-13"))
    with pytest.raises(ProgramError, match="there is no checkpoint"):
        contents_of(str(tmp_path / "missing"))


def test_damaged_files_are_named_and_the_rest_is_listed(tmp_path: Path) -> None:
    folder = Path(str(usual(tmp_path).location))
    first, second, *_ = sorted(path for path in folder.iterdir() if path.name != "_metadata")
    first.write_bytes(first.read_bytes()[:-1] + b"\0")
    second.unlink()
    contents = contents_of(str(folder))
    assert len(contents.damaged) == 2
    assert str(first) in contents.damaged[0]
    assert str(second) in contents.damaged[1]
    assert [state.entries for state in contents.operators[1].states] == [6, 3, 2]
    manifest = folder / "_metadata"
    manifest.write_bytes(manifest.read_bytes().replace(b"counts", b"founts"))
    with pytest.raises(CheckpointDamagedError, match="_metadata"):
        contents_of(str(folder))


@given(ATOMS)
def test_values_of_known_classes_are_shown_as_they_are(value: Any) -> None:
    assert shown(load_leniently(pickle.dumps(value))) == shown(value)


class Colour(enum.Enum):
    RED = 1


@dataclass(frozen=True)
class Reading:
    sensor: str
    degrees: float


class Pair(NamedTuple):
    left: int
    right: int


class Shelf(list[int]):
    """A list with a name."""


class Slotted:
    __slots__ = ("width",)

    def __init__(self) -> None:
        self.width = 3


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_values_of_the_programs_classes_are_shown_by_name_and_not_made(dumps: Any) -> None:
    for value, text in (
        (Reading("roof", 1.5), "Reading(sensor='roof', degrees=1.5)"),
        (Pair(1, 2), "Pair(1, 2)"),
        (Shelf([4, 5]), "Shelf(4, 5)"),
        (Slotted(), "Slotted(width=3)"),
        ({Reading("a", 2.0): 1}, "{Reading(sensor='a', degrees=2.0): 1}"),
    ):
        loaded = load_leniently(dumps(value))
        assert repr(loaded) == text
        assert not isinstance(loaded, (Reading, Pair, Shelf, Slotted))
        # it is pickled again, to tell its size
        assert repr(load_leniently(pickle.dumps(loaded))) == text
    assert "Colour" in repr(load_leniently(dumps(Colour.RED)))
    assert load_leniently(dumps(OrderedDict(a=1))) == {"a": 1}
    row = Row(a=1)
    row.set_row_kind(RowKind.DELETE)
    assert load_leniently(dumps(row)).get_row_kind() is RowKind.DELETE


def test_classes_of_the_program_that_travelled_by_value_are_not_made() -> None:
    class Local:
        def __init__(self) -> None:
            self.number = 1

    loaded = load_leniently(cloudpickle.dumps([Local(), lambda: 1]))
    assert repr(loaded[0]) == "Local(number=1)"


def test_nothing_of_the_state_is_run() -> None:
    import os

    class Evil:
        def __reduce__(self) -> Any:
            return os.system, ("echo ran",)

    assert repr(load_leniently(pickle.dumps(Evil()))) == "system('echo ran')"
