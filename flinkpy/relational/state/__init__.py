"""State of the operators of tables: rows as columns, in one Arrow table for each key group."""
