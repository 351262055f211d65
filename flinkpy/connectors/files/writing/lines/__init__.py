"""Records and columns as lines of text."""
