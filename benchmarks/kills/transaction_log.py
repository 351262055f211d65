"""A log that is written in transactions, as Kafka's topics are, and a sink that writes into it
exactly once.

A transaction has a name. Whoever knows the name of a prepared one may commit it, in any process: a
committable is no more than that. A sink that begins aborts the transactions that earlier attempts
of its subtask have left. So it fences them: an attempt that still runs cannot prepare what was
aborted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.kills.journal import OPENED, OUTPUT, VISIBLE, Attempt, Journal
from flinkpy.connectors.sinks import Committer, Sink, SinkWriter, rows_of
from flinkpy.core.elements import Batch
from flinkpy.operators.context import OperatorContext


class TransactionLog:
    """The files of one folder, one for each transaction. It moves from one folder to the next as a
    whole.

    open/NAME        being written, in the process that began it
    prepared/NAME    whole, and on disk
    committed/NAME   seen by readers
    """

    def __init__(self, folder: str | Path) -> None:
        states = ("open", "prepared", "committed")
        self._open, self._prepared, self._committed = (Path(folder, state) for state in states)

    def create(self) -> None:
        for folder in (self._open, self._prepared, self._committed):
            folder.mkdir(parents=True, exist_ok=True)

    def begin(self, name: str) -> Transaction:
        return Transaction(name, self._open / name, self._prepared / name)

    def commit(self, name: str) -> None:
        """Twice is as once. Raises LookupError for a transaction that is not prepared: then records
        are lost."""
        try:
            os.rename(self._prepared / name, self._committed / name)
        except FileNotFoundError:
            if not (self._committed / name).exists():
                raise LookupError(f"transaction {name} is neither prepared nor committed") from None

    def abort(self, is_lost: Callable[[str], bool]) -> None:
        """Aborts those of the unfinished transactions."""
        for folder in (self._open, self._prepared):
            for name in filter(is_lost, os.listdir(folder)):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(folder / name)

    def prepared(self) -> list[str]:
        """The names of those that wait to be committed."""
        return os.listdir(self._prepared) if self._prepared.exists() else []

    def unfinished(self) -> list[str]:
        return [str(path) for folder in (self._open, self._prepared) for path in folder.iterdir()]

    def read(self) -> list[str]:
        """The committed records, each a line."""
        return [
            line for path in self._committed.iterdir() for line in path.read_text().splitlines()
        ]


class Transaction:
    """One that is being written."""

    def __init__(self, name: str, path: Path, prepared: Path) -> None:
        self.name = name
        self._path = path
        self._prepared = prepared
        self._file = path.open("x")

    def write(self, records: Sequence[str]) -> None:
        self._file.writelines(f"{record}\n" for record in records)

    def prepare(self) -> str:
        """Ends it; its name is all that is needed from now on. Raises FileNotFoundError if somebody
        has aborted it."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.rename(self._path, self._prepared)
        return self.name

    def abort(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


class TransactionSink(Sink):
    """Texts into a TransactionLog, a transaction for each subtask and checkpoint. The journal calls
    it ``name``."""

    def __init__(self, folder: str | Path, name: str, journal: Journal) -> None:
        self._log = TransactionLog(folder)
        self._name = name
        self._journal = journal

    def create_committer(self, context: OperatorContext) -> Committer:
        return _Committer(self._log, self._attempt(context), self._journal)

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return self._begin(context, -1)

    def restore_writer(self, context: OperatorContext, states: Sequence[int]) -> SinkWriter:
        return self._begin(context, max(states, default=-1))

    def _begin(self, context: OperatorContext, restored: int) -> SinkWriter:
        """What was begun behind the restored checkpoint comes again."""
        attempt = self._attempt(context)

        def is_lost(name: str) -> bool:
            subtask, begun_behind, _ = name.split("_")
            return int(subtask) == attempt.subtask and int(begun_behind) >= restored

        self._log.create()
        self._log.abort(is_lost)
        self._journal.add(OPENED, attempt)
        return _Writer(self._log, attempt, self._journal, restored)

    def _attempt(self, context: OperatorContext) -> Attempt:
        return Attempt(self._name, context.task.subtask_index, context.task.attempt_id.attempt)


class _Writer(SinkWriter):
    def __init__(
        self, log: TransactionLog, attempt: Attempt, journal: Journal, checkpoint: int
    ) -> None:
        self._log = log
        self._attempt = attempt
        self._journal = journal
        self._checkpoint = checkpoint
        self._transaction: Transaction | None = None
        self._has_written = False

    def write_batch(self, batch: Batch) -> None:
        if self._transaction is None:
            attempt = self._attempt
            self._transaction = self._log.begin(
                f"{attempt.subtask}_{self._checkpoint}_{attempt.number}"
            )
        self._transaction.write(rows_of(batch))
        if not self._has_written:
            self._has_written = True
            self._journal.add(OUTPUT, self._attempt)

    def prepare_commit(self) -> Sequence[str]:
        transaction, self._transaction = self._transaction, None
        return () if transaction is None else (transaction.prepare(),)

    def snapshot_state(self, checkpoint_id: int) -> Sequence[int]:
        self._checkpoint = checkpoint_id
        return (checkpoint_id,)

    def close(self) -> None:
        if self._transaction is not None:
            self._transaction.abort()


class _Committer(Committer):
    def __init__(self, log: TransactionLog, attempt: Attempt, journal: Journal) -> None:
        self._log = log
        self._attempt = attempt
        self._journal = journal
        self._has_committed = False

    def commit(self, committables: Sequence[str]) -> None:
        for name in committables:
            self._log.commit(name)
            if not self._has_committed and name.endswith(f"_{self._attempt.number}"):
                self._has_committed = True
                self._journal.add(VISIBLE, self._attempt)
