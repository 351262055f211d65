"""What a stream of patterns carries: a version of a pattern, or that a pattern is removed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

from flinkpy.cep.pattern import Pattern
from flinkpy.cep.pattern_json import described, pattern_of
from flinkpy.core.errors import ProgramError
from flinkpy.state.snapshots.operator_snapshots import dump_pieces, load_piece


@dataclass(frozen=True)
class PatternUpdate:
    """A version of a pattern, for a stream of patterns. The highest version of an ``id`` counts,
    whatever the order in which updates come; without a ``pattern`` the id is removed, its versions
    up to this one included. ``finish``: partial matches of the version before may still become
    matches; else they are dropped.

    >>> from flinkpy.cep import Pattern
    >>> from flinkpy.table.expressions import col
    >>> update = PatternUpdate("big", 1, Pattern.begin("a").where(col("amount") > 500))
    >>> PatternUpdate.from_json(update.to_json()).pattern
    a where (col('amount') > 500)
    """

    id: str
    version: int
    pattern: Pattern | None = None
    finish: bool = False

    def to_json(self) -> str:
        """The update as a text, which ``from_json`` reads. Raises ProgramError for a pattern with
        conditions that are no expressions."""
        pattern = None if self.pattern is None else described(self.pattern)
        return json.dumps(
            {"id": self.id, "version": self.version, "pattern": pattern, "finish": self.finish}
        )

    @staticmethod
    def from_json(text: str) -> PatternUpdate:
        """The update that the text says. Nothing in it is executed. Raises ProgramError if it says
        none."""
        try:
            said = json.loads(text)
            pattern, finish = said.get("pattern"), said.get("finish", False)
            identified = PatternUpdate(said["id"], said["version"], None, finish)
        except (ValueError, KeyError, AttributeError, RecursionError) as error:
            raise ProgramError(f"{text!r:.200} is no update of a pattern: {error!r}") from None
        checked(identified)
        if pattern is None:
            return identified
        return PatternUpdate(said["id"], said["version"], pattern_of(pattern), finish)

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (self.id, *saved(self))


Saved: TypeAlias = "tuple[int, bytes | None, bool]"


def saved(update: PatternUpdate) -> Saved:
    """The update but for its id as plain values, with the pattern pickled."""
    pattern = update.pattern
    pickled = None if pattern is None else dump_pieces(f"pattern {update.id}", [pattern])[0]
    return update.version, pickled, update.finish


def restored(id: str, version: int, pattern: bytes | None, finish: bool) -> PatternUpdate:
    """An update as it was saved."""
    return PatternUpdate(id, version, None if pattern is None else load_piece(pattern), finish)


@dataclass(frozen=True)
class RefusedPattern:
    """An update that was not carried out, with the reason. ``id`` and ``version`` are None if it
    does not say them; then ``update`` shows what came."""

    id: str | None
    version: int | None
    reason: str
    update: str


def update_of(given: object) -> PatternUpdate:
    """What came as an element of a stream of patterns: an update, ``(id, version, pattern)``, or
    JSON. Raises ProgramError if it is none."""
    if isinstance(given, str):
        return PatternUpdate.from_json(given)
    if isinstance(given, tuple) and len(given) == 3:
        given = PatternUpdate(*given)
    if not isinstance(given, PatternUpdate):
        raise ProgramError(
            f"{given!r:.200} is no update of a pattern; that is a PatternUpdate, a tuple "
            "(id, version, pattern), or the text that to_json() of a PatternUpdate gives"
        )
    return checked(given)


def checked(update: PatternUpdate) -> PatternUpdate:
    """The update. Raises ProgramError if its parts are of the wrong kind."""
    if not isinstance(update.id, str) or not update.id:
        raise ProgramError(f"an update has a text as id, this is {update.id!r:.80}")
    if isinstance(update.version, bool) or not isinstance(update.version, int):
        raise ProgramError(f"an update has a whole number as version, not {update.version!r:.80}")
    if update.pattern is not None and not isinstance(update.pattern, Pattern):
        raise ProgramError(f"an update has a Pattern or None, not {update.pattern!r:.80}")
    if not isinstance(update.finish, bool):
        raise ProgramError(f"finish is True or False, not {update.finish!r:.80}")
    return update
