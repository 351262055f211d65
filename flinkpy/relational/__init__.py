"""The operators of tables, over columns."""
