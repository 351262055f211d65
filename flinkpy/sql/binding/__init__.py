"""From the tree of a statement to its logical plan: names, scopes, types."""
