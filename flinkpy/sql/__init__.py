"""SQL, from its text to a physical plan. Nothing here knows an operator, Arrow or numpy."""
