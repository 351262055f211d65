"""Under which transactional ids a subtask writes, and which ones earlier attempts may have left
open.

A subtask has an id of its own, ``prefix-subtask``, under which nothing is written: each attempt
takes it over, and the broker counts how often that has happened. This number is the attempt's
*turn*. It grows whatever has died, the JobManager too. A broker forgets an id that was not used for
a week (``transactional.id.expiration.ms``), and begins to count anew: then the turns go on behind
the one in the checkpoint.

In each turn there are ``IDS`` ids, ``prefix-subtask-turn-number``; after ``TURNS`` attempts they
come again. An attempt aborts what is open under the ids of the ``LOOKS_BACK`` turns before its own.
So one that does not know yet that it was given up, and aborts late, does not hit the next ones. And
it begins no transaction that nobody would abort: when it has made a producer ready, it asks whether
the subtask's own id is still its own. Either that was taken over before, or the producer is there
when the next attempt, which takes the own id over first, aborts. A broker whose answers do not come
in time is asked again, and may have counted each time: by so many turns an attempt looks back
further.

An attempt takes the lowest free id for each transaction. An id is free again only when nothing can
ask for its last transaction any more: when a checkpoint is complete that began after that
transaction was committed. An earlier checkpoint names it still, and a job that goes on from there
commits it once more."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from flinkpy.connectors.kafka.writing.wire import ProducerId
from flinkpy.core.errors import FlinkpyError

# three are in use while checkpoints complete; each one that fails takes another, until the next one
# completes
IDS = 6
TURNS, LOOKS_BACK = 16, 4
LOOKS_BACK_AT_MOST = TURNS - LOOKS_BACK


class TooManyTransactionsError(FlinkpyError):
    """All transactional ids of the subtask are taken: no checkpoint has been completed for many in
    a row."""


class Turn(NamedTuple):
    """An attempt's turn, what the broker had counted when it began, and the broker's number for the
    subtask's own id (-1: not known)."""

    number: int
    epoch: int
    producer_id: int = -1


FIRST, BEFORE_ANY = Turn(0, 0), Turn(-1, -1)


@dataclass(frozen=True)
class Unfinished:
    """What one subtask writes into a checkpoint, for all subtasks of the next run: the ids whose
    transactions the checkpoint may have to commit."""

    prefix: str
    subtask: int
    transactional_ids: tuple[str, ...]
    turn: Turn = BEFORE_ANY


class TakenOver(NamedTuple):
    """How often an id was taken over before, as the broker counts; how often it was asked until it
    answered; and its number for the id."""

    epoch: int
    asked: int = 1
    producer_id: int = -1


def ids_of(prefix: str, subtask: int, turn: int) -> list[str]:
    return [f"{prefix}-{subtask}-{turn % TURNS}-{number}" for number in range(IDS)]


class TransactionalIds:
    """Those of one turn. ``unfinished`` are the ones that the restored checkpoint names."""

    def __init__(
        self, prefix: str, subtask: int, turn: Turn = FIRST, unfinished: Collection[str] = ()
    ) -> None:
        self._prefix = prefix
        self._subtask = subtask
        self._turn = turn
        ids = ids_of(prefix, subtask, turn.number)
        self._free = [each for each in ids if each not in unfinished]
        self._checkpoints = 0  # begun by this attempt
        self._prepared: dict[str, int] = {}  # and by then so many checkpoints had begun
        # Subtasks commit what was restored when they open, and no checkpoint begins before all have
        self._committed = {each: 0 for each in ids if each in unfinished}

    @property
    def own(self) -> tuple[str, ProducerId] | None:
        """The subtask's own id, and as whom this attempt has taken it over; None if that is not
        known."""
        return (
            (
                f"{self._prefix}-{self._subtask}",
                ProducerId(self._turn.producer_id, self._turn.epoch),
            )
            if self._turn.producer_id >= 0
            else None
        )

    @property
    def has_free(self) -> bool:
        return bool(self._free)

    def take(self) -> str:
        """The id of a new transaction."""
        if not self._free:
            raise TooManyTransactionsError(
                f"{len(self._prepared)} Kafka transactions of subtask {self._subtask + 1} "
                "wait to be committed, because checkpoints were begun and "
                "none was completed: see why they fail, or begin them less often "
                "(execution.checkpointing.interval)"
            )
        return self._free.pop(0)

    def checkpoint_begins(self) -> None:
        self._checkpoints += 1

    def prepare(self, transactional_id: str) -> None:
        """Its transaction belongs to the checkpoint that began last."""
        self._prepared[transactional_id] = self._checkpoints

    def commit(self, transactional_id: str) -> None:
        """Its checkpoint is complete, and so are all before."""
        complete = self._prepared.pop(transactional_id)
        rested = [each for each, begun in self._committed.items() if begun < complete]
        for each in rested:
            del self._committed[each]
        self._free = sorted([*self._free, *rested])
        self._committed[transactional_id] = self._checkpoints

    def unfinished(self) -> Unfinished:
        """For the checkpoint that begins."""
        return Unfinished(self._prefix, self._subtask, tuple(self._prepared), self._turn)

    def __repr__(self) -> str:
        return (
            f"<TransactionalIds of {self._prefix}-{self._subtask}: {len(self._prepared)} "
            f"prepared, {len(self._free)} free>"
        )


def begin_turn(
    prefix: str,
    subtask: int,
    parallelism: int,
    restored: Iterable[Unfinished],
    *,
    is_first: bool,
    abort: Callable[[str], TakenOver],
) -> Turn:
    """The turn of an attempt that begins. Aborts what earlier ones may have left open: of this
    subtask, and of subtasks that there are no more, which are shared out. ``abort`` ends an id's
    transaction, and takes the id over. What the restored checkpoint names is left alone.

    Which subtasks there were is known from the checkpoint. A job may also begin without one, after
    a run with more subtasks; then their own ids tell whether they were used. To look at an id is to
    use it, so only the first attempt of such a job looks."""
    restored = list(restored)
    kept = {each for unfinished in restored for each in unfinished.transactional_ids}

    def take_over(other: int) -> Turn:
        epoch, asked, producer_id = abort(f"{prefix}-{other}")
        last = max(
            (each.turn for each in restored if (each.prefix, each.subtask) == (prefix, other)),
            default=BEFORE_ANY,
        )
        # it has forgotten the id, and counts anew
        turn = last.number + (epoch - last.epoch if epoch > last.epoch else 1 + epoch)
        for before in range(turn - min(LOOKS_BACK + asked - 1, LOOKS_BACK_AT_MOST), turn):
            for transactional_id in ids_of(prefix, other, before):
                if transactional_id not in kept:
                    abort(transactional_id)
        return Turn(turn, epoch, producer_id)

    mine = take_over(subtask)
    subtasks = max(
        (unfinished.subtask + 1 for unfinished in restored if unfinished.prefix == prefix),
        default=0,
    )
    for other in _shared_out(subtask, parallelism):
        if other < subtasks:
            take_over(other)
        elif restored or not is_first or not take_over(other).epoch:
            return mine
    raise AssertionError("there is always another subtask")


def _shared_out(subtask: int, parallelism: int) -> Iterator[int]:
    """The subtasks that there are no more, of which this one takes care."""
    return itertools.count(subtask + parallelism, parallelism)
