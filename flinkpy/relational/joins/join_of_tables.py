"""A hash join of two tables: one side is kept, found by key; the rows of the other find their
partners there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.columns.sql.calc_program import CalcProgram
from flinkpy.relational.joins.built_side import BuiltSide, JoinKeys
from flinkpy.relational.joins.joined_rows import JoinedRows
from flinkpy.sql.rex.relational_terms import JoinKind

_OF_ONE_SIDE = (JoinKind.SEMI, JoinKind.ANTI)


@dataclass(frozen=True)
class JoinSpec:
    """What is joined. ``condition`` is over the columns of both sides, those of the left first.
    ``null_aware`` wants the right side built, and all of it in each subtask."""

    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...] = ()
    condition: CalcProgram | None = None
    null_aware: bool = False
    builds_left: bool = False

    @property
    def keeps_left(self) -> bool:
        """Whether a row of the left without a partner goes out."""
        return self.kind in (JoinKind.LEFT, JoinKind.FULL)

    @property
    def keeps_right(self) -> bool:
        return self.kind in (JoinKind.RIGHT, JoinKind.FULL)


class JoinOfTables:
    """The join of rows with the schemas ``left`` and ``right``. First ``add`` all rows of the kept
    side, then ``seal`` it, then ``probe`` with the others, then take the ``rest``. ``pair`` makes
    the results.

    Where only a part of the kept rows is here, rows of the other side ``meet`` each part, and go
    out ``alone`` when they have met all of them."""

    def __init__(self, spec: JoinSpec, left: pa.Schema, right: pa.Schema, pair: JoinedRows) -> None:
        self.spec = spec
        left_keys = JoinKeys(spec.left_keys, spec.null_safe)
        right_keys = JoinKeys(spec.right_keys, spec.null_safe)
        built_keys, self._keys = (
            (left_keys, right_keys) if spec.builds_left else (right_keys, left_keys)
        )
        self._built = BuiltSide(built_keys, left if spec.builds_left else right)
        self._pair = pair
        self._met: Any = None  # of the rows that are kept: whether they met one

    def add(self, data: pa.RecordBatch) -> None:
        """Takes rows of the kept side."""
        self._built.add(data)

    @property
    def is_sealed(self) -> bool:
        return self._built.is_sealed

    def seal(self) -> None:
        """All rows of the kept side are there."""
        self._built.seal()
        self._met = np.zeros(self._built.rows.num_rows, np.bool_)

    @property
    def _keeps_built(self) -> bool:
        """Whether it matters which of the kept rows have met one."""
        spec = self.spec
        if not spec.builds_left:
            return spec.keeps_right
        return spec.keeps_left or spec.kind in _OF_ONE_SIDE

    @property
    def _keeps_probed(self) -> bool:
        return self.spec.keeps_right if self.spec.builds_left else self.spec.keeps_left

    # -- a batch of the side that passes by --------------------------------------------------------

    def probe(self, data: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """What these rows make with the kept ones."""
        met = np.zeros(data.num_rows, np.bool_)
        yield from self.meet(data, met)
        yield from self.alone(data, met)

    def meet(self, data: pa.RecordBatch, met: npt.NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
        """The pairs of these rows with kept ones. Marks in ``met`` which rows have met one, or, in
        NOT IN, may have."""
        numbers = self._built.numbers_of(data, self._keys)
        if self.spec.kind in _OF_ONE_SIDE:
            self._mark(data, numbers, met)
            return
        for at, rows in self._pairs(data, numbers):
            if self._keeps_probed:
                met[at] = True
            if self._keeps_built:
                self._met[rows] = True
            yield self._joined(data.take(pa.array(at)), self._built.rows.take(pa.array(rows)))

    def alone(self, data: pa.RecordBatch, met: npt.NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
        """What goes out of these rows, by which of them have met one."""
        if self.spec.kind in _OF_ONE_SIDE:
            if not self.spec.builds_left:
                wanted = met if self.spec.kind is JoinKind.SEMI else ~met
                if wanted.all():
                    yield self._pair.alone(data.columns)
                elif wanted.any():
                    yield self._pair.alone(data.filter(pa.array(wanted)).columns)
        elif self._keeps_probed and not met.all():
            yield self._joined(data.filter(pa.array(~met)), None)

    def _pairs(self, data: pa.RecordBatch, numbers: npt.NDArray[Any]) -> Iterator[tuple[Any, Any]]:
        """Positions of these rows and of kept rows with which they are joined."""
        for at, rows in self._built.pairs(numbers):
            if self.spec.condition is None:
                yield at, rows
                continue
            mask = self._passing(data, at, rows)
            if mask is None:
                yield at, rows
            elif mask.any():
                yield at[mask], rows[mask]

    def _passing(self, data: pa.RecordBatch, at: npt.NDArray[Any], rows: Any) -> Any:
        """For which of these pairs the condition is true; None: for all."""
        probed, kept = data.take(pa.array(at)), self._built.rows.take(pa.array(rows))
        left, right = (kept, probed) if self.spec.builds_left else (probed, kept)
        return self._pair.passing(left, right)

    def _joined(self, probed: Any, kept: Any) -> pa.RecordBatch:
        """Both sides' columns; those of the side that is None are null."""
        left, right = (kept, probed) if self.spec.builds_left else (probed, kept)
        return self._pair.joined(left, right)

    # -- SEMI and ANTI -----------------------------------------------------------------------------

    def _mark(
        self, data: pa.RecordBatch, numbers: npt.NDArray[Any], met: npt.NDArray[np.bool_]
    ) -> None:
        if self.spec.builds_left:
            for _, rows in self._pairs(data, numbers):
                self._met[rows] = True
            return
        if self.spec.condition is None:
            met |= self._built.partners(numbers) > 0
        else:
            for at, _ in self._pairs(data, numbers):
                met[at] = True
        if self.spec.null_aware and self.spec.kind is JoinKind.ANTI:
            met |= self._unknown(data)

    def _unknown(self, data: pa.RecordBatch) -> Any:
        """NOT IN: for which rows a null makes it unknown whether they are in."""
        nothing = np.zeros(data.num_rows, np.bool_)
        if not self._built.rows.num_rows:
            return nothing
        has_null = self._null_keys(data, self.spec.left_keys)
        if self.spec.condition is None:
            return ~nothing if self._built.has_null_key else has_null
        kept_nulls = np.flatnonzero(self._null_keys(self._built.rows, self.spec.right_keys))
        everything = np.arange(self._built.rows.num_rows)
        found = nothing
        for row in range(data.num_rows):  # correlated NOT IN over nulls is rare
            others = everything if has_null[row] else kept_nulls
            for begin in range(0, len(others), 1 << 15):
                rows = others[begin : begin + (1 << 15)]
                passing = self._passing(data, np.full(len(rows), row), rows)
                found[row] |= bool(passing is None or passing.any())
        return found

    @staticmethod
    def _null_keys(data: pa.RecordBatch, keys: tuple[int, ...]) -> Any:
        mask = np.zeros(data.num_rows, np.bool_)
        for at in keys:
            mask |= data.column(at).is_null().to_numpy(zero_copy_only=False)
        return mask

    # -- the end -----------------------------------------------------------------------------------

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What goes out of the kept side when all others have passed by."""
        if not self._keeps_built or not self._built.rows.num_rows:
            return
        spec, rows = self.spec, self._built.rows
        wanted = self._met if spec.kind is JoinKind.SEMI else ~self._met
        places = np.flatnonzero(wanted)
        for begin in range(0, len(places), 1 << 15):
            part = rows.take(pa.array(places[begin : begin + (1 << 15)]))
            if spec.kind in _OF_ONE_SIDE:
                yield self._pair.alone(part.columns)
            else:
                yield self._joined(None, part)
