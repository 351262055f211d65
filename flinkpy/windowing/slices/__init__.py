"""Built-in aggregates over windows by slices, over rows and over columns."""
