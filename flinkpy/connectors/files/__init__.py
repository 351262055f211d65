"""Reading files: text, CSV, JSON lines, Parquet, and streams kept in files."""
