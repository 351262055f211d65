"""Window joins and co-groups."""
