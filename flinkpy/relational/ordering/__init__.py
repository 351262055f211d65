"""What needs its rows in order: sorting, ranks, and aggregates over the rows around one."""
