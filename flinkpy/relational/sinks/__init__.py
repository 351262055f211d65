"""What stands in front of the sink of a table: rows of one primary key become one row."""
