"""Time to live: how long values live, and how expired values are removed."""
