"""What SQL's functions mean: over whole columns, and in plain Python."""
