"""What SQL's functions mean for one row, in plain Python: neither numpy nor Arrow is imported, so a
planner folds constants with them."""
