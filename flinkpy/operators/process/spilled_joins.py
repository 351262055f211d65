"""What an interval join of a batch job has no room for in memory: records of both sides by key.

Time stands still until the input ends, so all records are kept. When they do not fit they go to a
file, all of them, and those that follow join nothing before the input has ended. Then they are read
in portions, each with all records of its keys, and joined in the order in which they came."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, MutableMapping
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from flinkpy.core.elements import RowBatch
from flinkpy.core.keys import canonical_keys, key_groups
from flinkpy.core.memory import SizeEstimator
from flinkpy.operators.spilling.record_pickler import RecordPickler
from flinkpy.operators.spilling.spilled_slices import PieceForm, SpilledSlices

if TYPE_CHECKING:  # it imports Arrow
    from flinkpy.operators.spilling.operator_memory import OperatorMemory

JOINED = 2  # added to the side of a record that has met those before it
_RECORD = 300  # bytes that a record takes beside itself, with its key: in lists of its key
_ALL = 0  # the only slice


class Records(NamedTuple):
    """Some records in their order: of each the key, the side, its value and its event time."""

    keys: list[Any]
    sides: list[int]
    values: list[Any]
    stamps: list[int]

    def runs(self) -> Iterator[tuple[int, Records]]:
        """Those of one side, with it, that follow each other."""
        for side, rows in groupby(zip(*self), key=itemgetter(1)):
            yield side, Records(*map(list, zip(*rows)))


class RecordsForm(PieceForm[Records]):
    """Pickled, as what a batch job sorts."""

    at_once: ClassVar[int] = 1 << 12  # records in a piece

    def __init__(self) -> None:
        self._sizes, self._pickler = SizeEstimator(), RecordPickler()

    def size(self, piece: Records) -> int:
        values = piece.values
        return int(self._sizes.bytes_of_rows(values)) + _RECORD * len(values) if values else 0

    def dumps(self, piece: Records) -> bytes:
        return self._pickler.dumps(tuple(piece))

    def loads(self, data: bytes) -> Records:
        keys, *others = pickle.loads(data)
        return Records(canonical_keys(keys), *others)

    def by_key(self, piece: Records, parts: int) -> Iterable[tuple[int, Records]]:
        found: dict[int, Records] = {}
        for group, row in zip(key_groups(piece.keys, parts), zip(*piece)):
            part = found.get(group)
            if part is None:
                part = found[group] = Records([], [], [], [])
            for column, each in zip(part, row):
                column.append(each)
        return found.items()

    def together(self, pieces: list[Records]) -> Iterator[Records]:
        whole = Records([], [], [], [])
        for piece in pieces:
            for column, part in zip(whole, piece):
                column += part
        for begin in range(0, len(whole.keys), self.at_once):
            yield Records(*(column[begin : begin + self.at_once] for column in whole))

    def taken_from(self, buffers: MutableMapping[Any, Any]) -> Iterator[Records]:
        """All records of the buffers, which are empty then."""
        found = Records([], [], [], [])
        while buffers:
            key, (*left, right_times, right) = buffers.popitem()
            for side, times, values in ((0, *left), (1, right_times, right)):
                count = len(times)
                for column, part in zip(
                    found, ([key] * count, [side + JOINED] * count, values, times)
                ):
                    column += part
            if len(found.keys) >= self.at_once:
                yield found
                found = Records([], [], [], [])
        if found.keys:
            yield found


class SpilledJoin:
    """``note`` what the operator has taken into its ``buffers``, and from the moment on at which
    ``waits`` is true give it to ``wait``."""

    def __init__(self, memory: OperatorMemory) -> None:
        self._form = RecordsForm()
        self._spilled = SpilledSlices(self._form, memory)
        self._waiting: list[Records] = []
        self.waits = False

    def note(self, batch: RowBatch) -> None:
        """These records were taken."""
        self._spilled.note(_ALL, Records([], [], batch.values, []))

    def wait(self, side: int, keys: list[Any], batch: RowBatch) -> None:
        """These records are joined when the input has ended."""
        piece = Records(keys, [side] * len(keys), batch.values, batch.timestamps or [])
        self._waiting.append(piece)
        self._spilled.note(_ALL, piece)

    def spill(self, buffers: MutableMapping[Any, Any], room: int | None = None) -> None:
        """Writes what is in memory, if it is more than fits, or than ``room``; then nothing is."""

        def take(_: int) -> Iterator[Records]:
            self.waits = True
            waiting, self._waiting = self._waiting, []
            yield from self._form.taken_from(buffers)
            yield from waiting

        self._spilled.spill(take, room)

    def portions(self) -> Iterator[list[Records]]:
        """All records, when the input has ended."""
        waiting, self._waiting = self._waiting, []
        return self._spilled.portions([_ALL], {_ALL: waiting})
