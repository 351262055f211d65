"""The methods that show what a stream is: its schema, its columns, its first records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.datastream.streams.operator_settings import OperatorSettings

if TYPE_CHECKING:
    import pyarrow as pa


class LookVerbs(OperatorSettings):
    """What a stream's records are, known while the program is built; and figures about all of them,
    for which a job is run.

    The figures are of the stream as a table: of running results the last row of each key counts.
    They raise ProgramError for a stream that does not end."""

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns. Raises ProgramError if they are not known while the
        program is built.

        >>> env.from_parquet("flights.parquet").schema.names  # doctest: +SKIP
        ['carrier', 'dep_delay']
        """
        from flinkpy.datastream.results.looks import schema_of

        return schema_of(self.recorded)

    @property
    def columns(self) -> list[str]:
        """The names of the columns, or of the fields of a declared row type; otherwise as
        ``schema``."""
        names = self.recorded.column_names()
        return list(self.schema.names) if names is None else names

    def count(self, job_name: str | None = None) -> int:
        """The number of records. Runs a job with only what leads to this stream, and waits for its
        end.

        >>> env.from_collection(["to", "be"]).count()  # doctest: +SKIP
        2
        """
        from flinkpy.datastream.results.looks import count

        return count(self.recorded, job_name)

    def mean(self, column: Any, job_name: str | None = None) -> Any:
        """The mean of a column or an expression, without nulls; None if there is no value. Runs a
        job as ``count`` does.

        >>> flights.mean("dep_delay")  # doctest: +SKIP
        12.6
        """
        from flinkpy.datastream.results.looks import mean

        return mean(self.recorded, column, job_name)

    def value_counts(self, column: str, job_name: str | None = None) -> dict[Any, int]:
        """How many records there are of each value of the column, the most frequent first. Runs a
        job as ``count`` does.

        >>> flights.value_counts("carrier")  # doctest: +SKIP
        {'UA': 58665, 'B6': 54635}
        """
        from flinkpy.datastream.results.looks import value_counts

        return value_counts(self.recorded, column, job_name)

    def describe(self, *columns: str, job_name: str | None = None) -> None:
        """Prints a line for each column, or for these: its type, how many values are not null, and
        of numbers the mean and the standard deviation, of all that has an order the least and the
        greatest value. Runs a job as ``count`` does.

        >>> flights.describe("dep_delay")  # doctest: +SKIP
        """
        from flinkpy.common.text_tables import table
        from flinkpy.datastream.results.looks import describe

        print(table(describe(self.recorded, columns, job_name)))

    def _repr_html_(self) -> str | None:
        """In a notebook, the stream's fields and their types; with None it shows the text. Runs
        nothing."""
        from flinkpy.datastream.results.looks import html_of

        return html_of(self.recorded, type(self).__name__)
