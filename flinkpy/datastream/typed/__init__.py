"""Functions whose declared output type is a row: what they return becomes Rows."""
