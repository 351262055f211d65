"""GROUP BY of BATCH."""
