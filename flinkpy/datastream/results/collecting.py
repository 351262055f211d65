"""Returns results to the program: ``execute_and_collect``."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any

from flinkpy.core.errors import FlinkpyError
from flinkpy.core.options.engine import spill_folders
from flinkpy.core.program.prompts import on_interrupt, user_code
from flinkpy.core.source_places import shorten
from flinkpy.datastream.env.submission import own_host, submit
from flinkpy.datastream.results.sink_operators import add_sink
from flinkpy.datastream.streams.recorded import RecordedStream

if TYPE_CHECKING:
    from flinkpy.connectors.collect.collect_server import CollectServer
    from flinkpy.graph.transformations import Transformation


class CloseableIterator:
    """Iterates over the records of a job as they arrive. Closing it, or leaving its ``with`` block,
    cancels the job if it is still running.

    A job with checkpoints gives each record once, also over failures: when the checkpoint that has
    it is complete.

    Iterating raises JobExecutionError when the job fails. It raises JobRestartedError when the job
    began again from its beginning after some records had been returned: these records would be
    returned twice.

    Ctrl-C cancels the job; at a prompt and in a notebook it does so even inside the loop's body. If
    the loop may end early, use ``with``. An iterator that nothing refers to any more, for example
    after ``break``, also cancels its job."""

    def __init__(self, job: Any, server: CollectServer, *, quiet: bool = False) -> None:
        self._job, self._server = job, server
        self._reader = _Reader()
        self._records = _records(server, self._reader)
        self._is_closed = False
        # the thread must not refer to the iterator, or it would never be garbage collected
        self._waiter = threading.Thread(
            target=_await_end, args=(job, server, not quiet), name=f"end of {job.name}", daemon=True
        )
        self._waiter.start()
        self._let_go = weakref.finalize(self, _close_elsewhere, job, server, self._waiter)
        self._let_go.atexit = False
        _open.add(self)
        on_interrupt(_close_interrupted)

    @property
    def job(self) -> Any:
        """The job whose records these are."""
        return self._job

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self.next()

    def next(self) -> Any:
        """The next record. Raises StopIteration when the job has ended and all records were
        returned."""
        try:
            return next(self._records)
        except BaseException as error:
            self._end(error)
            raise

    def first(self, limit: int) -> list[Any]:
        """The first ``limit`` records, or all if there are fewer. A restart of the job begins the
        list again."""
        records: list[Any] = []
        for batch in self.gathered(limit):
            records += _rows(batch)
        return records[:limit]

    def gathered(self, limit: int | None = None) -> list[Any]:
        """The batches that arrive until the job ends, or until there are ``limit`` records: lists
        of records, or the columns (ColumnBatch) of a columnar stream. A restart of the job begins
        the list again."""
        try:
            return self._server.gathered(limit)
        except BaseException as error:
            self._end(error)
            raise

    def _end(self, error: BaseException) -> None:
        self.close()
        if isinstance(error, KeyboardInterrupt):
            shorten(error, f"job {self._job.name!r} was cancelled")

    def close(self) -> None:
        """Cancels the job if it still runs, and closes the connection."""
        if self._is_closed:
            return
        self._is_closed = True
        self._let_go.detach()
        _close(self._job, self._server, self._waiter)

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<CloseableIterator of {self._job!r}>"


def _await_end(job: Any, server: CollectServer, watched: bool) -> None:
    try:
        job.result(watched=watched)
    except (Exception, SystemExit) as error:  # the iterating thread raises it
        server.job_ended(error, _newest_checkpoint(job))
    else:
        server.job_ended()


def _newest_checkpoint(job: Any) -> int | None:
    """The last checkpoint of a job that has failed or was cancelled; None if it had none, or if the
    cluster is gone and cannot say."""
    try:
        checkpoint_id: int | None = job.details().checkpoint_id
        return checkpoint_id
    except FlinkpyError:
        return None


def _close(job: Any, server: CollectServer, waiter: threading.Thread) -> None:
    try:
        job.cancel()
    except FlinkpyError:
        pass  # the session is gone, and the job with it
    waiter.join(10.0)
    server.close()


def _close_elsewhere(job: Any, server: CollectServer, waiter: threading.Thread) -> None:
    """Closes in another thread, because the garbage collector may run in the very thread that has
    to answer ``cancel``; so it must not wait."""
    threading.Thread(
        target=_close, args=(job, server, waiter), name=f"cancel {job.name}", daemon=True
    ).start()


class _Reader:
    """The user's code that took the last batch."""

    code: CodeType | None = None


_open: weakref.WeakSet[CloseableIterator] = weakref.WeakSet()


def _close_interrupted(error: BaseException, codes: set[CodeType]) -> None:
    """Called at Ctrl-C: if the body of a loop over records was interrupted, the loop has ended, so
    its job is cancelled."""
    for results in list(_open):
        if not results._is_closed and results._reader.code in codes:
            results.close()
            print(f"job {results._job.name!r} was cancelled", file=sys.stderr)


def _records(server: CollectServer, reader: _Reader) -> Iterator[Any]:
    for batch in server.batches():
        reader.code = user_code()
        yield from _rows(batch)


def _rows(batch: Any) -> Iterable[Any]:
    if isinstance(batch, list):
        return batch
    from flinkpy.connectors.rows import rows_of

    return rows_of(batch)


def execute_and_collect(
    stream: RecordedStream,
    job_name: str | None,
    *,
    quiet: bool | None = None,
    as_table: bool = False,
) -> CloseableIterator:
    """Adds the collecting sink, submits the program, and returns the iterator.

    ``quiet``: do not draw progress. That is the default at a prompt, which may return to the user
    before the job ends. ``as_table``: only the last result of each key."""
    from flinkpy.connectors.collect.collect_server import CollectServer

    folders = spill_folders(stream.program.values)
    server = CollectServer(own_host(stream.program), folders=folders)
    job: Any = None
    try:
        _keep_order(
            stream.transformation,
            add_sink(stream, server.sink(), "Sink: Collect", as_table=as_table),
        )
        job = submit(stream.program, job_name)
        return CloseableIterator(job, server, quiet=hasattr(sys, "ps1") if quiet is None else quiet)
    except BaseException:
        if job is not None:  # Ctrl-C came before there was an iterator that could cancel the job
            job.cancel()
        server.close()
        raise


def _keep_order(maker: Transformation, sink: RecordedStream) -> None:
    """Gives the sink the parallelism of the operator that makes the records, so that those of a
    subtask arrive in order. After a union or a partitioning a single subtask collects (as always in
    Flink), which gets each record once, even after ``broadcast()``."""
    from flinkpy.graph.transformations import (
        PartitionTransformation,
        SideOutputTransformation,
        UnionTransformation,
    )

    while isinstance(maker, SideOutputTransformation):
        maker = maker.input
    if isinstance(maker, (PartitionTransformation, UnionTransformation)):
        place: tuple[int | None, int | None] = 1, None
    else:
        place = maker.parallelism, maker.max_parallelism
    for transformation in (sink.transformation, *sink.helpers):
        transformation.parallelism, transformation.max_parallelism = place
