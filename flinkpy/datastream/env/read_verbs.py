"""The sources of files and frames under the names that other libraries have for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.datastream.checks import refuse
from flinkpy.datastream.env.source_verbs import S, Sources

if TYPE_CHECKING:
    import polars as pl


class ReadVerbs(Sources[S]):
    """Methods under the names that are guessed first."""

    read_parquet = Sources.from_parquet
    read_csv = Sources.from_csv
    read_json = Sources.from_json_lines
    read_json_lines = Sources.from_json_lines
    read_avro = Sources.from_avro

    def read_text(self, file_path: str, charset_name: str = "UTF-8") -> S:
        """Reads the lines of text files, as :meth:`read_text_file` does.

        >>> env.read_text("book.txt.gz")  # doctest: +SKIP
        """
        return self.read_text_file(file_path, charset_name)

    def from_polars(self, frame: pl.DataFrame, batch_rows: int | None = None) -> S:
        """Reads the rows of a Polars frame as columns. Raises ProgramError for a lazy frame: call
        ``collect()``.

        >>> env.from_polars(polars.read_parquet("flights.parquet"))  # doctest: +SKIP
        """
        if type(frame).__module__.partition(".")[0] != "polars" or not hasattr(
            frame, "__arrow_c_stream__"
        ):
            advice = (
                ": call collect() on the lazy frame"
                if hasattr(frame, "collect")
                else "; from_arrow() takes other tables with an Arrow stream"
            )
            raise refuse(
                f"from_polars() takes a polars.DataFrame, this is a {type(frame).__name__}{advice}"
            )
        return self.from_arrow(frame, batch_rows)
