"""Windows: assigners, triggers, evictors, window functions, and the operators that run them."""
