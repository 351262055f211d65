"""What was written: the tree of a statement, each node with its place in the text."""
