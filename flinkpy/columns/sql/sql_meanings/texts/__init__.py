"""What functions of text and bytes mean for one row."""
