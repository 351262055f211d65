"""What SQL's functions of dates and times mean for one row."""
