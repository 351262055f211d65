"""Window joins and co-groups: of rows and of columns."""
