"""Built-in aggregates: what each one means, for records and for columns."""
