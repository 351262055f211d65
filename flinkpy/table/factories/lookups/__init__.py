"""Tables that are asked for the rows of a key."""
