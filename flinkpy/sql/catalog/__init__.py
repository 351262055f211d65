"""What names mean: catalogs, databases, tables, views and functions."""
