"""Avro messages: rows and columns of the records of a schema."""
