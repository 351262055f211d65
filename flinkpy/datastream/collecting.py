"""Results back into the program: ``execute_and_collect``."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flinkpy.core.errors import FlinkpyError

if TYPE_CHECKING:
    from flinkpy.connectors.collect import CollectServer
    from flinkpy.datastream.data_stream import DataStream


class CloseableIterator:
    """Records as they arrive. Closing it, or leaving its ``with`` block, cancels the job if it still runs.

    Iterating raises JobExecutionError when the job fails. Use it in ``with`` where the loop may end early.
    """

    def __init__(self, job: Any, server: CollectServer) -> None:
        self._job, self._server = job, server
        self._records = _records(server)
        self._is_closed = False
        self._waiter = threading.Thread(target=self._await_end, name=f"end of {job.name}", daemon=True)
        self._waiter.start()

    def _await_end(self) -> None:
        try:
            self._job.result()
        except Exception as error:
            self._server.job_ended(error)
        else:
            self._server.job_ended()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self.next()

    def next(self) -> Any:
        """The next record; StopIteration when the job has ended and all were given."""
        try:
            return next(self._records)
        except BaseException:
            self.close()
            raise

    def batches(self) -> Iterator[Any]:
        """What arrives as it arrives, in place of single records: lists of records, or ``pyarrow.RecordBatch`` of a columnar stream."""
        try:
            yield from self._server.batches()
        finally:
            self.close()

    def close(self) -> None:
        """Cancels the job if it still runs, and gives back the connection."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._job.cancel()
        except FlinkpyError:
            pass  # the session is gone, and the job with it
        self._waiter.join(10.0)
        self._server.close()

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<CloseableIterator of {self._job!r}>"


def _records(server: CollectServer) -> Iterator[Any]:
    for batch in server.batches():
        if isinstance(batch, list):
            yield from batch
        else:
            from flinkpy.table.conversion import rows_of_batch

            yield from rows_of_batch(batch)


def execute_and_collect(stream: DataStream, job_name: str | None) -> CloseableIterator:
    """Adds the collecting sink, submits the program, and gives the iterator."""
    from flinkpy.connectors.collect import CollectServer

    env = stream.get_execution_environment()
    server = CollectServer(env._own_host())
    try:
        stream.sink_to(server.sink()).name("Collect")
        job = env._submit(job_name)
    except BaseException:
        server.close()
        raise
    return CloseableIterator(job, server)
