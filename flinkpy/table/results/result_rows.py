"""The rows of a result: those that a statement answered at once, or those of a running job."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.common.types import Row
from flinkpy.core.errors import ProgramError
from flinkpy.table.results.folded_rows import folded, folded_columns

if TYPE_CHECKING:
    from flinkpy.datastream.results.collecting import CloseableIterator


_READ = "the rows of this result were read before; run the statement again for more"


class ResultRows(ABC):
    """Rows that can be read once."""

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """One after the other, as they come."""

    @abstractmethod
    def arrow_table(self, schema: RowType) -> Any:
        """All of them as a table; of rows that change, those that are left."""

    @abstractmethod
    def close(self) -> None:
        """No more are wanted."""


class ReadyRows(ResultRows):
    """Rows of a statement that ran no job."""

    def __init__(self, rows: Sequence[tuple[object, ...]], *, is_plain: bool = False) -> None:
        self._rows, self.is_plain = rows, is_plain

    def rows(self) -> Iterator[Row]:
        return (Row(*values) for values in self._rows)

    def arrow_table(self, schema: RowType) -> Any:
        import pyarrow as pa

        from flinkpy.columns.sql.arrays_of_values import array_of_values

        return pa.table(
            {
                field.name: array_of_values([row[at] for row in self._rows], field.type)
                for at, field in enumerate(schema)
            }
        )

    def close(self) -> None:
        pass


class LookedAtRows(ResultRows):
    """Rows of which the first are shown, and which can be read from the first on all the same.
    Those that settle are shown as they are at last."""

    def __init__(self, rows: ResultRows, limit: int) -> None:
        self._inner = rows
        self._rest = rows.rows()
        self.are_settled = isinstance(rows, CollectedRows) and rows.settles
        self._first = list(itertools.islice(self._rest, None if self.are_settled else limit))
        self.shown = folded(self._first) if self.are_settled else self._first

    def rows(self) -> Iterator[Row]:
        return itertools.chain(self._first, self._rest)

    def arrow_table(self, schema: RowType) -> Any:
        import pyarrow as pa

        from flinkpy.columns.sql.arrays_of_values import array_of_values

        rows = folded(self.rows())
        columns = [[row[at] for row in rows] for at in range(len(schema.fields))]
        arrays = [array_of_values(values, field.type) for values, field in zip(columns, schema)]
        return pa.Table.from_arrays(arrays, names=list(schema.names))

    def close(self) -> None:
        self._inner.close()


class CollectedRows(ResultRows):
    """Rows of a job, fetched while it runs. Closing cancels it. ``settles``: they change, and at
    last they do not, as the job ends."""

    def __init__(self, collected: CloseableIterator, *, settles: bool = False) -> None:
        self._collected, self.settles = collected, settles
        self._is_read = False

    def rows(self) -> Iterator[Row]:
        """Raises ProgramError if all rows were read, or closed, before."""
        if self._is_read:
            raise ProgramError(_READ)
        return self._until_the_end()

    def _until_the_end(self) -> Iterator[Row]:
        for row in self._collected:  # noqa: UP028  (yield from would end the job with the reader)
            yield row
        self._is_read = True

    def arrow_table(self, schema: RowType) -> Any:
        import pyarrow as pa

        from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of

        if self._is_read:
            raise ProgramError(_READ)
        self._is_read = True
        with self._collected:
            batches = self._collected.gathered()
        wanted = arrow_schema_of(schema)
        if any(batch.kinds is not None for batch in batches):
            return folded_columns(batches, wanted)
        tables = [
            pa.Table.from_batches([batch.data]).rename_columns(wanted.names) for batch in batches
        ]
        return pa.concat_tables([wanted.empty_table(), *(table.cast(wanted) for table in tables)])

    def close(self) -> None:
        self._is_read = True
        self._collected.close()
