"""Holds back what an operator emits for one record, until it is known whether the record fails."""

from __future__ import annotations

from typing import Any, TypeAlias

from flinkpy.common.error_policy import DeadLetter
from flinkpy.core.elements import Batch, ColumnBatch, ControlElement, RowBatch
from flinkpy.operators.context import Output
from flinkpy.operators.row_batches import single_row

# the side output, or None, and whether the records have timestamps
_Place: TypeAlias = "tuple[str | None, bool]"


class HeldResults(Output):
    """The output of a guarded operator. Between ``begin`` and ``keep`` or ``drop`` it holds results
    back. Those that are kept are gathered, and ``emit_gathered`` passes them on in few batches. At
    other times (a timer, a watermark) results pass at once."""

    def __init__(self, target: Output) -> None:
        self._target = target
        # of the current record; None: there is none
        self._held: list[tuple[str | None, Batch | ControlElement]] | None = None
        self._rows: dict[_Place, RowBatch] = {}
        self.gathered = 0  # results

    def begin(self) -> None:
        """A record begins."""
        self._held = []

    def drop(self) -> None:
        """The record has failed: forgets its results."""
        self._held = None

    def keep(self) -> None:
        """The record did not fail: gathers its results."""
        held, self._held = self._held, None
        for tag, element in held or ():
            if isinstance(element, (RowBatch, ColumnBatch)):
                self._gather(tag, element)
            else:
                self.emit_control(element)

    def add_letter(self, tag: str, letter: DeadLetter) -> None:
        """Gathers a dead letter."""
        self._gather(tag, single_row(letter, letter.timestamp))

    def emit_gathered(self) -> None:
        """Passes on what was gathered, side outputs first: consumers of the main output may change
        values that are in both."""
        rows, self._rows, self.gathered = self._rows, {}, 0
        for (tag, _), batch in sorted(rows.items(), key=_main_last):
            self._pass_on(tag, batch)

    def emit(self, batch: Batch) -> None:
        if self._held is None:
            self._target.emit(batch)
        else:
            self._held.append((None, batch))

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        if self._held is None:
            self._target.emit_side(tag_id, batch)
        else:
            self._held.append((tag_id, batch))

    def emit_control(self, element: ControlElement) -> None:
        if self._held is not None:  # a watermark after the record
            self._held.append((None, element))
            return
        self.emit_gathered()
        self._target.emit_control(element)

    def _gather(self, tag: str | None, batch: Batch) -> None:
        if not isinstance(batch, RowBatch):
            self.emit_gathered()
            self._pass_on(tag, batch)
            return
        stamps = batch.timestamps
        place: Any = (tag, stamps is not None)
        found = self._rows.get(place)
        if found is None:
            # records with and without timestamps do not share a batch, and stay in order
            if (tag, stamps is None) in self._rows:
                self.emit_gathered()
            found = self._rows[place] = RowBatch([], None if stamps is None else [])
        found.values.extend(batch.values)
        if stamps is not None and found.timestamps is not None:
            found.timestamps.extend(stamps)
        self.gathered += len(batch.values)

    def _pass_on(self, tag: str | None, batch: Batch) -> None:
        if tag is None:
            self._target.emit(batch)
        else:
            self._target.emit_side(tag, batch)


def _main_last(item: tuple[_Place, RowBatch]) -> bool:
    return item[0][0] is None
