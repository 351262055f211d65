"""Which channel a record goes to, for rows and for columns."""
