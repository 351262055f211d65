"""Built-in aggregates: what each one computes, for records and for columns."""
