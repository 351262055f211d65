"""SQL's functions over whole columns. Each gives what its meaning gives row by row."""
