"""Results of statements: how they look."""
