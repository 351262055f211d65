"""PyFlink writes ORC files from here; flinkpy does not."""

from flinkpy.datastream.formats.absent import absent

__getattr__ = absent(
    __name__,
    {
        "OrcBulkWriters": (
            'there is no ORC; write Parquet with write_parquet() or FileSink(folder, "parquet")'
        )
    },
)
