"""SESSION: rows wait until their session has ended, and then go out with its window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flinkpy.relational.windows.sessions.keeps_sessions import KeepsSessions
from flinkpy.relational.windows.sessions.session_rows import EndedSessions, SessionRows
from flinkpy.relational.windows.window_times import with_times

if TYPE_CHECKING:
    import numpy.typing as npt

WORDS = ("window_start", "window_end", "window_time")


class RowsOfSessionsOperator(KeepsSessions):
    """Gives each row with window_start, window_end and window_time behind it, when the session
    ends."""

    state = "_rows of sessions"

    def new_sessions(self) -> SessionRows:
        window = self.input.window
        return SessionRows(
            window.size, window.partition, self._keys, self._held_schema(), self.moments_of_rows
        )

    def _held_schema(self) -> pa.Schema:
        """That of the input; in processing time there stands behind each row when it came."""
        if not self.is_processing:
            return self.input.schema
        return self.input.schema.append(pa.field("came at", pa.int64()))

    def prepared(self, data: pa.RecordBatch) -> pa.RecordBatch:
        if not self.is_processing:
            return data
        came = pa.array(self.moments(self.input.window, data))
        return pa.RecordBatch.from_arrays([*data.columns, came], schema=self._held_schema())

    def moments_of_rows(self, data: pa.RecordBatch) -> npt.NDArray[Any]:
        if self.is_processing:
            came: npt.NDArray[Any] = data.columns[-1].to_numpy()
            return came
        return self.moments(self.input.window, data)

    def saved_tables(self, tables: list[bytes]) -> bytes:
        [rows] = tables
        return rows

    def restored_tables(self, saved: bytes) -> list[bytes]:
        return [saved]

    def results(self, ended: EndedSessions) -> pa.RecordBatch:
        """What goes out of the rows of sessions that have ended."""
        columns = ended.data.columns[: len(self.input.schema)]
        return with_times(columns, WORDS, self.times(ended.starts, ended.ends), self.schema)

    def times(self, starts: Any, ends: Any) -> dict[str, Any]:
        """The columns of windows that begin and end there."""
        return dict(zip(WORDS, (starts, ends, self.times_of_windows(ends))))
