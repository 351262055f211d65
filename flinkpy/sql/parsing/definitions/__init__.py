"""Statements that define things: CREATE, ALTER, DROP."""
