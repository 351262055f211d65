"""What SQL's functions of JSON mean for one row."""
