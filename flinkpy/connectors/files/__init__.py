"""Files: what reading and writing share, what is built of both, and streams kept in files."""
