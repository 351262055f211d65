"""Plans as a whole: planning a statement, and its explanation in text."""
