"""A session of tables: its options, its catalogs, and how a statement becomes a job."""
