"""The connector `filesystem`: tables of files."""
