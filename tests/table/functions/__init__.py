"""Functions of users in tables and SQL."""
