"""What functions of arrays, maps and rows mean for one row."""
