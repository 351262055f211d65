"""JSON messages: rows of declared types, plain values, columns."""
