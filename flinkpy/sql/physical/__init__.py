"""What is run: the operators of a plan."""
