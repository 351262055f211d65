"""The tables of SQL's functions, one for each chapter of the reference."""
