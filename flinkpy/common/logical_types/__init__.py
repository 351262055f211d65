"""The types of SQL: what a value of a table is, and whether it may be null."""
