"""The generated loops of the window operator, for windows with default triggers."""
