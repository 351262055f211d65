"""Reading files: text, CSV, JSON lines, Parquet and Avro, whole or as they appear."""
