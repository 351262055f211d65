"""Windows over rows that change."""
