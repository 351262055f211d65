"""How operators run in a batch job."""
