"""Windows of SQL: watermarks, the window functions, and aggregates when a window closes."""
