"""Files and file systems: those of URLs, ones that only the user may read, and spilled data."""
