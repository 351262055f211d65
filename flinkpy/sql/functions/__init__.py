"""The functions of SQL: one entry for each."""
