"""Rules that rewrite the logical plan, in named phases."""
