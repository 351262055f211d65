"""A folder of messy CSV becomes clean Parquet, and what was left out is told.

    python examples/messy_csv.py [--folder FOLDER]

Three shops send their sales: one has a header of its own and semicolons in quotes, one writes
comments and "n/a", one is compressed and ends in the middle of a line. A line that is no sale does
not stop the job: it goes to a side output, with its file, its line and what is wrong with it. The
sales go to a folder for each day."""

from __future__ import annotations

import argparse
import gzip
import tempfile
from pathlib import Path

import pyarrow as pa

from flinkpy.datastream import ErrorPolicy, OutputTag, StreamExecutionEnvironment
from flinkpy.datastream.connectors.file_system import CsvFormat, FileSink
from flinkpy.table.expressions import col

SALES = pa.schema(
    [("day", pa.date32()), ("item", pa.string()), ("pieces", pa.int64()), ("price", pa.float64())]
)
BROKEN = OutputTag("broken")

OSLO = """day,item,pieces,price
2024-05-01,"tea, green",2,3.5
2024-05-01,"a mug
with two lines",1,12
2024-05-02,coffee,three,4.5
2024-05-02,coffee,3,4.5
"""
ROME = """# exported by the till
day,item,pieces,price
2024-05-01,espresso,n/a,1.2
2024-05-01,espresso,4,1.2,again
yesterday,cake,1,3
# the end
2024-05-02,cake,1,3
"""
BERGEN = """day,item,pieces,price
2024-05-02,umbrella,7,19.9
2024-05-02,umbr"""


def make_files(folder: Path) -> None:
    """What the shops send."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "oslo.csv").write_text(OSLO)
    (folder / "rome.csv").write_text(ROME)
    (folder / "bergen.csv.gz").write_bytes(gzip.compress(BERGEN.encode()))


def clean(env: StreamExecutionEnvironment, messy: Path, tidy: Path, broken: Path) -> None:
    """Reads all files of ``messy``, writes what is right to ``tidy`` as Parquet and what is wrong
    to ``broken`` as CSV."""
    sales = env.from_csv(
        messy,
        schema=SALES,
        comment="#",
        null_values=["", "n/a"],
        on_error=ErrorPolicy.divert(BROKEN),
    )
    sales.filter(col("pieces").is_not_null).sink_to(FileSink(tidy, "parquet", partition_by=["day"]))
    letters = sales.get_side_output(BROKEN)
    told = letters.map(
        lambda letter: (
            Path(letter.record.file).name,
            letter.record.line,
            letter.record.text,
            letter.record.why,
        )
    )
    told.sink_to(FileSink(broken, CsvFormat(columns=["file", "line", "text", "why"])))
    env.execute("clean sales")


def main() -> None:
    parser = argparse.ArgumentParser(description="A folder of messy CSV becomes clean Parquet.")
    parser.add_argument(
        "--folder", type=Path, help="for the files; all machines of the cluster must see it"
    )
    folder = parser.parse_args().folder or Path(tempfile.mkdtemp(prefix="messy-csv-"))

    make_files(folder / "messy")
    env = StreamExecutionEnvironment.get_execution_environment()
    clean(env, folder / "messy", folder / "tidy", folder / "broken")

    print(
        env.from_parquet(folder / "tidy")
        .to_arrow()
        .sort_by([("day", "ascending"), ("item", "ascending")])
        .to_pandas()
    )
    for row in sorted(env.from_csv(folder / "broken").take(100), key=tuple):
        print(f"{row.file}, line {row.line}: {row.text!r}: {row.why}")


if __name__ == "__main__":
    main()
