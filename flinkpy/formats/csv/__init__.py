"""CSV messages: rows of declared types, columns."""
