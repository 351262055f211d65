"""What a sink is: a recipe that travels, the writer it makes in each subtask, and the committer, if
it shows its results in two phases.

A :class:`Sink` is built on the client and travels pickled. In the task the operator has it make a
:class:`SinkWriter`, and drives that. What else a program may give as a sink (a function, an object
with ``write``) is adapted to these in ``adapted_sinks``.

Exactly once, also over failures, is what a sink with a committer gives (Flink's Sink V2). At each
checkpoint the writer prepares what it has written (``prepare_commit``): small picklable objects,
the *committables*, say the hidden names of files. They are part of the checkpoint. When the
checkpoint is complete, the committer makes them visible. A :class:`Committer` does so in the
subtask of its writer. A :class:`GlobalCommitter` runs once, behind all writers, and commits what
all of them prepared for a checkpoint together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.core.elements import Batch, Watermark
from flinkpy.operators.context import OperatorContext


class SinkWriter(ABC):
    """Writes for one subtask of a sink. All calls come from the task's thread, which runs all tasks
    of its process: while a call waits, none of them goes on, no checkpoint passes, and none can be
    cancelled. So a writer that has to wait for a server, longer than for a disk, does so in a
    :class:`~flinkpy.connectors.sinks.ThreadedSinkWriter`, or says with ``available`` and
    ``flushed`` that it is not ready yet."""

    @abstractmethod
    def write_batch(self, batch: Batch) -> None:
        """Writes a batch of rows or columns, which is never empty."""

    def write_watermark(self, watermark: Watermark) -> None:
        """Event time has come this far: no record before it follows, unless it is late."""

    @property
    def available(self) -> bool:
        """Whether the writer has room for another batch. When a writer that returned False has room
        again, it calls its listener. If it is given a batch without having room, it waits: it drops
        nothing, and does not grow without bound."""
        return True

    def set_listener(self, on_available: Callable[[], None]) -> None:
        """Sets the function to call, in the task's thread, when ``available`` becomes true again,
        or ``flushed``."""

    def flush(self) -> None:
        """Writes out what was gathered, and waits until that is done; or begins to, and says in
        ``flushed`` when it is."""

    @property
    def flushed(self) -> bool:
        """Whether ``flush`` or ``finish`` is done. A writer that does not wait in them says False
        until it is, and that it is not ``available``; then it calls its listener. What went wrong
        meanwhile is raised here. Checkpoints and the end of the job wait, nobody else."""
        return True

    def finish(self) -> None:
        """The input has ended well: flush. A sink without a committer makes its result visible
        here. Not called after a failure."""
        self.flush()

    def prepare_commit(self) -> Sequence[Any]:
        """The committables: what was written since the last call, as picklable objects that the
        committer can make visible.

        Called at each checkpoint after ``flush``, and once after ``finish``. Only for a sink that
        has a committer, or a global one."""
        return ()

    def snapshot_state(self, checkpoint_id: int) -> Sequence[Any]:
        """What the writer must know to go on, as picklable objects; called at each checkpoint
        behind ``prepare_commit``.

        After a restore the sink gets them back in ``restore_writer``, perhaps shared out to another
        number of subtasks."""
        return ()

    def interrupt(self) -> None:
        """Called from another thread, by :class:`~flinkpy.connectors.sinks.ThreadedSinkWriter`:
        makes a call that waits, or is about to begin, return or raise."""

    def close(self) -> None:
        """Gives back what was taken; called whatever happened."""


class Committer(ABC):
    """Makes visible what a writer prepared, once the checkpoint that has it is complete.

    A commit may come again, with the same committables: after a failure, and in another process.
    The second must do nothing. An exception fails the task: the job restarts from the checkpoint,
    and commits again. So a commit that was begun is either completed or retried.

    There is no ``abort``, as Flink has none. What a lost attempt prepared for a checkpoint that
    never was is known to nobody. A writer that begins clears away what earlier attempts of its
    subtask left behind.

    >>> import os
    >>> class Renaming(Committer):
    ...     def commit(self, committables):
    ...         for hidden, final in committables:
    ...             if os.path.exists(hidden):
    ...                 os.replace(hidden, final)
    """

    @abstractmethod
    def commit(self, committables: Sequence[Any]) -> Sequence[Any] | None:
        """Makes these visible, all of one checkpoint; in the task's thread, one checkpoint after
        the other.

        Returns those that cannot be committed yet, if there are any: they are tried again when the
        next checkpoint is complete. Of what can never be committed it raises an error, or leaves a
        message and goes on, if losing it is better than a job that fails again and again."""

    def close(self) -> None:
        """Releases the committer's resources; called in any case."""


class GlobalCommitter(ABC):
    """Makes visible what all writers of a sink prepared for a checkpoint, in one step: for tables
    whose every version is one entry of a log, as those of Iceberg and Delta Lake.

    It runs in a task of its own behind the writers, in one subtask, and keeps what they prepared in
    its state until the checkpoint is complete. As with a :class:`Committer`, a commit may come
    again: after a failure, with the same committables under the same ``checkpoint_id``, and in
    another process. The second must do nothing.

    >>> import os
    >>> class Manifests(GlobalCommitter):
    ...     def __init__(self, folder):
    ...         self.folder = folder
    ...
    ...     def commit(self, committables, checkpoint_id):
    ...         manifest = os.path.join(self.folder, f"{min(committables)}.manifest")
    ...         if not os.path.exists(manifest):
    ...             with open(manifest + ".part", "w") as file:
    ...                 file.write("\\n".join(committables))
    ...             os.replace(manifest + ".part", manifest)
    """

    @abstractmethod
    def commit(
        self, committables: Sequence[Any], checkpoint_id: int | None
    ) -> Sequence[Any] | None:
        """Makes these visible, all that the writers prepared for that checkpoint; in the task's
        thread, one checkpoint after the other. Not called if they prepared nothing.

        ``checkpoint_id`` is None for what was prepared at the end of a job without checkpoints. It
        belongs to the job: a job that starts from another job's savepoint goes on counting, and two
        jobs that start from the same one count alike. So a name made of it alone may be taken.

        Returns those that cannot be committed yet, if there are any: they come again, under the
        same id, when the next checkpoint is complete."""

    def close(self) -> None:
        """Releases the committer's resources; called in any case."""


class SupportsGlobalCommitter(ABC):
    """A second base class for a sink whose writers' committables go to a global committer. Such a
    sink has no committer in its subtasks.

    >>> class Table(Sink, SupportsGlobalCommitter):
    ...     def create_writer(self, context):
    ...         return UpperWriter(context.task.subtask_index)
    ...
    ...     def create_global_committer(self, context):
    ...         return Manifests("table")
    """

    @abstractmethod
    def create_global_committer(self, context: OperatorContext) -> GlobalCommitter:
        """Called in the task of the global committer: what commits for all writers."""


class Sink(ABC):
    """A recipe for writers; picklable. Subclasses make a writer, and a committer if they want one.

    >>> class Upper(Sink):
    ...     def create_writer(self, context):
    ...         return UpperWriter(context.task.subtask_index)
    """

    # whether it writes what a row means for its table too: its writer reads ``ColumnBatch.kinds``,
    # or the kinds of the Rows of ``rows_of(batch)``. Other sinks are given columns of inserts only
    takes_kinds: bool = False

    @property
    def owned(self) -> str | None:
        """What only one sink of a job may write with, in words; None: nothing. A job with two such
        sinks is refused."""
        return None

    def check_stream(self, names: Sequence[str] | None, is_columnar: bool) -> None:
        """Raises ProgramError if it cannot write such a stream; called while the program is built.
        ``names`` are those of the columns, or of the declared type's fields; None if they are not
        known yet."""

    @abstractmethod
    def create_writer(self, context: OperatorContext) -> SinkWriter:
        """Called in the task: opens what this subtask writes to."""

    def restore_writer(self, context: OperatorContext, states: Sequence[Any]) -> SinkWriter:
        """The same in a job that starts from a checkpoint: ``states`` is this subtask's share of
        what writers gave to ``snapshot_state``."""
        return self.create_writer(context)

    def create_committer(self, context: OperatorContext) -> Committer | None:
        """In the task, before the writer: what makes committables visible. None: the sink shows its
        results by itself."""
        return None
